"""Lists by cursor: a page begins after the last element of the page before it, in the order of a key.

A list is in the order of one text, its key, which each document has and an index begins with or has after what is the
same for the whole list. A list is what is between two keys, and a cursor has the two keys between which the rest is.
"""

import hmac
from collections.abc import Sequence
from typing import Any, NamedTuple

from marshmallow import ValidationError
from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession

from app.store import Document, DocumentCollection, Store, UnknownDrivers
from app.store.driver_periods import find_profiles
from app.store.scope import Scope
from schemas.cursor import INVALID_FOR_LIST, encode_cursor, sign

# How many entries of an index a page reads, if it has filters.
MAX_ENTRIES = 20_000


class Bounds(NamedTuple):
    """The keys between which a list is, or the rest of it; both are outside. `is_reversed`: newest first."""

    first: str
    last: str
    is_reversed: bool

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
    """The cursors of a list: they go with a scope, and with the list and its parameters."""

    scope: Scope
    feed_key: str
    query: tuple[Any, ...]

    @classmethod
    def of(cls, store: Store, session: ClientSession, scope: Scope, *query: Any) -> "Cursors":
        """Return the cursors of a list. `query` is which list it is and what it depends on, as JSON can have it."""
        state = store.fleets.find_one({"_id": scope.fleet}, {"feed_key": 1}, session=session) or {}
        return cls(scope, state.get("feed_key", ""), query)

    def read(self, cursor: tuple[Any, ...]) -> Bounds:
        """Return the bounds in a cursor. Raises ValidationError unless `make` of the same list has made it."""
        signature, *bounds = cursor
        # A fleet without a state has no pages, and no secret.
        if not self.feed_key or not hmac.compare_digest(str(signature).encode(), self._sign(bounds).encode()):
            raise ValidationError({"cursor": [INVALID_FOR_LIST]})
        return Bounds(*bounds)

    def make(self, bounds: Bounds) -> str:
        """Return the cursor of the page that begins the rest of the list, as text."""
        return encode_cursor(self.scope.identity, [self._sign(bounds), *bounds])

    def _sign(self, bounds: Sequence[Any]) -> str:
        return sign(self.feed_key, self.scope.identity, self.query, bounds)


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
    session: ClientSession,
    bounds: Bounds,
    visible: Document,
    filters: Document,
    limit: int,
    projection: Document | None = None,
) -> tuple[list[Document], Bounds | None]:
    """Return up to `limit` documents of a list, and the bounds of the rest of it, if there may be more.

    Nearly all documents should be `visible`. With `filters`, which few may meet, the page ends after MAX_ENTRIES
    entries of the index.
    """
    order, end = [(index.key, DESCENDING if bounds.is_reversed else ASCENDING)], None
    if filters:
        entries = {**index.match, index.key: bounds.match(None)}
        options: Any = {"sort": order, "skip": MAX_ENTRIES - 1, "limit": 1, "session": session}
        read = index.collection.find(entries, {"_id": 0, index.key: 1}, **options).hint(index.hint)
        end = next((document[index.key] for document in read), None)
    options = {"sort": order, "limit": limit + 1, "batch_size": limit + 2, "session": session}
    wanted = {**index.match, index.key: bounds.match(end), **visible, **filters}
    found = list(index.collection.find(wanted, projection, **options).hint(index.hint))
    if len(found) > limit:
        end = found[limit - 1][index.key]
    return found[:limit], None if end is None else bounds.after(end)


def match_known_drivers(store: Store, session: ClientSession, scope: Scope, driver_ids: Sequence[str]) -> Document:
    """Return the condition that something is of these drivers, or without any, of the scope. Raises UnknownDrivers."""
    if driver_ids:
        known = find_profiles(store, session, scope.match_drivers(driver_ids))
        if unknown := [driver_id for driver_id in driver_ids if driver_id not in known]:
            raise UnknownDrivers(unknown)
        return {"driver_id": {"$in": list(driver_ids)}}
    return {"driver_id": scope.driver_id} if scope.driver_id is not None else {}
