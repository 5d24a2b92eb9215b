"""Batches of items, for commands that work through many."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of up to `size`."""
    # Python 3.12 has itertools.batched.
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch
