"""Rebuilding and verifying the read models of a fleet: the steps of `materialize`, each over the whole fleet."""

import heapq
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, DocumentCollection, Store
from schemas.periods import NO_DATE, PERIODS, PROFILE, midnight
from schemas.stored import make_id
from scripts.batches import batches
from scripts.materialize.days import Day
from scripts.materialize.drivers import make_list, make_profiles
from scripts.materialize.read_models import IDENTITY_FIELDS, Documents, Put, find_changed, put_periods, put_trips, write
from scripts.materialize.sources import InvalidSource, read_sources
from scripts.materialize.trip_details import read_trips
from scripts.mongodb.identities import BATCH_SIZE, find_identifiers
from scripts.mongodb.transactions import run_transaction

# Building the details of a trip reads its trail, which may have megabytes.
TRIPS_PER_TRANSACTION = 100
# A driver without a day in the batch counts as a day.
DAYS_PER_TRANSACTION = 500


class Outcome(NamedTuple):
    """What a step did: how many days with trips it put, which sources it left out, and which differences it found."""

    day_count: int
    invalid: list[InvalidSource]
    differences: list[str]


Step = Callable[[ClientSession, Put], tuple[int, list[InvalidSource]]]


def rebuild_fleet(store: Store, fleet: str, since: str = "") -> Iterator[Outcome]:
    """Write the read models of the days since a date, and of all drivers. Yields after each transaction."""
    return _walk(store, fleet, partial(_rebuild, store, fleet), since)


def verify_fleet(store: Store, fleet: str) -> Iterator[Outcome]:
    """Compare all read models of a fleet with its sources. Yields after each step.

    Imports may run at the same time: each step reads one committed state, so they cause no differences.
    """
    return _walk(store, fleet, partial(_verify, store))


def repair_fleet(store: Store, fleet: str) -> Iterator[Outcome]:
    """Compare all read models of a fleet with its sources, and write those of the steps that find differences."""
    return _walk(store, fleet, partial(_repair, store, fleet))


def _rebuild(store: Store, fleet: str, step: Step) -> Outcome:
    return Outcome(*run_transaction(store, fleet, lambda session: step(session, write)), [])


def _verify(store: Store, step: Step) -> Outcome:
    differences = list[str]()
    with store.snapshot() as session:
        return Outcome(*step(session, partial(_compare, differences)), differences)


def _repair(store: Store, fleet: str, step: Step) -> Outcome:
    outcome = _verify(store, step)
    return _rebuild(store, fleet, step)._replace(differences=outcome.differences) if outcome.differences else outcome


def _compare(
    differences: list[str], collection: DocumentCollection, session: ClientSession, fleet: str, documents: Documents
) -> None:
    """Add a line to `differences` for each stored document that differs."""
    names = IDENTITY_FIELDS[collection.name]
    # This matches all combinations of the values, so also documents with other identities.
    values = {name: {"$in": sorted({identity[index] for identity in documents})} for index, name in enumerate(names)}
    found = collection.find({"fleet": fleet, **values}, None if "_id" in names else {"_id": 0}, session=session)
    stored = {tuple(document[name] for name in names): document for document in found}
    for identity in sorted(documents):
        if documents[identity] != stored.get(identity):
            expected = "differs" if documents[identity] else "should not be there"
            problem = expected if identity in stored else "is missing"
            differences.append(f"{collection.name} {' '.join(map(str, identity))}: {problem}")


def _walk(store: Store, fleet: str, run: Callable[[Step], Outcome], since: str = "") -> Iterator[Outcome]:
    """Run the steps over all trips, then over all days and drivers, and at the end the step for the list."""
    for trip_ids in batches(_find_trip_ids(store, fleet, since), TRIPS_PER_TRANSACTION):
        yield run(partial(_put_trips, store, fleet, trip_ids))
    for days in batches(_find_days(store, fleet, since), DAYS_PER_TRANSACTION):
        yield run(partial(_put_days, store, fleet, days))
    yield run(partial(_put_list, store, fleet))


def _put_trips(
    store: Store, fleet: str, trip_ids: list[str], session: ClientSession, put: Put
) -> tuple[int, list[InvalidSource]]:
    invalid = list[InvalidSource]()
    trips = read_trips(store, session, fleet, trip_ids, invalid)
    _, days = find_changed(store, session, fleet, trips)
    # A comparison names an entry of a trip that is gone as one that should not be there.
    put_trips(store, session, fleet, trips, tombstones=put is write, put=put)
    if put is write:
        # In the same transaction. Once the details have their new version, nothing shows which days a trip has left,
        # and the step over all days may leave these out: it begins at `since`, and the command may be killed before.
        put_periods(store, session, fleet, days)
        drivers = {day.driver_id for day in days}
        put(store.driver_periods, session, fleet, make_profiles(store, session, fleet, drivers))
    return 0, invalid


def _put_days(
    store: Store, fleet: str, days: list[Day], session: ClientSession, put: Put
) -> tuple[int, list[InvalidSource]]:
    drivers, invalid = sorted({day.driver_id for day in days}), list[InvalidSource]()
    day_count = put_periods(store, session, fleet, [day for day in days if day.date != NO_DATE], put)
    put(store.driver_periods, session, fleet, make_profiles(store, session, fleet, drivers))
    # The days of a driver may be in several batches.
    named = [make_id(fleet, day.driver_id) for day in days if day.date == NO_DATE]
    for _ in read_sources(store.drivers, session, named, invalid):
        pass
    return day_count, invalid


def _put_list(store: Store, fleet: str, session: ClientSession, put: Put) -> tuple[int, list[InvalidSource]]:
    put(store.fleet_drivers, session, fleet, make_list(store, session, fleet))
    return 0, []


def _find_trip_ids(store: Store, fleet: str, since: str) -> Iterator[str]:
    """Yield the trip_id of each trip that started since a date and has a source or a read model, in order.

    Without a date, MongoDB reads only the indexes of `_id`.
    """
    starts = {"trip_start_time": {"$gte": midnight(since)}} if since else {}
    ends = {"trip_end_time": {"$gte": midnight(since)}} if since else {}
    streams = (
        find_identifiers(collection, fleet, match)
        for collection, match in ((store.trips, starts), (store.trip_details, starts), (store.trip_changes, ends))
    )
    for trip_id, _ in itertools.groupby(heapq.merge(*streams)):
        yield trip_id


def _find_days(store: Store, fleet: str, since: str) -> Iterator[Day]:
    """Yield, by driver and date, the days since a date that any document refers to, and every driver with NO_DATE.

    A stored week or month counts as its first date.
    """
    in_fleet = {"fleet": fleet}
    periods = [{**in_fleet, "period": name} for name in (*PERIODS, PROFILE)]
    streams = [
        (Day(driver_id, NO_DATE) for driver_id in find_identifiers(store.drivers, fleet)),
        _read_days(store.trip_details, in_fleet, "driver_id", "date"),
        *(_read_days(store.driver_periods, match, "driver_id", "start_date") for match in periods),
    ]
    for day, _ in itertools.groupby(heapq.merge(*streams)):
        if day.date == NO_DATE or day.date >= since:
            yield day


def _read_days(collection: DocumentCollection, match: Document, driver_field: str, date_field: str) -> Iterator[Day]:
    """Yield the days of a collection by driver and date."""
    order = [(driver_field, ASCENDING), (date_field, ASCENDING)]
    for document in collection.find(match, {"_id": 0, **dict(order)}, sort=order, batch_size=BATCH_SIZE):
        yield Day(document[driver_field], document[date_field])
