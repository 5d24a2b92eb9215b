"""Documents of read models that another program has damaged so that nothing of the fleet would find them.

The fields by which a document is found are text, but for the `offset` of a block of the list. Whatever has other values
there belongs to no trip, driver or date. It is not compared with anything, and is deleted by its `_id`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from app.store import READ_MODELS, Document, DocumentCollection, Store
from schemas.identity import ids_of_fleet
from schemas.periods import PERIODS, PROFILE
from scripts.mongodb.connection import find_fleets


def is_identified(document: Document, *names: str) -> bool:
    """Return whether these fields of a stored document are text."""
    return all(isinstance(document.get(name), str) for name in names)


def _has_other_type(name: str, *types: str) -> list[Document]:
    # `$type` also matches the elements of an array.
    return [{"$nor": [{name: {"$type": each}} for each in types]}, {name: {"$type": "array"}}]


# What such documents of a fleet match, besides the fleet. Each is about the fields of an index.
CONDITIONS: dict[str, Document] = {
    "trip_events": {"$or": [*_has_other_type("trip_id", "string"), {"_id": {"$type": "object"}}]},
    "driver_periods": {
        "$or": [
            *_has_other_type("driver_id", "string"),
            *_has_other_type("period", "string"),
            {"period": {"$nin": [PROFILE, *PERIODS]}},
            {"period": {"$in": PERIODS}, "$or": _has_other_type("start_date", "string")},
            {"period": PROFILE, "start_date": {"$ne": None}},
        ]
    },
    "fleet_periods": {
        "$or": [
            condition for name in ("segment", "period", "start_date") for condition in _has_other_type(name, "string")
        ]
    },
    "fleet_drivers": {"$or": _has_other_type("offset", "int", "long")},
}


def find_unidentified(store: Store, fleet: str, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the collection and the `_id` of each such document of a fleet in these collections of read models."""
    for name in names:
        collection, condition = store.db[name], CONDITIONS.get(name)
        if condition is None and _has_other_ids(collection, fleet):
            condition = {"_id": {"$not": {"$regex": f"^{re.escape(fleet)}/"}}}
        if condition:
            for document in collection.find({"fleet": fleet, **condition}, {"_id": 1}):
                yield name, document["_id"]


def _has_other_ids(collection: DocumentCollection, fleet: str) -> bool:
    """Return whether a collection has documents of a fleet whose `_id` does not begin with it.

    It compares numbers of documents, which indexes have. The documents may be large.
    """
    ids = {"_id": ids_of_fleet(fleet)}
    return collection.count_documents({"fleet": fleet}) != collection.count_documents(ids)


def find_of_no_fleet(store: Store) -> Iterator[tuple[str, Any]]:
    """Yield the collection and the `_id` of each document of a read model that belongs to no fleet."""
    fleets = find_fleets(store)
    for name in READ_MODELS:
        for document in store.db[name].find({"fleet": {"$nin": fleets}}, {"_id": 1}):
            yield name, document["_id"]
