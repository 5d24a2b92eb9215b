"""Building all read models of a fleet again from its sources."""

import heapq
import itertools
from collections.abc import Container, Iterator
from functools import partial

from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, DocumentCollection, Store
from schemas.fields import MIN_EPOCH_MS
from schemas.periods import ANY_DATE, PERIODS, PROFILE
from scripts.batches import batches
from scripts.materialize.dates import Day, days_of, midnight
from scripts.materialize.documents import make_detail_of_source
from scripts.materialize.feed import delete_from_feed, find_without_source, update_feed
from scripts.materialize.fleet_drivers import rebuild_list
from scripts.materialize.ranking_counts import find_rankings, rebuild_counts
from scripts.materialize.trips import write_documents
from scripts.materialize.update import run_transaction, update_read_models

# Building the details of a trip reads its trail, which may have megabytes.
TRIPS_PER_TRANSACTION = 100
# A driver without a day in the batch counts as a day.
DAYS_PER_TRANSACTION = 500
# Documents per reply of MongoDB. Small, because MongoDB closes a cursor that is idle for 10 minutes.
BATCH_SIZE = 1_000


def delete_orphans(store: Store, fleet: str) -> Iterator[int]:
    """Delete the details of trips that have no source document in the fleet. Yields 0 after each transaction.

    Do that in all fleets before one of them is rebuilt: a trip that another program moved to another fleet has details
    with the same `_id` there.
    """
    for trip_ids in batches(find_orphans(store, fleet), TRIPS_PER_TRANSACTION):
        run_transaction(store, fleet, partial(_delete_orphans, store, fleet=fleet, trip_ids=trip_ids))
        yield 0


def rebuild_fleet(store: Store, fleet: str, since: str = "") -> Iterator[int]:
    """Write the read models of the days since a date, and of all drivers.

    Each step is a transaction. Yields after each step the number of days with trips that it wrote.
    """
    yield from delete_orphans(store, fleet)
    for trip_ids in batches(find_deleted(store, fleet), TRIPS_PER_TRANSACTION):
        run_transaction(store, fleet, partial(delete_from_feed, store, fleet=fleet, trip_ids=trip_ids))
        yield 0
    for trip_ids in batches(find_trip_ids(store, fleet, since), TRIPS_PER_TRANSACTION):
        run_transaction(store, fleet, partial(_write_details, store, fleet=fleet, trip_ids=trip_ids))
        yield 0
    yield from rebuild_summaries(store, fleet, since)


def rebuild_summaries(store: Store, fleet: str, since: str = "", left_out: Container[str] = ()) -> Iterator[int]:
    """Write the read models that are built from the details of trips and from drivers, but for those `left_out`.

    Yields as `rebuild_fleet` does.
    """
    for days in batches(find_days(store, fleet, since), DAYS_PER_TRANSACTION):
        dated, drivers = [day for day in days if day.date], {day.driver_id for day in days}
        yield run_transaction(
            store,
            fleet,
            partial(update_read_models, store, fleet=fleet, days=dated, driver_ids=drivers, left_out=left_out),
        )
    run_transaction(store, fleet, partial(rebuild_list, store, fleet=fleet))
    for period, start_date in find_rankings(store, fleet):
        run_transaction(store, fleet, partial(rebuild_counts, store, fleet=fleet, period=period, start_date=start_date))


def find_trip_ids(store: Store, fleet: str, since: str = "") -> Iterator[str]:
    """Yield the trip_id of every trip that started on the date `since` or later.

    MongoDB reads only an index: (fleet, trip_id), or (fleet, driver_id, trip_start_time, trip_id).
    """
    match = {"fleet": fleet, **({"trip_start_time": {"$gte": midnight(since)}} if since else {})}
    trips = store.trips.find(match, {"_id": 0, "trip_id": 1}, batch_size=BATCH_SIZE)
    for trip in trips.hint("driver_trips" if since else "trip"):
        yield trip["trip_id"]


def find_orphans(store: Store, fleet: str) -> Iterator[str]:
    """Yield the trip_id of the trip details that have no source document."""
    details = store.trip_details.find({"fleet": fleet}, {"_id": 0, "trip_id": 1}, batch_size=BATCH_SIZE)
    for batch in batches((detail["trip_id"] for detail in details), BATCH_SIZE):
        yield from find_without_source(store, fleet, batch)


def find_deleted(store: Store, fleet: str) -> Iterator[str]:
    """Yield the trip_id of the trips in the change feed that have no source document. Tombstones have none anyway."""
    match = {"fleet": fleet, "trip_end_time": {"$gte": MIN_EPOCH_MS}}
    for entries in batches(store.trip_changes.find(match, {"_id": 0, "trip_id": 1}, batch_size=BATCH_SIZE), BATCH_SIZE):
        yield from find_without_source(store, fleet, [entry["trip_id"] for entry in entries])


def find_days(store: Store, fleet: str, since: str = "") -> Iterator[Day]:
    """Yield, by driver and date, the days since a date that any document refers to, and every driver with ANY_DATE.

    A stored week or month counts as its first date.
    """
    in_fleet = {"fleet": fleet}
    periods = [{**in_fleet, "period": name} for name in (*PERIODS, PROFILE)]
    streams = [
        _read_days(store.drivers, in_fleet, "driver_id"),
        _read_days(store.trip_details, in_fleet, "driver_id", "date"),
        *(_read_days(store.driver_periods, match, "driver_id", "start_date") for match in periods),
    ]
    for day, _ in itertools.groupby(heapq.merge(*streams)):
        if day.date == ANY_DATE or day.date >= since:
            yield day


def _read_days(
    collection: DocumentCollection, match: Document, driver_field: str, date_field: str | None = None
) -> Iterator[Day]:
    """Yield the days of a collection by driver and date, with ANY_DATE if it has no dates."""
    names = [driver_field, *([date_field] if date_field else [])]
    order = [(name, ASCENDING) for name in names]
    projection = {"_id": 0, **dict.fromkeys(names, 1)}
    for document in collection.find(match, projection, sort=order, batch_size=BATCH_SIZE):
        yield Day(document[driver_field], document[date_field] if date_field else ANY_DATE)


def _delete_orphans(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> None:
    """Delete the details of those trips that still have no source document, and update the days that they were on."""
    match = {"fleet": fleet, "trip_id": {"$in": find_without_source(store, fleet, trip_ids, session)}}
    days = days_of(store.trip_details.find(match, session=session))
    store.trip_details.delete_many(match, session=session)
    delete_from_feed(store, session, fleet, trip_ids)
    update_read_models(store, session, fleet, days)


def _write_details(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> None:
    match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
    stored = {detail["trip_id"]: detail for detail in store.trip_details.find(match, session=session)}
    sources = store.trips.find(match, session=session)
    expected = {source["trip_id"]: make_detail_of_source(fleet, source) for source in sources}
    changed = {trip_id: detail for trip_id, detail in expected.items() if stored.get(trip_id) != detail}
    write_documents(store.trip_details, session, fleet, changed, stored)
    update_feed(store, session, fleet, expected)
