"""Helpers that write into a store and read its content."""

from typing import Any

import bson
from pymongo.database import Database

from app.store import READ_MODELS, SOURCES, Store
from schemas.driver import ImportedDriver
from schemas.trip import ImportedTrip
from scripts.admin import keys
from scripts.materialize.write_sources import prepare_driver, prepare_trip, write_drivers, write_trips
from scripts.mongodb.memory_store import memory_client

# The fields that depend on the way to a state, and what matches all documents but the tombstones of the feed.
OF_STATE, OF_ENTRIES = (
    ("writes", "written_at", "trips_written_at", "feed_key", "erasures"),
    ("change", "replaced", "checksum"),
)
HISTORY = dict.fromkeys((*OF_STATE, *OF_ENTRIES), 0)
PRESENT = {"deleted_at": {"$exists": False}}
# Making the schema of a trip takes as long as loading one.
DRIVER, TRIP = ImportedDriver(), ImportedTrip()
DATA = (*SOURCES, *READ_MODELS, "fleets")


def load(db: Database, *trips: dict[str, Any], drivers: Any = (), fleet: str = "f1") -> None:
    """Load documents in import format: the drivers in one transaction, then the trips in another one."""
    store = Store.of(db)
    if drivers:
        write_drivers(store, fleet, [prepare_driver(fleet, DRIVER.load(driver)) for driver in drivers])
    if trips:
        write_trips(store, fleet, [prepare_trip(fleet, TRIP.load(trip)) for trip in trips])


def issue_key(db: Database, fleet: str = "f1", driver_id: str | None = None) -> str:
    """Return a new key of the fleet, or of one driver of it."""
    if driver_id is None:
        return keys.issue_key(Store.of(db), fleet)
    (key,) = keys.issue_driver_keys(Store.of(db), fleet, [driver_id])
    return key


def with_canaries(document: Any) -> Any:
    """Return a document with a canary in every object of it."""
    if isinstance(document, dict):
        return {**{name: with_canaries(value) for name, value in document.items()}, "canary": "tweet"}
    return [with_canaries(item) for item in document] if isinstance(document, list) else document


def put_canaries(db: Database) -> None:
    """Put a canary into every object of the sources and read models, past the validators."""
    options = {} if isinstance(db.client, type(memory_client())) else {"bypass_document_validation": True}
    for name in DATA:
        for document in list(db[name].find()):
            keys = {key: document[key] for key in ("_id", "fleet") if key in document}
            db[name].replace_one({"_id": document["_id"]}, {**with_canaries(document), **keys}, **options)


def everything(db: Database) -> dict[str, list[bytes]]:
    """Return the BSON of all documents of sources and read models, `_id` included, without their HISTORY."""
    return _encoded(db, HISTORY)


def contents(db: Database) -> dict[str, list[bytes]]:
    """Return the same without `_id`, which a document that is written again may have another of."""
    return _encoded(db, {**HISTORY, "_id": 0})


def _encoded(db: Database, left_out: dict[str, int]) -> dict[str, list[bytes]]:
    return {name: sorted(map(bson.encode, db[name].find(PRESENT, left_out))) for name in DATA}
