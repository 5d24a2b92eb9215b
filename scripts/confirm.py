"""The question before a command removes something for good."""

import sys

import click

from scripts.output import echo


def confirm(description: str, yes: bool) -> None:
    """Print what is to be removed, and ask on a terminal unless `yes` is given.

    Raises click.ClickException if there is none, and click.Abort for no.
    """
    echo(description)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("Nothing was removed: there is no terminal to ask on. Confirm with --yes.")
    click.confirm("Remove all of it? This cannot be undone.", abort=True)
