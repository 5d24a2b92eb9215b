"""What follows from the trips: travel dates, daily summaries, and all that is served, for exactly what was touched.

A day is marked stale before its trips are written, and so are its driver and the driver list where they change; the
marks go once everything is derived. So a command that was killed leaves a trace of all that it had begun, and the next
one repairs that first. What is asked of in the meantime is answered from drivers and trips.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pymongo import ASCENDING, DESCENDING, DeleteMany, DeleteOne, ReplaceOne, UpdateOne

from app.store import Document
from app.store.served import DRIVER
from schemas.driver import Driver
from schemas.stored import TravelDates
from scripts.driver_list import derive_driver_list, mark_driver_list
from scripts.served import Day, make_days, make_drivers, make_summaries, make_weeks, span_key
from scripts.sharing import derive_trackings
from scripts.store import Store, Writer

DATES = tuple(TravelDates().fields)
NAMES = tuple(name for name in Driver().fields if name not in ("driver_id", *DATES))
# Sorts between a date's buckets and anything else.
PAST_BUCKETS = "$"


@contextlib.contextmanager
def writing(db: Store, fleet: str) -> Iterator[Writer]:
    """Be the fleet's only writer, of a store in which nothing is stale; leave it like that."""
    with Writer(db, fleet) as writer:
        _repair(db, fleet)
        yield writer
        derive_driver_list(db, fleet)


def _repair(db: Store, fleet: str) -> None:
    """Finish what a killed command had begun."""
    stale = {"fleet": fleet, "driver_id": {"$in": stale_drivers(db, fleet)}}
    known = [doc["driver_id"] for doc in db.drivers.find(stale, {"_id": 0, "driver_id": 1})]
    derive_days(db, fleet, stale_days(db, fleet), known)
    # What is left was marked for drivers who were not written any more.
    db.served_spans.delete_many({"fleet": fleet, "stale": True})
    derive_driver_list(db, fleet)


def mark_stale(db: Store, fleet: str, days: set[Day]) -> None:
    """Mark days whose trips are about to be written, and their drivers."""
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for day in days]}}
    known = {Day(**doc["day"]) for doc in db.daily_summaries.find(match, {"_id": 0, "day": 1})}
    if known:
        db.daily_summaries.update_many(match, {"$set": {"stale": True}})
    if new := days - known:
        db.daily_summaries.insert_many([{**_key(fleet, day), "stale": True} for day in new])
    mark_drivers(db, fleet, {day.driver_id for day in days})


def mark_drivers(db: Store, fleet: str, driver_ids: set[str]) -> None:
    """Mark drivers of whom something is about to be written."""
    match = {"fleet": fleet, "driver_id": {"$in": list(driver_ids)}, "span": DRIVER}
    known = {doc["driver_id"] for doc in db.served_spans.find(match, {"_id": 0, "driver_id": 1})}
    if known:
        db.served_spans.update_many(match, {"$set": {"stale": True}})
    if new := driver_ids - known:
        db.served_spans.insert_many([{**span_key(fleet, driver_id, DRIVER), "stale": True} for driver_id in new])


def stale_days(db: Store, fleet: str) -> set[Day]:
    """Return the days that a killed command left behind. Index: (fleet, stale, day)."""
    return {Day(**doc["day"]) for doc in db.daily_summaries.find({"fleet": fleet, "stale": True}, {"_id": 0, "day": 1})}


def stale_drivers(db: Store, fleet: str) -> list[str]:
    """Return the drivers that a killed command left behind. Index: (fleet, stale, driver_id)."""
    found = db.served_spans.find({"fleet": fleet, "stale": True}, {"_id": 0, "driver_id": 1})
    return [doc["driver_id"] for doc in found]


def derive_days(db: Store, fleet: str, days: Iterable[Day], driver_ids: Iterable[str] = ()) -> None:
    """Bring these days, which are marked, their drivers, and these drivers in line with what is stored."""
    days = set(days)
    drivers = {day.driver_id for day in days}.union(driver_ids)
    if not drivers:
        return
    write_drivers(db, fleet, dict.fromkeys(drivers))
    summaries = make_summaries(db, fleet, days)
    empty = days - set(summaries)
    _write(
        db,
        "daily_summaries",
        [UpdateOne(_key(fleet, day), {"$set": {"summary": summary}}) for day, summary in summaries.items()]
        + [UpdateOne(_key(fleet, day), {"$unset": {"summary": ""}}) for day in empty],
    )
    buckets = _write_days(db, fleet, days, summaries)
    _write_weeks(db, fleet, days)
    derive_trackings(db, fleet, days)
    serve_drivers(db, fleet, drivers, buckets)
    if days:
        done = {"fleet": fleet, "day": {"$in": [day._asdict() for day in summaries]}}
        db.daily_summaries.update_many(done, {"$unset": {"stale": ""}})
    _write(db, "daily_summaries", [DeleteOne(_key(fleet, day)) for day in empty])


