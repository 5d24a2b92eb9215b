"""Tables that commands print: a line a row, with tabs between the columns."""

import sys
from collections.abc import Iterable, Sequence

import click


def echo_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print the rows, and above them the names of the columns if a person reads them on a terminal."""
    if sys.stdout.isatty():
        click.echo("\t".join(columns))
    for row in rows:
        click.echo("\t".join(row))
