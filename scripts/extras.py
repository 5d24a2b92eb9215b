"""The extras of setup.cfg: libraries that only some installations have."""

import contextlib
from collections.abc import Iterator

import click


class MissingExtra(click.ClickException):
    """An extra is not installed. The message, one line, names it and says how to install it."""


@contextlib.contextmanager
def importing_from_extra(name: str, user: str) -> Iterator[None]:
    """Raise MissingExtra if the block imports a library that is not installed. `user` is what needs the extra."""
    try:
        yield
    except ModuleNotFoundError:
        raise MissingExtra(
            f"The extra {name} is not installed. {user} needs it. Install it from a clone of the project, "
            f"pip install '/path/to/clone[{name}]', or run 'make setup' there."
        ) from None
