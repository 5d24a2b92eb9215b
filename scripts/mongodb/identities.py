"""The `_id` of sources, which is their identity: the fleet, a slash and an identifier (`schemas.stored.make_id`)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pymongo import ASCENDING

from app.store import DocumentCollection
from schemas.fields import SURROGATE

# Documents per reply of MongoDB. Small, because MongoDB closes a cursor that is idle for 10 minutes.
BATCH_SIZE = 1_000


def split_id(_id: Any) -> tuple[str, str] | None:
    """Return the fleet and the identifier of an `_id`, or None if it belongs to no fleet or is not UTF-8."""
    # What is not UTF-8 was read with surrogates, which MongoDB does not take back.
    fleet, slash, identifier = _id.partition("/") if isinstance(_id, str) else ("", "", "")
    return None if not fleet or not slash or SURROGATE.search(_id) else (fleet, identifier)


def find_identifiers(
    collection: DocumentCollection, fleet: str, match: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[str]:
    """Yield the identifiers in the `_id` of matching documents of a fleet, in code point order. Index: (_id).

    One that is not UTF-8 is left out: `find_unidentified` yields its document.
    """
    ids = {"_id": ids_of_fleet(fleet), **match}
    for document in collection.find(ids, {"_id": 1}, sort=[("_id", ASCENDING)], batch_size=BATCH_SIZE):
        if identity := split_id(document["_id"]):
            yield identity[1]


def ids_of_fleet(fleet: str) -> dict[str, str]:
    """Return the condition on the `_id` of a fleet's documents."""
    # In the order of MongoDB, 0 is the character after the slash.
    return {"$gte": f"{fleet}/", "$lt": f"{fleet}0"}
