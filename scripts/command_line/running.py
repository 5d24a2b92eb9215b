"""How a command runs: the extra of setup.cfg that it needs, and the signals that end it."""

import contextlib
import signal
import sys
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


def end_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the process with exit status 0.

    MongoDB aborts a transaction that is in progress. All else that a command was doing can be repeated.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(0))
