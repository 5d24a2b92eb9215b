"""What follows from the trips: daily summaries and the drivers' travel dates, derived for exactly the days touched.

A day is marked stale before its trips are written and is clean again once its summary is. So a command that was killed
leaves a trace of every day that it had begun, and the next one repairs those first. What is asked of a stale day in the
meantime is answered from its trips.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pymongo import ASCENDING, DESCENDING, DeleteOne, ReplaceOne, UpdateOne
from pymongo.errors import PyMongoError

from app.store import Document, pipelines
from schemas.driver import Driver
from schemas.stored import TravelDates
from scripts.store import Store, Writer

DATES = tuple(TravelDates().fields)
NAMES = tuple(name for name in Driver().fields if name not in ("driver_id", *DATES))


class Day(NamedTuple):
    """A driver's UTC date."""

    driver_id: str
    date: str


@contextlib.contextmanager
def writing(db: Store, fleet: str) -> Iterator[Writer]:
    """Be the fleet's only writer, of a store in which nothing is stale."""
    writer = Writer(db, fleet)
    writer.acquire()
    try:
        derive_days(db, fleet, stale_days(db, fleet))
        yield writer
    finally:
        with contextlib.suppress(PyMongoError):
            writer.release()


def mark_stale(db: Store, fleet: str, days: set[Day]) -> None:
    """Mark days whose trips are about to be written."""
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for day in days]}}
    known = {Day(**doc["day"]) for doc in db.daily_summaries.find(match, {"_id": 0, "day": 1})}
    if known:
        db.daily_summaries.update_many(match, {"$set": {"stale": True}})
    if new := days - known:
        db.daily_summaries.insert_many([{**_key(fleet, day), "stale": True} for day in new])


def stale_days(db: Store, fleet: str) -> set[Day]:
    """Return the days that a killed command left behind. Index: (fleet, stale)."""
    return {Day(**doc["day"]) for doc in db.daily_summaries.find({"fleet": fleet, "stale": True}, {"_id": 0, "day": 1})}


def derive_days(db: Store, fleet: str, days: Iterable[Day]) -> None:
    """Bring these days, which are marked, and the travel dates of their drivers in line with the stored trips."""
    days = set(days)
    if not days:
        return
    write_drivers(db, fleet, {day.driver_id: None for day in days})
    pipeline = pipelines.daily_summaries(fleet, [day._asdict() for day in days])
    summaries = {Day(**doc["day"]): doc["summary"] for doc in db.trips.aggregate(pipeline)}
    _write(
        db,
        "daily_summaries",
        [
            UpdateOne(_key(fleet, day), {"$set": {"summary": summaries[day]}, "$unset": {"stale": ""}})
            if day in summaries
            else DeleteOne(_key(fleet, day))
            for day in days
        ],
    )


def write_drivers(db: Store, fleet: str, imported: Mapping[str, Document | None]) -> None:
    """Write drivers as imported, or as they stand where None, with the travel dates that follow.

    A driver that is not there yet gets null names. The dates served are the widest of the imported ones and those of
    the stored trips.
    """
    ids = list(imported)
    stored = {doc["driver_id"]: doc for doc in db.drivers.find({"fleet": fleet, "driver_id": {"$in": ids}}, {"_id": 0})}
    first, last = _trip_dates(db, fleet, ids, ASCENDING), _trip_dates(db, fleet, ids, DESCENDING)
    changed = []
    for driver_id, line in imported.items():
        names, dates = _as_imported(line, stored.get(driver_id))
        document = {
            "fleet": fleet,
            "driver_id": driver_id,
            **names,
            "first_travel_date": min(_given(dates["first_travel_date"], first.get(driver_id)), default=None),
            "last_travel_date": max(_given(dates["last_travel_date"], last.get(driver_id)), default=None),
            "imported": dates,
        }
        if document != stored.get(driver_id):
            changed.append(ReplaceOne({"fleet": fleet, "driver_id": driver_id}, document, upsert=True))
    _write(db, "drivers", changed)


def _as_imported(line: Document | None, stored: Document | None) -> tuple[Document, Document]:
    names: Document = line or stored or {}
    dates: Document = line or (stored or {}).get("imported", {})
    return {name: names.get(name) for name in NAMES}, {name: dates.get(name) for name in DATES}


def _given(*dates: str | None) -> list[str]:
    return [date for date in dates if date is not None]


def _trip_dates(db: Store, fleet: str, driver_ids: list[str], direction: int) -> dict[str, str]:
    """Return the date of each driver's first or last trip. Index: (fleet, driver_id, trip_start_time, ...)."""
    # In this form MongoDB seeks from driver to driver through the index, whatever the number of their trips.
    order = dict.fromkeys(("fleet", "driver_id", "trip_start_time", "trip_id", "trip_end_time"), direction)
    pipeline: list[dict[str, Any]] = [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}}},
        {"$sort": order},
        {"$group": {"_id": "$driver_id", "date": {"$first": "$day.date"}}},
    ]
    return {doc["_id"]: doc["date"] for doc in db.trips.aggregate(pipeline)}


def _key(fleet: str, day: Day) -> Document:
    return {"fleet": fleet, "day": day._asdict()}


def _write(db: Store, collection: str, operations: list[Any]) -> None:
    if operations:
        db[collection].bulk_write(operations, ordered=False)
