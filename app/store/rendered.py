"""Trips in detail form, as the store has them: rendered JSON in parts, of which a trail may have 16 MB.

Nothing here makes the objects of a whole trail: those of 100,000 points take 50 MB, and those of a small part at a time
take nothing that shows.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from app.store import Document

# Trips that are longer together are read one after the other, while the response is sent.
MAX_WHOLE_LENGTH = 2_000_000
# What takes the points of trips that are longer together takes seconds of processor time. One trip has at most as much.
MAX_PARSED_LENGTH = 16_000_000
# The length of a part in characters. Other threads run between one part and the next.
PART_LENGTH = 100_000
# What separates two objects of an array. No text in a trail or in events has it.
SEPARATOR = "},{"


class RenderedArray:
    """The JSON of an array of objects. They are parsed when they are read, a part at a time."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __iter__(self) -> Iterator[Document]:
        for part in self.parse():
            yield from part

    def parse(self) -> Iterator[list[Document]]:
        """Yield the objects in lists."""
        begin, last = 1, len(self.text) - 1
        while begin < last:
            end = self.text.find(SEPARATOR, begin + PART_LENGTH)
            end = last if end < 0 else end + 1
            yield orjson.loads(f"[{self.text[begin:end]}]")
            begin = end + 1


class RenderedTrip:
    """A trip: the JSON of its summary form, and of each other field that was read."""

    def __init__(self, summary: str, fragments: Mapping[str, str]) -> None:
        self._summary, self._fragments = summary, fragments
        self.length = len(summary) + sum(map(len, fragments.values()))

    def render(self) -> Iterator[str]:
        """Yield its JSON in parts, of which one may be a whole trail."""
        yield self._summary[:-1]
        for name, text in self._fragments.items():
            yield f',"{name}":'
            yield text
        yield "}"

    def parse(self) -> Document:
        """Return its fields, arrays as RenderedArray."""
        trip: Document = orjson.loads(self._summary)
        for name, text in self._fragments.items():
            trip[name] = RenderedArray(text) if text.startswith("[") else orjson.loads(text)
        return trip


class RenderedTrips:
    """The trips of a page: each a RenderedTrip, or an object that has one. Those of a long page are read later."""

    def __init__(self) -> None:
        self._trips, self._later, self._length = list[Any](), list[Callable[[], RenderedTrip]](), 0

    def add(self, trip: RenderedTrip | Document, length: int) -> None:
        """Add a trip of this length."""
        self._trips.append(trip)
        self._length += length

    def add_later(self, read: Callable[[], RenderedTrip]) -> None:
        """Add a trip that `read` returns."""
        self._later.append(read)

    @property
    def are_long(self) -> bool:
        """Whether no other trip should be read before it is its turn."""
        return self._length > MAX_WHOLE_LENGTH

    def read_all(self) -> bool:
        """Read all trips, or return False if several are too long to be parsed."""
        while self._later and self._length <= MAX_PARSED_LENGTH:
            trip = self._later.pop(0)()
            self.add(trip, trip.length)
        return not self._later and (self._length <= MAX_PARSED_LENGTH or len(self._trips) == 1)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the trips that were read."""
        return iter(self._trips)

    def take(self) -> Iterator[Any]:
        """Yield the trips, and read those of later when it is their turn. It keeps none of them."""
        while self._trips:
            yield self._trips.pop(0)
        while self._later:
            yield self._later.pop(0)()
