"""The one way from sources to read models: `materialize`, and its steps, which a rebuild runs over a whole fleet."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pymongo import DeleteOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, DocumentCollection, Store
from schemas.periods import NO_DATE, PROFILE, now_ms
from schemas.stored import make_id
from scripts.materialize.days import Day, days_of
from scripts.materialize.drivers import make_list, make_profiles
from scripts.materialize.feed import make_entries
from scripts.materialize.periods import PERIOD_TYPES, make_days, make_periods
from scripts.mongodb.transactions import Operation, write_all, write_by_id

# The fields that, together with the fleet, identify a document of each collection. An `_id` does so alone.
IDENTITY_FIELDS = {
    "trip_details": ("_id",),
    "trip_changes": ("_id",),
    "driver_periods": ("driver_id", "period", "start_date"),
    "fleet_drivers": ("offset",),
}
# The documents of a collection by their identity, the values of IDENTITY_FIELDS, and None for one that must not exist.
Documents = Mapping[tuple[Any, ...], Document | None]
# A function that does something with them: `write`, or a comparison with the stored ones.
Put = Callable[[DocumentCollection, ClientSession, str, Documents], None]
DAY_AND_VERSION = {"_id": 0, "trip_id": 1, "driver_id": 1, "date": 1, "version": 1}


def write(collection: DocumentCollection, session: ClientSession, fleet: str, documents: Documents) -> None:
    """Insert or replace documents, or delete those that are None. MongoDB writes only those that differ."""
    names = IDENTITY_FIELDS[collection.name]
    if names == ("_id",):
        write_by_id(collection, session, {_id: document for (_id,), document in documents.items()})
        return
    operations: list[Operation] = [
        ReplaceOne(match, document, upsert=True) if document else DeleteOne(match)
        for identity, document in documents.items()
        for match in [{"fleet": fleet, **dict(zip(names, identity, strict=True))}]
    ]
    write_all(collection, session, operations)


def materialize(
    store: Store,
    session: ClientSession,
    fleet: str,
    driver_ids: Iterable[str],
    details: Mapping[str, Document | None],
    *,
    tombstones: bool = True,
) -> int:
    """Write the read models of drivers and trips that differ, in the transaction that changed their sources.

    `details` are those of the trips by trip_id, or None for a trip without a valid source (`trip_details.read_trips`).
    The sources of the drivers are read here. `tombstones` says whether the change feed reports deletions. Returns how
    many trips and drivers differed: with 0, nothing was written. Raises click.ClickException for too many trips of a
    driver on a day.
    """
    changed, days = find_changed(store, session, fleet, details)
    if changed:
        put_trips(store, session, fleet, changed, tombstones=tombstones)
        store.fleets.update_one({"_id": fleet}, {"$set": {"trips_written_at": now_ms()}}, session=session)
    put_periods(store, session, fleet, days)
    changed_drivers = _write_profiles(store, session, fleet, {*driver_ids, *(day.driver_id for day in days)})
    if changed_drivers:
        write(store.fleet_drivers, session, fleet, make_list(store, session, fleet, changed_drivers))
    return len(changed) + len(changed_drivers)


def find_changed(
    store: Store, session: ClientSession, fleet: str, trips: Mapping[str, Document | None]
) -> tuple[dict[str, Document | None], set[Day]]:
    """Return the trips whose stored details differ, and the days that they have left or are on now."""
    match = {"_id": {"$in": [make_id(fleet, trip_id) for trip_id in trips]}}
    stored = {detail["trip_id"]: detail for detail in store.trip_details.find(match, DAY_AND_VERSION, session=session)}
    changed = {trip_id: trips[trip_id] for trip_id in trips if _differs(trips[trip_id], stored.get(trip_id))}
    left = [stored[trip_id] for trip_id in changed if trip_id in stored]
    return changed, days_of([*left, *filter(None, changed.values())])


def put_trips(
    store: Store,
    session: ClientSession,
    fleet: str,
    trips: Mapping[str, Document | None],
    *,
    tombstones: bool = True,
    put: Put = write,
) -> None:
    """Put the details of trips, and those of their entries in the change feed that differ."""
    put(store.trip_details, session, fleet, {(make_id(fleet, trip_id),): detail for trip_id, detail in trips.items()})
    entries = make_entries(store, session, fleet, trips, tombstones=tombstones)
    put(store.trip_changes, session, fleet, {(_id,): entry for _id, entry in entries.items()})


def put_periods(store: Store, session: ClientSession, fleet: str, days: Iterable[Day], put: Put = write) -> int:
    """Put the days, then their weeks and months. Returns how many of the days have trips."""
    days = list(days)
    documents = make_days(store, session, fleet, days)
    put(store.driver_periods, session, fleet, documents)
    for period_type in PERIOD_TYPES:
        put(store.driver_periods, session, fleet, make_periods(store, session, fleet, period_type, days))
    return sum(document is not None for document in documents.values())


def _write_profiles(store: Store, session: ClientSession, fleet: str, driver_ids: Iterable[str]) -> list[str]:
    """Write the profiles that differ, and return the drivers."""
    profiles = make_profiles(store, session, fleet, driver_ids)
    ids = [driver_id for driver_id, *_ in profiles]
    match = {"fleet": fleet, "period": PROFILE, "driver_id": {"$in": ids}, "start_date": NO_DATE}
    stored = {
        profile["driver_id"]: profile for profile in store.driver_periods.find(match, DAY_AND_VERSION, session=session)
    }
    changed = {
        identity: profile for identity, profile in profiles.items() if _differs(profile, stored.get(identity[0]))
    }
    write(store.driver_periods, session, fleet, changed)
    return [driver_id for driver_id, *_ in changed]


def _differs(document: Document | None, stored: Document | None) -> bool:
    if document is None or stored is None:
        return document is not stored
    return bool(document["version"] != stored["version"])
