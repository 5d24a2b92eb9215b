"""Lists by cursor: a page begins after the last element of the page before it, in the order of a key.

Each list is sorted by one text field, its key. Its index has the key first, or after fields that are the same for the
whole list. A list is what is between two keys, and a cursor has the key up to which the client has read it.

A list of one driver is read by an index that begins with the driver: so it costs what it returns, and a key of a driver
gets no cursor that has to do with other drivers. Other lists are read by the index of the fleet.
"""

import datetime
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from marshmallow import ValidationError
from pymongo import ASCENDING, DESCENDING
from pymongo.cursor import Cursor

from app.store import Document, DocumentCollection, Result, Store
from app.store.driver_periods import check_known, find_profiles
from app.store.fleets import get_zone_of
from app.store.groups import check_group, find_drivers_in_group
from app.store.scope import Scope
from schemas.cursor import INVALID_FOR_LIST, ListCursor, encode_list_cursor, is_signature, sign
from schemas.fields import MAX_EPOCH_MS
from schemas.periods import dates_from, get_today, midnight

# A page reads at most so many entries of an index.
MAX_ENTRIES = 20_000
# The entries of the first step of a page, for each of its elements. Most filters leave a full page of them.
FIRST_ENTRIES = 10


class Bounds(NamedTuple):
    """The keys between which a list is, or the rest of it; both are outside. `is_reversed`: newest first."""

    first: str
    last: str
    is_reversed: bool

    def after(self, key: str | None) -> "Bounds":
        """Return the bounds of what comes after a key, or the same without one."""
        if key is None:
            return self
        return self._replace(last=key) if self.is_reversed else self._replace(first=key)

    def split(self, key: str) -> list["Bounds"]:
        """Return what is before a key and what is after it, in the order of the list. The key is that of no element."""
        parts = [self._replace(last=min(self.last, key)), self._replace(first=max(self.first, key))]
        return parts[::-1] if self.is_reversed else parts

    def match(self, end: str | None) -> Document:
        """Return a condition on the key: from the first bound to the end, which is inside, or to the other bound."""
        between = {"$gt": self.first, "$lt": self.last}
        if end is None:
            return between
        return {"$gte": end, "$lt": self.last} if self.is_reversed else {"$gt": self.first, "$lte": end}


class CursorList(NamedTuple):
    """A list, which the client has read up to a `position`, or None: the key of an element.

    `zone` is the time zone of its dates, and `day` the date on which the client began it. `query` is which list it is
    and what it depends on, as JSON can have it. Its cursors are signed with the `feed_key` of the fleet.
    """

    scope: Scope
    zone: ZoneInfo
    day: datetime.date
    position: str | None
    feed_key: str
    query: tuple[Any, ...]

    @classmethod
    def open(cls, store: Store, scope: Scope, cursor: ListCursor | None, *query: Any) -> "CursorList":
        """Return the list of a request. Raises ValidationError unless this list made the cursor, if there is one."""
        state = store.fleets.find_one({"_id": scope.fleet}, {"feed_key": 1, "time_zone": 1}) or {}
        zone, feed_key = get_zone_of(store, state), state.get("feed_key", "")
        if cursor is None:
            return cls(scope, zone, get_today(zone), None, feed_key, query)
        opened = cls(scope, zone, cursor.day, cursor.position, feed_key, query)
        # A fleet without a state has no pages, and no secret.
        if not is_signature(cursor.signature, feed_key, *opened._signed(cursor.position)):
            raise ValidationError({"cursor": [INVALID_FOR_LIST]})
        return opened

    def _signed(self, position: str) -> tuple[Any, ...]:
        return self.scope.identity, self.query, str(self.day), position

    def get_window_ms(self, start_date: str, end_date: str | None) -> tuple[int, int]:
        """Return when the dates from one to another begin and end (epoch ms). Without a date they do not end."""
        end_ms = midnight(dates_from(end_date, 2)[-1], self.zone) if end_date else MAX_EPOCH_MS + 1
        return midnight(start_date, self.zone), end_ms

    def make_result(self, position: str | None, content: Document, versions: Iterable[str]) -> Result:
        """Return a page that ends at a position, or None at the end. `versions` are those of what is on the page."""
        next_cursor = None
        if position is not None:
            signature = sign(self.feed_key, *self._signed(position))
            next_cursor = encode_list_cursor(ListCursor(signature, self.day, position))
        version = " ".join([str(next_cursor), *versions])
        return Result(version, {**content, "next_cursor": next_cursor}, next_cursor=next_cursor)


