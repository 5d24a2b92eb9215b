"""`driver-analytics demo`: a fleet to try the service with."""

import contextlib
import datetime
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import click
from pymongo import DESCENDING

from app.config import API, Config
from app.links import Links
from app.store import Document
from app.store.keys import get_key
from app.store.reports import FILES, get_report
from app.store.trips import visible_until
from schemas.driver import Driver
from schemas.query import HISTORY
from schemas.trip import ImportedTrip
from scripts.demo_fleet import FLEET, make_drivers, make_trips
from scripts.derive import derive_days, mark_stale, writing
from scripts.imports import load_drivers, load_trips
from scripts.keys import issue_key
from scripts.reports import build_report, due_date
from scripts.served import Day
from scripts.sharing import mark_trackings
from scripts.store import Store, open_store

BATCH = 300
# A fleet older than this is moved up to today: its trips would soon be older than what the service serves.
STALE_AFTER = datetime.timedelta(weeks=4)


@click.command()
def demo() -> None:
    """Make and load the demonstration fleet.

    It has about 20 drivers, who drove in the 8 weeks up to today. Loading it again on another day moves it up to then.
    """
    with open_store() as db:
        load(db)
    click.echo(f"The fleet '{FLEET}' is loaded; 'driver-analytics keys issue --fleet {FLEET}' lets you in.")


def load(db: Store) -> None:
    """Load the demonstration fleet as of now, in the place of an earlier one."""
    now = datetime.datetime.now(datetime.UTC)
    trips = [ImportedTrip().load(trip) for trip in make_trips(now)]
    with writing(db, FLEET) as writer:
        _remove_others(db, {trip["trip_id"] for trip in trips})
        load_drivers(db, FLEET, [Driver().load(driver) for driver in make_drivers(now.date())])
        with click.progressbar(
            length=len(trips), label="Demonstration fleet", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar:
            for first in range(0, len(trips), BATCH):
                writer.renew()
                load_trips(db, FLEET, trips[first : first + BATCH])
                bar.update(min(BATCH, len(trips) - first))
        build_report(db, FLEET, due_date(), writer)


def _remove_others(db: Store, trip_ids: set[str]) -> None:
    stored = db.trips.find({"fleet": FLEET}, {"_id": 0, "trip_id": 1, "tracking_id": 1, "day": 1})
    others = [trip for trip in stored if trip["trip_id"] not in trip_ids]
    days = {Day(**trip["day"]) for trip in others}
    mark_stale(db, FLEET, days)
    mark_trackings(db, FLEET, {trip["tracking_id"] for trip in others})
    db.trips.delete_many({"fleet": FLEET, "trip_id": {"$in": [trip["trip_id"] for trip in others]}})
    derive_days(db, FLEET, days)


def prepare_demo(db: Store, config: Config) -> list[str]:
    """Load the demonstration fleet into an empty store; return what to tell: a key, requests, links to a report."""
    if _is_due(db):
        load(db)
    if db.drivers.find_one({"fleet": FLEET}) is None:
        return ["The store holds fleets of your own: 'driver-analytics keys issue --fleet ID' lets you in to one."]
    if get_report(db, FLEET, due_date()) is None:
        with writing(db, FLEET) as writer:
            build_report(db, FLEET, due_date(), writer)
    key = _kept_key(db, Path(config.data_dir, "demo.key"))
    return [f"A key for the demonstration fleet: {key}", *_requests(db, config, key), *_links(db, config, key)]


def _is_due(db: Store) -> bool:
    if db.drivers.find_one({"fleet": {"$ne": FLEET}}) is not None:
        return False
    newest = db.drivers.find_one(
        {"fleet": FLEET, "last_travel_date": {"$ne": None}}, sort=[("last_travel_date", DESCENDING)]
    )
    # The key comes after the last trip: without one the fleet was never loaded to its end.
    if newest is None or db["keys"].find_one({"fleet": FLEET}) is None:
        return True
    today = datetime.datetime.now(datetime.UTC).date()
    return today - datetime.date.fromisoformat(newest["last_travel_date"]) > STALE_AFTER


def _kept_key(db: Store, path: Path) -> str:
    with contextlib.suppress(OSError):
        kept = path.read_text().strip()
        found = get_key(db, kept)
        if found is not None and found.fleet == FLEET:
            return kept
    key = issue_key(db, FLEET)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key


def _requests(db: Store, config: Config, key: str) -> Sequence[str]:
    trip = _recent_trip(db, config)
    if trip is None:
        return []
    driver_id, date = quote(trip["driver_id"], safe=""), datetime.date.fromisoformat(trip["day"]["date"])
    monday = date - datetime.timedelta(days=date.weekday())
    paths = (
        "/drivers?limit=3",
        f"/driver/{driver_id}/trips?start_date={monday}&limit=2",
        f"/trip/trip_id/{quote(trip['trip_id'], safe='')}",
        f"/trip/tracking_id/{quote(trip['tracking_id'], safe='')}",
        f"/driver-aggregate/daily?start_date={date}&driver_id={driver_id}",
        f"/driver-aggregate/weekly?start_date={monday}&driver_id={driver_id}",
    )
    header = shlex.quote(f"Authorization: APIKEY {key}")
    return [f"curl -H {header} {_address(config.bind, path)}" for path in paths]


def _links(db: Store, config: Config, key: str) -> Sequence[str]:
    links, found = Links(config), get_key(db, key)
    if found is None:
        return []
    base = config.public_base_url or _base(config.bind)
    return [links.url(base, FLEET, due_date(), file, found.key_id, links.expiry()) for file in FILES]


def _recent_trip(db: Store, config: Config) -> Document | None:
    """Return the newest trip that every request finds: visible, of a day before today, with a tracking_id."""
    now = datetime.datetime.now(datetime.UTC)
    shown = {
        "fleet": FLEET,
        "tracking_id": {"$ne": None},
        "trip_end_time": {"$lte": visible_until(config.processing_delay_hours)},
        "day.date": {"$gte": str((now - HISTORY).date() + datetime.timedelta(weeks=1)), "$lt": str(now.date())},
    }
    fields = {"_id": 0, "trip_id": 1, "tracking_id": 1, "driver_id": 1, "day": 1}
    return db.trips.find_one(shown, fields, sort=[("trip_start_time", DESCENDING)])


def _address(bind: str, path: str) -> str:
    if bind.startswith("unix:"):
        return f"--unix-socket {shlex.quote(bind.removeprefix('unix:'))} {shlex.quote(f'{_base(bind)}{API}{path}')}"
    return shlex.quote(f"{_base(bind)}{API}{path}")


def _base(bind: str) -> str:
    if bind.startswith("unix:"):
        return "http://localhost"
    host = bind.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104
    return f"http://{host}"
