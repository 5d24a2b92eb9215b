"""The progress bar of commands that work through a fleet."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

import click

T = TypeVar("T")


def with_progress(label: str, steps: Iterable[T]) -> Iterator[T]:
    """Yield the results of the steps, and show on a terminal how many are finished. Their total is unknown."""
    with click.progressbar(
        steps, label=label, file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True, show_percent=False
    ) as bar:
        yield from bar
