"""What follows from the trips: travel dates, daily summaries, and all that is served, for exactly what was touched.

A day is marked stale before its trips are written, and so are its driver and the driver list where they change; a
driver whom only trips name is there before them. The marks go once everything is derived. So a command that was killed
leaves a trace of all that it had begun, and the next one repairs that first. What is asked of in the meantime is
answered from drivers and trips.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pymongo import DeleteMany, DeleteOne, ReplaceOne, UpdateOne

from app.store import Document
from app.store.drivers import DATES, travel_dates
from app.store.served import DRIVER
from schemas.driver import Driver
from scripts.driver_list import derive_driver_list, mark_driver_list
from scripts.served import Day, make_days, make_drivers, make_summaries, make_weeks, span_key
from scripts.sharing import derive_trackings
from scripts.store import Store, Writer

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
    if changing := _at_the_ends(db, fleet, days):
        mark_driver_list(db, fleet, changing, set())


def _at_the_ends(db: Store, fleet: str, days: set[Day]) -> set[str]:
    """Return the drivers whose travel dates may change with trips of these days: not all lie between the dates."""
    touched = defaultdict(list)
    for day in days:
        touched[day.driver_id].append(day.date)
    match = {"fleet": fleet, "driver_id": {"$in": list(touched)}}
    known = db.drivers.find(match, {"_id": 0, "driver_id": 1, **dict.fromkeys(DATES, 1)})
    ends = {driver["driver_id"]: (driver["first_travel_date"], driver["last_travel_date"]) for driver in known}
    return {
        driver_id
        for driver_id, (first, last) in ends.items()
        if first is None or last is None or not first < min(touched[driver_id]) <= max(touched[driver_id]) < last
    }


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


def add_drivers(db: Store, fleet: str, driver_ids: set[str]) -> None:
    """Write those who are not there yet, with null names, before the first trips of theirs."""
    match = {"fleet": fleet, "driver_id": {"$in": list(driver_ids)}}
    known = {driver["driver_id"] for driver in db.drivers.find(match, {"_id": 0, "driver_id": 1})}
    if new := driver_ids - known:
        write_drivers(db, fleet, {driver_id: {} for driver_id in new})


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

    What a driver is imported without is null; one that is not stored and has no trips does not come to be by None.
    """
    ids = list(imported)
    stored = {doc["driver_id"]: doc for doc in db.drivers.find({"fleet": fleet, "driver_id": {"$in": ids}}, {"_id": 0})}
    given = {driver_id: _as_imported(line, stored.get(driver_id)) for driver_id, line in imported.items()}
    dates = travel_dates(db, fleet, {driver_id: dates for driver_id, (_, dates) in given.items()})
    due = {
        driver_id: {"fleet": fleet, "driver_id": driver_id, **names, **dates[driver_id], "imported": imported_dates}
        for driver_id, (names, imported_dates) in given.items()
        if driver_id in stored or imported[driver_id] is not None or any(dates[driver_id].values())
    }
    changed = {driver_id: document for driver_id, document in due.items() if document != stored.get(driver_id)}
    return changed, changed.keys() - stored.keys()


def _as_imported(line: Document | None, stored: Document | None) -> tuple[Document, Document]:
    names: Document = line or stored or {}
    dates: Document = line or (stored or {}).get("imported", {})
    return {name: names.get(name) for name in NAMES}, {name: dates.get(name) for name in DATES}


def _span_of(document: Document) -> Document:
    return span_key(document["fleet"], document["driver_id"], document["span"])


def _key(fleet: str, day: Day) -> Document:
    return {"fleet": fleet, "day": day._asdict()}


def _write(db: Store, collection: str, operations: list[Any]) -> None:
    if operations:
        db[collection].bulk_write(operations, ordered=False)