class Range(NamedTuple):
    """The part of a list that is between two keys of an index: the collection, and the name or fields of the index.

    `key` is the field with the key, and `match` the condition on the fields of the index before it.
    """

    collection: DocumentCollection
    hint: Any
    match: Document
    key: str
    bounds: Bounds

    @property
    def order(self) -> list[tuple[str, int]]:
        """The order of the list, as MongoDB sorts."""
        return [(self.key, DESCENDING if self.bounds.is_reversed else ASCENDING)]

    def find(self, match: Document, projection: Document | None, *, limit: int, skip: int = 0) -> Cursor[Document]:
        """Return documents that match, in the order of the list."""
        options: Any = {"sort": self.order, "skip": skip, "limit": limit, "batch_size": limit + 1}
        return self.collection.find({**self.match, **match}, projection, **options).hint(self.hint)


class Conditions(NamedTuple):
    """Which elements a list has: those of trips that ended by `max_end_ms` (epoch ms) and meet the `filters`.

    They are of drivers of the `group` of the scope, if there is one.
    """

    scope: Scope
    max_end_ms: int
    filters: Document
    group: str | None = None


def find_page(
    store: Store,
    ranges: Sequence[Range],
    conditions: Conditions,
    limit: int,
    projection: Document | None = None,
    max_bytes: float = math.inf,
) -> tuple[list[Document], str | None]:
    """Return up to `limit` documents of a list, and the key at which the page ends, or None if it is the last one.

    The ranges are those of the list, in its order. The page also ends after some entries of an index, of which all
    reads together are at most MAX_ENTRIES, and before the text in its documents exceeds `max_bytes`, but after the
    first document. A projection has `trip_end_time`.
    """
    found, size, position = list[Document](), 0, None
    for part in ranges:
        for key, document in _read(store, part, conditions, limit, len(ranges), projection):
            position = key
            if document is None:
                continue
            # For a page of many small documents, the sum takes a tenth of the time.
            if max_bytes < math.inf:
                size += sum(len(value) for value in document.values() if isinstance(value, str))
            if len(found) == limit or (found and size > max_bytes):
                return found, found[-1][part.key]
            found.append(document)
        if position is not None:
            break
    return found, position


def _read(
    store: Store, part: Range, conditions: Conditions, limit: int, range_count: int, projection: Document | None
) -> Iterator[tuple[str | None, Document | None]]:
    """Yield the first documents of a range that meet the conditions, each with its key.

    At the end come the key of the last entry that was read, or None if it is the last one of the range, and None.
    """
    bounds, end = part.bounds, None
    is_filtered = bool(conditions.filters) or conditions.group is not None
    if not is_filtered:
        # Nearly all entries are visible, so this is the whole page.
        count = 0
        for document in part.find({part.key: bounds.match(None)}, projection, limit=limit + 1):
            count, end = count + 1, str(document[part.key])
            yield end, document if document["trip_end_time"] <= conditions.max_end_ms else None
        if count <= limit:
            yield None, None
            return
        bounds = bounds.after(end)
    # Each entry is read to find the end of a step, to find what meets the conditions, and to find whose it is.
    entries = MAX_ENTRIES // (2 if conditions.group is None else 3) // range_count - limit
    first = min(FIRST_ENTRIES * (limit + 1), entries // 2)
    for size in (first, entries - first):
        found = part.find({part.key: bounds.match(None)}, {"_id": 0, part.key: 1}, skip=size - 1, limit=1)
        end = next((str(entry[part.key]) for entry in found), None)
        step = {part.key: bounds.match(end), **_match(store, part, bounds.match(end), conditions)}
        for document in part.find(step, projection, limit=limit + 1):
            yield str(document[part.key]), document
        yield end, None
        if end is None:
            return
        bounds = bounds.after(end)


def _match(store: Store, part: Range, keys: Document, conditions: Conditions) -> Document:
    """Return what matches the elements of a list between some keys.

    The drivers of a group are looked for among those who have entries there, so that no request sends all of them.
    """
    match = {"trip_end_time": {"$lte": conditions.max_end_ms}, **conditions.filters}
    if conditions.group is None:
        return match
    pipeline: list[Document] = [
        {"$match": {**part.match, part.key: keys, **match}},
        {"$group": {"_id": "$driver_id"}},
    ]
    driver_ids = [found["_id"] for found in part.collection.aggregate(pipeline, hint=part.hint)]
    return {**match, "driver_id": {"$in": find_drivers_in_group(store, conditions.scope, conditions.group, driver_ids)}}


def match_drivers(
    store: Store, scope: Scope, driver_ids: Sequence[str], group: str | None
) -> tuple[Document, Document]:
    """Return what a list has of drivers: the first fields of its index, and the condition that these leave.

    The fields have the driver if the list is of one alone. Raises UnknownRecord for drivers and for the group.
    """
    if group is not None:
        check_group(store, scope, group)
    if driver_ids:
        check_known(driver_ids, find_profiles(store, scope.match_drivers(driver_ids)))
    if scope.driver_id is not None:
        return scope.match(), {}
    if len(driver_ids) == 1:
        return {**scope.match(), "driver_id": driver_ids[0]}, {}
    return scope.match(), {"driver_id": {"$in": list(driver_ids)}} if driver_ids else {}
