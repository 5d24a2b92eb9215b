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


def batches_by_size(items: Iterable[tuple[T, int]], max_items: int, max_size: int) -> Iterator[list[T]]:
    """Yield the items, each of which comes with its size, in lists within both limits.

    An item that is larger than the limit is a list of its own.
    """
    batch, total = list[T](), 0
    for item, size in items:
        if batch and (len(batch) == max_items or total + size > max_size):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch
