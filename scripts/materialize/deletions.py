"""Deleting what the fleet must not keep: everything of a driver, and the trips before a date."""

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.periods import PERIODS
from scripts.batches import batches
from scripts.materialize.dates import Day, midnight
from scripts.materialize.fleet_drivers import count_erasure, rebuild_list
from scripts.materialize.ranking_counts import rebuild_counts
from scripts.materialize.rebuild import BATCH_SIZE
from scripts.materialize.trips import delete_trips, rewrite_trips
from scripts.materialize.update import run_transaction, update_read_models

# More than TRIPS_PER_TRANSACTION of a rebuild, because a deletion reads no trails.
DELETIONS_PER_TRANSACTION = 500
TRIP_ID = {"_id": 0, "trip_id": 1}
OLDEST_FIRST = [(name, ASCENDING) for name in ("driver_id", "trip_start_time", "trip_id")]
# The collections that may have the identifier of a driver, and the field that has it. A tombstone of the change feed
# keeps it for 30 days, so that clients learn of the deletion.
DRIVER_ID_FIELDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "drivers": ("driver_id", {}),
    "trips": ("driver_id", {}),
    "trip_details": ("driver_id", {}),
    "trip_changes": ("driver_id", {"deleted_at": {"$exists": False}}),
    "driver_periods": ("driver_id", {"period": {"$exists": True}}),
    "fleet_drivers": ("driver_ids", {}),
    "ranking_counts": ("bounds.driver_id", {}),
}


def count_documents_of_driver(store: Store, fleet: str, driver_id: str) -> dict[str, int]:
    """Return how many documents of each collection have the identifier of a driver. Collections without are left out.

    Scans the fleet's entries of the change feed, and its small collections.
    """
    counts = {
        name: store.db[name].count_documents({"fleet": fleet, field: driver_id, **match})
        for name, (field, match) in DRIVER_ID_FIELDS.items()
    }
    return {name: count for name, count in counts.items() if count}


def erase_driver(store: Store, fleet: str, driver_id: str) -> Iterator[int]:
    """Delete a driver, the driver's trips and all that is derived from them.

    Each step is a transaction. The last one deletes the driver, so a call after a kill does the rest. Yields after each
    step the number of trips that it deleted.
    """
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    for trip_ids in batches(_find_trip_ids(store, of_driver), DELETIONS_PER_TRANSACTION):
        yield delete_trips(store, fleet, trip_ids, {"driver_id": driver_id})
        # Another program may have given a trip to another driver, with the read models not updated yet.
        rewrite_trips(store, fleet, trip_ids)
    run_transaction(store, fleet, partial(_erase_rest, store, fleet=fleet, driver_id=driver_id))
    yield 0


def _find_trip_ids(store: Store, of_driver: Document) -> Iterator[str]:
    """Yield the trip_id of each trip of a driver, and of each read model of one."""
    entries = {**of_driver, **DRIVER_ID_FIELDS["trip_changes"][1]}
    for trip in itertools.chain(
        store.trips.find(of_driver, TRIP_ID, sort=OLDEST_FIRST, batch_size=BATCH_SIZE),
        store.trip_details.find(of_driver, TRIP_ID, batch_size=BATCH_SIZE),
        store.trip_changes.find(entries, TRIP_ID, batch_size=BATCH_SIZE),
    ):
        yield trip["trip_id"]


def _erase_rest(store: Store, session: ClientSession, fleet: str, driver_id: str) -> None:
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    store.drivers.delete_many(of_driver, session=session)
    match = {**of_driver, "period": {"$in": PERIODS}}
    periods = store.driver_periods.find(match, {"_id": 0, "start_date": 1}, session=session)
    days = {Day(driver_id, period["start_date"]) for period in periods}
    update_read_models(store, session, fleet, days, [driver_id])
    # They have the driver only if they were wrong before.
    for counts in list(store.ranking_counts.find({"fleet": fleet, "bounds.driver_id": driver_id}, session=session)):
        rebuild_counts(store, session, fleet, counts["period"], counts["start_date"])
    if store.fleet_drivers.find_one({"fleet": fleet, "driver_ids": driver_id}, {"_id": 1}, session=session):
        rebuild_list(store, session, fleet)
    count_erasure(store, session, fleet)


def count_trips_before(store: Store, fleet: str, date: str) -> int:
    """Return how many trips of a fleet started before a UTC date. Reads only the index."""
    return store.trips.count_documents(_match_before(fleet, date), hint="driver_trips")


def prune_trips(store: Store, fleet: str, date: str) -> Iterator[int]:
    """Delete the trips that started before a UTC date, and all that is derived from them.

    Each step is a transaction. The change feed reports no deletions. Yields after each step the number of trips that it
    deleted.
    """
    match = _match_before(fleet, date)
    trips = store.trips.find(match, TRIP_ID, sort=OLDEST_FIRST, batch_size=BATCH_SIZE).hint("driver_trips")
    for trip_ids in batches((trip["trip_id"] for trip in trips), DELETIONS_PER_TRANSACTION):
        yield delete_trips(store, fleet, trip_ids, match, in_feed=False)


def _match_before(fleet: str, date: str) -> Document:
    return {"fleet": fleet, "trip_start_time": {"$lt": midnight(date)}}
