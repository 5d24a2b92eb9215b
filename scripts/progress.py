"""The progress bars of commands that work through a fleet. They appear on a terminal only."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import click

from scripts.output import escape

T = TypeVar("T")


def make_bar(label: str, length: int | None = None, *, hidden: bool = False, **options: Any) -> Any:
    """Return a progress bar of click, a context manager. `options` are further arguments of `click.progressbar`."""
    return click.progressbar(
        length=length, label=escape(label), file=sys.stderr, hidden=hidden or not sys.stderr.isatty(), **options
    )


def with_progress(label: str, steps: Iterable[T]) -> Iterator[T]:
    """Yield the results of the steps, and show how many are finished. Their total is unknown."""
    with make_bar(label, iterable=steps, show_pos=True, show_percent=False) as bar:
        yield from bar


def sum_with_progress(label: str, length: int, counts: Iterable[int]) -> int:
    """Return the sum of the counts, and show how much of `length` it has reached."""
    total = 0
    with make_bar(label, length) as bar:
        for count in counts:
            total += count
            bar.update(count)
    return total
