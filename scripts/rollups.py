"""`driver-analytics rollups`: derived data, made again from what was imported, or compared with it."""

import sys
from collections import defaultdict
from collections.abc import Iterator

import click

from app.store.served import DRIVER
from scripts.derive import derive_days, mark_drivers, mark_stale, writing
from scripts.driver_list import drop_driver_list
from scripts.options import DATE, ID
from scripts.served import DETAIL_FIELDS, Day, trip_text
from scripts.store import Store, Writer, fleets, open_store
from scripts.verify import unknown_served, verify_fleet

# Days, or drivers without any, at a time.
CHUNK = 500
# Differences that are told of one by one.
MAX_TOLD = 20

FLEET = click.option("--fleet", type=ID, help="Only this fleet; otherwise all.")


@click.group()
def rollups() -> None:
    """What follows from drivers and trips: summaries, and answers as they are served."""


@rollups.command()
@FLEET
@click.option("--since", type=DATE, help="Only days from this date (UTC) on.")
def rebuild(fleet: str | None, since: str | None) -> None:
    """Make summaries, travel dates and all that is served anew from the stored drivers and trips."""
    with open_store() as db:
        for name in fleets(db, fleet):
            with writing(db, name) as writer:
                count = rebuild_fleet(db, name, writer, since or "")
            click.echo(f"{name}: {count} days rebuilt")


@rollups.command()
@FLEET
def verify(fleet: str | None) -> None:
    """Compare all that is derived with what it is derived from. Exits with 1 where something differs."""
    wrong = False
    with open_store() as db:
        for name in fleets(db, fleet):
            with Writer(db, name) as writer:
                days = known_days(db, name)
                count = sum(map(len, days.values()))
                differences = verify_fleet(db, name, writer, _chunks(days, name))
            wrong |= bool(differences)
            for difference in differences[:MAX_TOLD]:
                click.echo(f"{name}: {difference}")
            if len(differences) > MAX_TOLD:
                click.echo(f"{name}: and {len(differences) - MAX_TOLD} more")
            found = f"{len(differences)} differences; 'driver-analytics rollups rebuild' mends them"
            click.echo(f"{name}: {len(days)} drivers, {count} days: {found if differences else 'all right'}")
    if wrong:
        raise SystemExit(1)


def rebuild_fleet(db: Store, fleet: str, writer: Writer, since: str = "") -> int:
    """Derive all days of the fleet from the date `since` on, and all drivers. Returns the number of days."""
    known = known_days(db, fleet, since)
    if not since:
        db.served_trackings.delete_many({"fleet": fleet})
    for days in _chunks(known, fleet):
        writer.renew()
        touched = {day for of_driver in days.values() for day in of_driver}
        mark_stale(db, fleet, touched)
        mark_drivers(db, fleet, set(days))
        if not since:
            of_drivers = {"fleet": fleet, "driver_id": {"$in": list(days)}}
            db.served_spans.delete_many({**of_drivers, "span": {"$ne": DRIVER}})
            db.served_spans.update_many(of_drivers, {"$unset": {"buckets": ""}})
        _write_texts(db, fleet, touched)
        derive_days(db, fleet, touched, days)
    if not since:
        db.served_spans.delete_many({"fleet": fleet, "driver_id": {"$in": unknown_served(db, fleet, known)}})
    drop_driver_list(db, fleet)
    return sum(map(len, known.values()))


def known_days(db: Store, fleet: str, since: str = "") -> dict[str, list[Day]]:
    """Return every driver with the days, from a date on, that trips or summaries know. Indexes: (fleet, day, ...)."""
    days: dict[str, set[Day]] = defaultdict(set)
    for collection in (db.trips, db.daily_summaries):
        for doc in collection.aggregate([{"$match": {"fleet": fleet}}, {"$group": {"_id": "$day"}}]):
            day = Day(**doc["_id"])
            if day.date >= since:
                days[day.driver_id].add(day)
    for doc in db.drivers.find({"fleet": fleet}, {"_id": 0, "driver_id": 1}):
        days.setdefault(doc["driver_id"], set())
    return {driver_id: sorted(days[driver_id]) for driver_id in sorted(days)}


def _write_texts(db: Store, fleet: str, days: set[Day]) -> None:
    """Write the text of those trips of the days of which it is not right."""
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for day in days]}}
    for trip in db.trips.find(match, {**DETAIL_FIELDS, "version": 1, "text": 1}):
        stored = {name: trip.pop(name) for name in ("version", "text") if name in trip}
        text = trip_text(trip)
        if text != stored:
            gone = {"$unset": {"text": ""}} if "text" not in text else {}
            db.trips.update_one({"fleet": fleet, "trip_id": trip["trip_id"]}, {"$set": text, **gone})


def _chunks(days: dict[str, list[Day]], label: str) -> Iterator[dict[str, list[Day]]]:
    """Yield the drivers with all their days, so many at a time, and show how far it is."""
    with click.progressbar(length=len(days), label=label, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        chunk: dict[str, list[Day]] = {}
        size = 0
        for driver_id, of_driver in days.items():
            chunk[driver_id] = of_driver
            size += max(1, len(of_driver))
            if size >= CHUNK:
                yield chunk
                bar.update(len(chunk))
                chunk, size = {}, 0
        if chunk:
            yield chunk
            bar.update(len(chunk))
