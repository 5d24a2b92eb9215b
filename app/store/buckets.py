"""Which trips there are of a driver, or of a tracking id: how many, when they end, and where, without reading any.

A bucket holds trips of one UTC date in (trip_start_time, trip_id) order. Any page is found by counting through them.
"""

import datetime
import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from app.store import Document

BUCKET_ROWS = 100
# A bucket's key is its date's ordinal, then in so many bits its number within the date: of Counts the hour that it
# begins with, of Buckets a count from 0.
NUMBER_BITS = 32
VERSION_BYTES = 8
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
MS_PER_HOUR = 3_600_000
HOURS_PER_DAY = 24
MS_PER_DAY = HOURS_PER_DAY * MS_PER_HOUR


class Place(NamedTuple):
    """Where a page lies: in the buckets from one span to another, whose versions these are, after so many trips."""

    first: str
    last: str
    versions: bytes
    skip: int


class Counts:
    """How many trips there are, a bucket a date or part of one, oldest first.

    Packed arrays, of what stands in `packed`: C code searches and adds up thousands at once.
    """

    # Of each bucket: its key, how many trips, the latest of their ends (epoch ms).
    packed = {"keys": "q", "counts": "i", "ends": "q"}

    def __init__(self, packed: Mapping[str, Any] | None = None) -> None:
        self._arrays = {name: array(kind, (packed or {}).get(name, b"")) for name, kind in self.packed.items()}
        self.keys, self.counts, self.ends = itertools.islice(self._arrays.values(), 3)
        if len(set(map(len, self._arrays.values()))) > 1:
            raise ValueError("packed arrays of different lengths")

    def stored(self) -> Document:
        """Return what the store holds of them."""
        return {name: values.tobytes() for name, values in self._arrays.items()}

    def replace(self, date: str, buckets: Mapping[int, tuple[int, ...]]) -> None:
        """Put buckets, by number, each as what is packed of it but the key, in the place of those of a date."""
        where = slice(bisect_left(self.keys, _key(date)), bisect_left(self.keys, _key(date) + (1 << NUMBER_BITS)))
        rows = [(_key(date) + number, *buckets[number]) for number in sorted(buckets)]
        for index, values in enumerate(self._arrays.values()):
            values[where] = array(values.typecode, [row[index] for row in rows])

    def since(self, date: str) -> Self:
        """Return the buckets from a date on."""
        first = bisect_left(self.keys, _key(date))
        return type(self)({name: values[first:] for name, values in self._arrays.items()})

    def unsettled(self, ended_by: int) -> list[str]:
        """Return the spans of those buckets some trip of which ends after `ended_by` (epoch ms)."""
        if not self.ends or max(self.ends) <= ended_by:
            return []
        return [_span(key) for key, end in zip(self.keys, self.ends, strict=True) if end > ended_by]

    def span_at(self, date: str, hour: int) -> str:
        """Return the span of the bucket that an hour of a date is in."""
        return _span(self.keys[bisect_right(self.keys, _key(date) + hour) - 1])

    def count_only(self, visible: Mapping[str, int]) -> None:
        """Count of some buckets, by span, only so many trips."""
        for index, key in enumerate(self.keys):
            self.counts[index] = visible.get(_span(key), self.counts[index])

    @property
    def count(self) -> int:
        """How many trips they hold."""
        return sum(self.counts)

    def seek(self, skip: int) -> tuple[int, int]:
        """Return a time (epoch ms) from which on fewer trips are to be skipped, and how many."""
        upto = list(itertools.accumulate(self.counts, initial=0))
        index = min(bisect_right(upto, skip), len(self.keys)) - 1
        key = self._start(self.keys[index])
        ordinal, hour = divmod(key, 1 << NUMBER_BITS)
        time = (ordinal - EPOCH_ORDINAL) * MS_PER_DAY + hour * MS_PER_HOUR
        return time, skip - upto[bisect_left(self.keys, key)]

    def _start(self, key: int) -> int:
        """Return the key from which on a bucket is sought: its own, or an earlier one, which tells a time."""
        return key


class Buckets(Counts):
    """The buckets of a driver's trips, up to BUCKET_ROWS each and as many a date as it takes, with their versions."""

    packed = {**Counts.packed, "versions": "Q"}

    def __init__(self, packed: Mapping[str, Any] | None = None) -> None:
        super().__init__(packed)
        self.versions = self._arrays["versions"]

    def _start(self, key: int) -> int:
        # Only that of a date's first bucket tells a time, its midnight.
        return key >> NUMBER_BITS << NUMBER_BITS

    @property
    def version(self) -> bytes:
        """What changes with any change of what they hold, and with their count."""
        return self.versions.tobytes() + self.count.to_bytes(VERSION_BYTES)

    def place(self, skip: int, limit: int) -> Place:
        """Return where the `limit` trips after the first `skip` lie; there has to be one at least."""
        upto = list(itertools.accumulate(self.counts, initial=0))
        first, last = bisect_right(upto, skip) - 1, bisect_left(upto, skip + limit)
        last = min(last, len(self.keys))
        versions = self.versions[first:last].tobytes()
        return Place(_span(self.keys[first]), _span(self.keys[last - 1]), versions, skip - upto[first])


def utc_date(epoch_ms: int) -> str:
    """Return the UTC date of a time."""
    return datetime.date.fromordinal(epoch_ms // MS_PER_DAY + EPOCH_ORDINAL).isoformat()


def midnight(date: str) -> int:
    """Return the time (epoch ms) at which a UTC date begins."""
    return (datetime.date.fromisoformat(date).toordinal() - EPOCH_ORDINAL) * MS_PER_DAY


def bucket_span(date: str, number: int) -> str:
    """Return the span of a bucket, which sorts by date and number; that of a date's first one is the date."""
    return f"{date}#{number:06}" if number else date


def date_of(span: str) -> str:
    """Return the date of a bucket's span."""
    return span.partition("#")[0]


def _key(date: str) -> int:
    return datetime.date.fromisoformat(date).toordinal() << NUMBER_BITS


def _span(key: int) -> str:
    return bucket_span(datetime.date.fromordinal(key >> NUMBER_BITS).isoformat(), key & ((1 << NUMBER_BITS) - 1))
