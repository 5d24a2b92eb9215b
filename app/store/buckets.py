"""Which trips a driver has: how many, when they end, and what lies where, without reading any of them.

A bucket holds up to BUCKET_ROWS trips of one UTC date in (trip_start_time, trip_id) order; a date has as many as it
takes. Any page of a driver's trips is found by counting through the buckets.
"""

import datetime
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from app.store import Document

BUCKET_ROWS = 100
# A bucket's key is its date's ordinal, then in so many bits its number within the date.
NUMBER_BITS = 32
VERSION_BYTES = 8
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
MS_PER_DAY = 86_400_000
# What of each bucket is kept, as packed integers: its key, how many trips, the latest of their ends, its version.
PACKED = {"keys": "q", "counts": "i", "ends": "q", "versions": "Q"}


class Place(NamedTuple):
    """Where a page lies: in the buckets from one span to another, whose versions these are, after so many trips."""

    first: str
    last: str
    versions: bytes
    skip: int


class Buckets:
    """The buckets of a driver, oldest first, in packed arrays: C code searches and adds up thousands at once."""

    def __init__(self, packed: Mapping[str, Any] | None = None) -> None:
        self._packed = {name: array(kind, (packed or {}).get(name, b"")) for name, kind in PACKED.items()}
        self.keys, self.counts, self.ends, self.versions = self._packed.values()

    def stored(self) -> Document:
        """Return what the store holds of them."""
        return {name: values.tobytes() for name, values in self._packed.items()}

    def replace(self, date: str, buckets: Iterable[tuple[int, int, bytes]]) -> None:
        """Put buckets, each as count, latest end (epoch ms) and version, in the place of those of a date."""
        where = slice(bisect_left(self.keys, _key(date)), bisect_left(self.keys, _key(date) + (1 << NUMBER_BITS)))
        rows = [
            (_key(date) + number, count, end, int.from_bytes(version, sys.byteorder))
            for number, (count, end, version) in enumerate(buckets)
        ]
        for index, values in enumerate(self._packed.values()):
            values[where] = array(values.typecode, [row[index] for row in rows])

    def since(self, date: str) -> "Buckets":
        """Return the buckets from a date on."""
        first = bisect_left(self.keys, _key(date))
        return Buckets({name: values[first:] for name, values in self._packed.items()})

    def unsettled(self, ended_by: int) -> list[str]:
        """Return the spans of those buckets some trip of which ends after `ended_by` (epoch ms)."""
        if not self.ends or max(self.ends) <= ended_by:
            return []
        return [_span(key) for key, end in zip(self.keys, self.ends, strict=True) if end > ended_by]

    def count_only(self, visible: Mapping[str, int]) -> None:
        """Count of some buckets, by span, only so many trips."""
        for index, key in enumerate(self.keys):
            self.counts[index] = visible.get(_span(key), self.counts[index])

    @property
    def count(self) -> int:
        """How many trips they hold."""
        return sum(self.counts)

    @property
    def version(self) -> bytes:
        """What changes with any change of what they hold, and with their count."""
        return self.versions.tobytes() + self.count.to_bytes(VERSION_BYTES)

    def place(self, skip: int, limit: int) -> Place:
        """Return where the `limit` trips after the first `skip` lie; there has to be one at least."""
        upto = list(accumulate(self.counts, initial=0))
        first, last = bisect_right(upto, skip) - 1, bisect_left(upto, skip + limit)
        last = min(last, len(self.keys))
        versions = self.versions[first:last].tobytes()
        return Place(_span(self.keys[first]), _span(self.keys[last - 1]), versions, skip - upto[first])

    def seek(self, skip: int) -> tuple[int, int]:
        """Return a midnight (epoch ms) from which on fewer trips are to be skipped, and how many."""
        upto = list(accumulate(self.counts, initial=0))
        key = self.keys[bisect_right(upto, skip) - 1] >> NUMBER_BITS << NUMBER_BITS
        midnight = ((key >> NUMBER_BITS) - EPOCH_ORDINAL) * MS_PER_DAY
        return midnight, skip - upto[bisect_left(self.keys, key)]


def utc_date(epoch_ms: int) -> str:
    """Return the UTC date of a time."""
    return datetime.date.fromordinal(epoch_ms // MS_PER_DAY + EPOCH_ORDINAL).isoformat()


def bucket_span(date: str, number: int) -> str:
    """Return the span of a bucket, which sorts by date and number; that of a date's first one is the date."""
    return f"{date}#{number:06}" if number else date


def _key(date: str) -> int:
    return datetime.date.fromisoformat(date).toordinal() << NUMBER_BITS


def _span(key: int) -> str:
    return bucket_span(datetime.date.fromordinal(key >> NUMBER_BITS).isoformat(), key & ((1 << NUMBER_BITS) - 1))
