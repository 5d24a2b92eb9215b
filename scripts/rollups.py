"""`driver-analytics rollups`: derived data, thrown away and made again from the stored trips."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from scripts.derive import Day, derive_days, mark_stale, write_drivers, writing
from scripts.options import DATE, ID
from scripts.store import Store, Writer, open_store

CHUNK = 500


@click.group()
def rollups() -> None:
    """Daily summaries, which follow from the stored trips."""


@rollups.command()
@click.option("--fleet", type=ID, help="Only this fleet; otherwise all.")
@click.option("--since", type=DATE, help="Only days from this date (UTC) on.")
def rebuild(fleet: str | None, since: str | None) -> None:
    """Rebuild daily summaries, and the drivers' travel dates, from the stored trips."""
    with open_store() as db:
        collections = ("drivers", "trips", "daily_summaries")
        known = sorted({name for collection in collections for name in db[collection].distinct("fleet")})
        if fleet is not None and fleet not in known:
            raise click.ClickException(f"Nothing is stored for the fleet {fleet}.")
        for name in [fleet] if fleet is not None else known:
            with writing(db, name) as writer:
                count = rebuild_fleet(db, name, writer, since or "")
            click.echo(f"{name}: {count} days rebuilt")


def rebuild_fleet(db: Store, fleet: str, writer: Writer, since: str = "") -> int:
    """Derive all days of the fleet from the date `since` on, and all drivers. Returns the number of days."""
    days = {day for name in ("trips", "daily_summaries") for day in _days(db, fleet, name) if day.date >= since}
    with click.progressbar(length=len(days), label=fleet, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for chunk in _chunks(sorted(days)):
            writer.renew()
            mark_stale(db, fleet, set(chunk))
            derive_days(db, fleet, chunk)
            bar.update(len(chunk))
    for drivers in _chunks(doc["driver_id"] for doc in db.drivers.find({"fleet": fleet}, {"_id": 0, "driver_id": 1})):
        writer.renew()
        write_drivers(db, fleet, dict.fromkeys(drivers))
    return len(days)


def _days(db: Store, fleet: str, collection: str) -> Iterator[Day]:
    """Yield the days that a collection knows. Indexes: (fleet, day, ...) of either."""
    for doc in db[collection].aggregate([{"$match": {"fleet": fleet}}, {"$group": {"_id": "$day"}}]):
        yield Day(**doc["_id"])


def _chunks(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while chunk := list(itertools.islice(rest, CHUNK)):
        yield chunk
