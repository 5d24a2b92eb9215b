"""Lists by cursor: a page begins after the last element of the page before it, in the order of a key.

Each list is sorted by one text field, its key. Its index has the key first, or after fields that are the same for the
whole list. A list is what is between two keys, and a cursor has the two keys between which the rest is.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from marshmallow import ValidationError
from pymongo import ASCENDING, DESCENDING

from app.store import Document, DocumentCollection, Result, Store
from app.store.driver_periods import check_known, find_profiles
from app.store.groups import find_drivers_of_group
from app.store.scope import Scope
from schemas.cursor import INVALID_FOR_LIST, encode_cursor, is_signature, sign
from schemas.plausibility import COUNTED

# How many entries of an index a page with filters reads, in steps: most pages are full after the first one. Each step
# reads its entries twice, so all of them together read less than 20,000.
STEPS = (500, 9_000)


class Bounds(NamedTuple):
    """The keys between which a list is, or the rest of it; both are outside. `is_reversed`: newest first.

    `last_date`: the last date of a list whose index has dates before the key, so that it stays one list over midnight.
    """

    first: str
    last: str
    is_reversed: bool
    last_date: str = ""

    def after(self, key: str) -> "Bounds":
        """Return the bounds of what comes after a key."""
        return self._replace(last=key) if self.is_reversed else self._replace(first=key)

    def match(self, end: str | None) -> Document:
        """Return a condition on the key: from the first bound to the end, which is inside, or to the other bound."""
        between = {"$gt": self.first, "$lt": self.last}
        if end is None:
            return between
        return {"$gte": end, "$lt": self.last} if self.is_reversed else {"$gt": self.first, "$lte": end}


class Cursors(NamedTuple):
    """The cursors of a list: they go with a scope, and with the list and its parameters.

    `policy` is what the sums of the fleet do with implausible trips, which is in the same document as the secret.
    """

    scope: Scope
    feed_key: str
    policy: str
    query: tuple[Any, ...]

    @classmethod
    def of(cls, store: Store, scope: Scope, *query: Any) -> "Cursors":
        """Return the cursors of a list. `query` is which list it is and what it depends on, as JSON can have it."""
        fields = {"feed_key": 1, "implausible_trips": 1}
        state = store.fleets.find_one({"_id": scope.fleet}, fields) or {}
        return cls(scope, state.get("feed_key", ""), state.get("implausible_trips", COUNTED), query)

    def read(self, cursor: tuple[Any, ...] | None) -> Bounds | None:
        """Return the bounds in a cursor, if there is one. Raises ValidationError unless this list made it."""
        if cursor is None:
            return None
        signature, *bounds = cursor
        # A fleet without a state has no pages, and no secret.
        if not is_signature(signature, self.feed_key, self.scope.identity, self.query, bounds):
            raise ValidationError({"cursor": [INVALID_FOR_LIST]})
        return Bounds(*bounds)

    def make_result(self, rest: Bounds | None, content: Document, versions: Iterable[str]) -> Result:
        """Return a page, of whose list `rest` is left. `versions` are those of what is on the page."""
        next_cursor = None
        if rest:
            signature = sign(self.feed_key, self.scope.identity, self.query, rest)
            next_cursor = encode_cursor(self.scope.identity, [signature, *rest])
        version = " ".join([str(next_cursor), *versions])
        return Result(version, {**content, "next_cursor": next_cursor}, next_cursor=next_cursor)


class KeyIndex(NamedTuple):
    """The index that finds a list: the collection, the field with the key, and the name or the fields of the index.

    `match` is the condition on the fields of the index before the key.
    """

    collection: DocumentCollection
    key: str
    hint: Any
    match: Document


def find_page(
    index: KeyIndex,
    bounds: Bounds,
    visible: Document,
    filters: Document,
    limit: int,
    projection: Document | None = None,
    max_bytes: float = math.inf,
) -> tuple[list[Document], Bounds | None]:
    """Return up to `limit` documents of a list, and the bounds of the rest of it, if there may be more.

    The page ends before the text in its documents exceeds `max_bytes`, but after the first document. Nearly all
    documents should be `visible`. With `filters`, which few may meet, the page also ends after some entries (STEPS).
    """
    order = [(index.key, DESCENDING if bounds.is_reversed else ASCENDING)]
    options: Any = {"sort": order}
    found, size = list[Document](), 0
    for entries in STEPS if filters else (0,):
        end = _find_end(index, bounds, entries, options) if entries else None
        wanted, count = {**index.match, index.key: bounds.match(end), **visible, **filters}, limit + 1 - len(found)
        documents = index.collection.find(wanted, projection, limit=count, batch_size=count + 1, **options)
        for document in documents.hint(index.hint):
            # For a page of many small documents, the sum takes a tenth of the time.
            if max_bytes < math.inf:
                size += sum(len(value) for value in document.values() if isinstance(value, str))
            if len(found) == limit or (found and size > max_bytes):
                return found, bounds.after(found[-1][index.key])
            found.append(document)
        if end is None:
            return found, None
        bounds = bounds.after(end)
    return found, bounds


def _find_end(index: KeyIndex, bounds: Bounds, entries: int, options: Mapping[str, Any]) -> str | None:
    """Return the last key of so many entries of the index, or None if there are fewer."""
    match, key = {**index.match, index.key: bounds.match(None)}, {"_id": 0, index.key: 1}
    found = index.collection.find(match, key, skip=entries - 1, limit=1, **options).hint(index.hint)
    return next((document[index.key] for document in found), None)


def match_known_drivers(store: Store, scope: Scope, driver_ids: Sequence[str], group: str | None) -> Document:
    """Return the condition that something is of these drivers or of a group, or without any, of the scope.

    Raises UnknownRecord.
    """
    if group is not None:
        return {"driver_id": {"$in": find_drivers_of_group(store, scope, group)}}
    if driver_ids:
        check_known(driver_ids, find_profiles(store, scope.match_drivers(driver_ids)))
        return {"driver_id": {"$in": list(driver_ids)}}
    return {"driver_id": scope.driver_id} if scope.driver_id is not None else {}
