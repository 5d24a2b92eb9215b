"""The extras of setup.cfg: libraries that only some installations have."""

import contextlib
from collections.abc import Iterator

import click


@contextlib.contextmanager
def importing_from_extra(name: str, user: str) -> Iterator[None]:
    """Raise click.ClickException if the block imports a library that is not installed.

    `name` is the extra to install, and `user` is what needs it.
    """
    try:
        yield
    except ModuleNotFoundError:
        raise click.ClickException(
            f"The extra {name} is not installed. {user} needs it. Install it from a clone of the project, "
            f"pip install '/path/to/clone[{name}]', or run 'make setup' there."
        ) from None