def serve_drivers(
    db: Store, fleet: str, driver_ids: Iterable[str], buckets: Mapping[str, Mapping[str, list[Document]]] | None = None
) -> None:
    """Write what is served of drivers, which are marked: with the buckets that they have, or these for some dates."""
    made = make_drivers(db, fleet, driver_ids, buckets or {})
    _write(db, "served_spans", [ReplaceOne(_span_of(driver), driver, upsert=True) for driver in made])


def _write_days(
    db: Store, fleet: str, days: set[Day], summaries: Mapping[Day, Document]
) -> dict[str, dict[str, list[Document]]]:
    """Write what is served of days. Returns the buckets of each, by driver and date."""
    written: dict[str, dict[str, list[Document]]] = defaultdict(dict)
    operations: list[Any] = []
    for day, buckets in make_days(db, fleet, summaries):
        written[day.driver_id][day.date] = buckets
        operations += [ReplaceOne(_span_of(bucket), bucket, upsert=True) for bucket in buckets]
    for day in days:
        kept = written[day.driver_id].setdefault(day.date, [])
        others = {"$gte": day.date, "$lt": day.date + PAST_BUCKETS, "$nin": [bucket["span"] for bucket in kept]}
        operations.append(DeleteMany(span_key(fleet, day.driver_id, "") | {"span": others}))
    _write(db, "served_spans", operations)
    return written


def _write_weeks(db: Store, fleet: str, days: set[Day]) -> None:
    operations = [
        DeleteOne(span_key(fleet, *week)) if document is None else ReplaceOne(_span_of(document), document, upsert=True)
        for week, document in make_weeks(db, fleet, days).items()
    ]
    _write(db, "served_spans", operations)


def write_drivers(db: Store, fleet: str, imported: Mapping[str, Document | None]) -> set[str]:
    """Write drivers as imported, or as they stand where None, with the travel dates that follow. Returns who changed.

    Who changes is marked: serve_drivers and derive_driver_list are due.
    """
    changed, new = changed_drivers(db, fleet, imported)
    if changed:
        mark_drivers(db, fleet, set(changed))
        mark_driver_list(db, fleet, changed.keys() - new, new)
    keys = {driver_id: {"fleet": fleet, "driver_id": driver_id} for driver_id in changed}
    _write(db, "drivers", [ReplaceOne(keys[name], document, upsert=True) for name, document in changed.items()])
    return set(changed)


def changed_drivers(
    db: Store, fleet: str, imported: Mapping[str, Document | None]
) -> tuple[dict[str, Document], set[str]]:
    """Return the documents of those drivers that are not stored like that, and which of them are not stored at all.

    A driver that is not there yet gets null names. The dates served are the widest of the imported ones and those of
    the stored trips.
    """
    ids = list(imported)
    stored = {doc["driver_id"]: doc for doc in db.drivers.find({"fleet": fleet, "driver_id": {"$in": ids}}, {"_id": 0})}
    first, last = _trip_dates(db, fleet, ids, ASCENDING), _trip_dates(db, fleet, ids, DESCENDING)
    due = {}
    for driver_id, line in imported.items():
        names, dates = _as_imported(line, stored.get(driver_id))
        due[driver_id] = {
            "fleet": fleet,
            "driver_id": driver_id,
            **names,
            "first_travel_date": min(_given(dates["first_travel_date"], first.get(driver_id)), default=None),
            "last_travel_date": max(_given(dates["last_travel_date"], last.get(driver_id)), default=None),
            "imported": dates,
        }
    changed = {driver_id: document for driver_id, document in due.items() if document != stored.get(driver_id)}
    return changed, changed.keys() - stored.keys()


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


def _span_of(document: Document) -> Document:
    return span_key(document["fleet"], document["driver_id"], document["span"])


def _key(fleet: str, day: Day) -> Document:
    return {"fleet": fleet, "day": day._asdict()}


def _write(db: Store, collection: str, operations: list[Any]) -> None:
    if operations:
        db[collection].bulk_write(operations, ordered=False)
