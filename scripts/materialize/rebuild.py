"""Building all read models of a fleet from its sources."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from pymongo import ASCENDING, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Documents, Store
from app.store.summaries import ANY_DATE, DAY, PROFILE
from scripts.materialize.dates import Day, midnight
from scripts.materialize.documents import KINDS, make_trip_detail
from scripts.materialize.fleet_drivers import rebuild_list
from scripts.materialize.update import update, write

T = TypeVar("T")
# Trips, and days or drivers, in one transaction.
TRIPS, DAYS = 100, 500
# Replies so small that a cursor is not idle for long.
BATCH_SIZE = 1_000


def rebuild_fleet(store: Store, fleet: str, since: str = "") -> Iterator[int]:
    """Write the read models of the days from the date `since` on, and of all drivers.

    Each step is a transaction. Yields, after each, how many days with trips it wrote.
    """
    for details in batches(orphans(store, fleet), TRIPS):
        write(store, fleet, partial(_delete_orphans, store, details=details))
        yield 0
    for trip_ids in batches(trip_ids_of(store, fleet, since), TRIPS):
        write(store, fleet, partial(_write_details, store, fleet=fleet, trip_ids=trip_ids))
        yield 0
    for days in batches(known_days(store, fleet, since), DAYS):
        dated, drivers = [day for day in days if day.date], {day.driver_id for day in days}
        yield write(store, fleet, partial(update, store, fleet=fleet, days=dated, driver_ids=drivers))
    write(store, fleet, partial(rebuild_list, store, fleet=fleet))


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of up to `size`."""
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def trip_ids_of(store: Store, fleet: str, since: str = "") -> Iterator[str]:
    """Yield the trip_id of every trip that started on a date or later."""
    match = {"fleet": fleet, **({"trip_start_time": {"$gte": midnight(since)}} if since else {})}
    for trip in store.trips.find(match, {"_id": 0, "trip_id": 1}, batch_size=BATCH_SIZE):
        yield trip["trip_id"]


def orphans(store: Store, fleet: str) -> Iterator[Document]:
    """Yield the `_id` and trip_id of the trip details whose source is gone."""
    details = store.trip_details.find({"fleet": fleet}, {"trip_id": 1}, batch_size=BATCH_SIZE)
    for batch in batches(details, BATCH_SIZE):
        match = {"_id": {"$in": [detail["_id"] for detail in batch]}, "fleet": fleet}
        known = {(trip["_id"], trip["trip_id"]) for trip in store.trips.find(match, {"trip_id": 1})}
        yield from (detail for detail in batch if (detail["_id"], detail["trip_id"]) not in known)


def known_days(store: Store, fleet: str, since: str = "") -> Iterator[Day]:
    """Yield, by driver and date, the days from a date on that read models know, and every driver with ANY_DATE.

    A week or month counts as its first date.
    """
    of_fleet = {"fleet": fleet}
    periods = [{**of_fleet, "period": name} for name in (DAY.name, *(kind.name for kind in KINDS), PROFILE)]
    streams = [
        _listed(store.drivers, of_fleet, "driver_id"),
        _listed(store.trip_details, of_fleet, "driver_id", "date"),
        *(_listed(store.driver_periods, match, "driver_id", "start_date") for match in periods),
    ]
    for day, _ in itertools.groupby(heapq.merge(*streams)):
        if day.date == ANY_DATE or day.date >= since:
            yield day


def _listed(collection: Documents, match: Document, driver_id: str, date: str | None = None) -> Iterator[Day]:
    names = [driver_id, *([date] if date else [])]
    order = [(name, ASCENDING) for name in names]
    for found in collection.find(match, {"_id": 0, **dict.fromkeys(names, 1)}, sort=order, batch_size=BATCH_SIZE):
        yield Day(found[driver_id], found[date] if date else ANY_DATE)


def _delete_orphans(store: Store, session: ClientSession, details: Sequence[Document]) -> None:
    store.trip_details.delete_many({"_id": {"$in": [detail["_id"] for detail in details]}}, session=session)


def _write_details(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> None:
    match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
    stored = {found["trip_id"]: found for found in store.trip_details.find(match, session=session)}
    due = [{"_id": trip["_id"], **make_trip_detail(fleet, trip)} for trip in store.trips.find(match, session=session)]
    operations = [
        ReplaceOne({"fleet": fleet, "trip_id": detail["trip_id"]}, detail, upsert=True)
        for detail in due
        if stored.get(detail["trip_id"]) != detail
    ]
    if operations:
        store.trip_details.bulk_write(operations, ordered=False, session=session)
