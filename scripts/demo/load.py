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
from app.report_links import ReportLinkSigner
from app.store import Document, Store
from app.store.api_keys import get_key
from app.store.reports import FILES, get_report
from app.store.trips import get_max_visible_end_ms
from schemas.driver import Driver
from schemas.params import HISTORY
from schemas.trip import ImportedTrip
from scripts.admin.keys import issue_key
from scripts.demo.fleet import FLEET, make_drivers, make_trips
from scripts.materialize.drivers import write_drivers
from scripts.materialize.trips import delete_trips, prepare_trip, write_trips
from scripts.mongodb.connection import open_store
from scripts.reports.build import build_report, due_date

BATCH = 300
# A fleet older than this is moved up to today: its trips would soon be older than what the service serves.
STALE_AFTER = datetime.timedelta(weeks=4)


@click.command()
def demo() -> None:
    """Make and load the demonstration fleet.

    It has about 20 drivers, who drove in the 8 weeks up to today. Loading it again on another day moves it up to then.
    """
    with open_store() as store:
        load(store)
    click.echo(f"The fleet '{FLEET}' is loaded; 'driver-analytics keys issue --fleet {FLEET}' lets you in.")


def load(store: Store) -> None:
    """Load the demonstration fleet as of now, in the place of an earlier one."""
    now = datetime.datetime.now(datetime.UTC)
    trips = [prepare_trip(FLEET, ImportedTrip().load(trip)) for trip in make_trips(now)]
    trip_ids = {trip.source["trip_id"] for trip in trips}
    stored = store.trips.find({"fleet": FLEET}, {"_id": 0, "trip_id": 1})
    if others := [trip["trip_id"] for trip in stored if trip["trip_id"] not in trip_ids]:
        delete_trips(store, FLEET, others)
    write_drivers(store, FLEET, [{"fleet": FLEET, **Driver().load(driver)} for driver in make_drivers(now.date())])
    with click.progressbar(
        length=len(trips), label="Demonstration fleet", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        for first in range(0, len(trips), BATCH):
            write_trips(store, FLEET, trips[first : first + BATCH])
            bar.update(min(BATCH, len(trips) - first))
    build_report(store, FLEET, due_date())


def prepare_demo(store: Store, config: Config) -> list[str]:
    """Load the demonstration fleet into an empty store; return what to tell: a key, requests, links to a report."""
    if _is_due(store):
        load(store)
    if store.drivers.find_one({"fleet": FLEET}) is None:
        return ["The store holds fleets of your own: 'driver-analytics keys issue --fleet ID' lets you in to one."]
    if get_report(store, FLEET, due_date()) is None:
        build_report(store, FLEET, due_date())
    key = _kept_key(store, Path(config.data_dir, "demo.key"))
    return [f"A key for the demonstration fleet: {key}", *_requests(store, config, key), *_links(store, config, key)]


def _is_due(store: Store) -> bool:
    if store.drivers.find_one({"fleet": {"$ne": FLEET}}) is not None:
        return False
    newest = store.trip_details.find_one({"fleet": FLEET}, {"_id": 0, "date": 1}, sort=[("date", DESCENDING)])
    # The key comes after the last trip: without one the fleet was never loaded to its end.
    if newest is None or store.keys.find_one({"fleet": FLEET}) is None:
        return True
    today = datetime.datetime.now(datetime.UTC).date()
    return today - datetime.date.fromisoformat(newest["date"]) > STALE_AFTER


def _kept_key(store: Store, path: Path) -> str:
    with contextlib.suppress(OSError):
        kept = path.read_text().strip()
        found = get_key(store, kept)
        if found is not None and found.fleet == FLEET:
            return kept
    key = issue_key(store, FLEET)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key


def _requests(store: Store, config: Config, key: str) -> Sequence[str]:
    trip = _recent_trip(store, config)
    if trip is None:
        return []
    driver_id, date = quote(trip["driver_id"], safe=""), datetime.date.fromisoformat(trip["date"])
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


def _links(store: Store, config: Config, key: str) -> Sequence[str]:
    links, found = ReportLinkSigner(config), get_key(store, key)
    if found is None:
        return []
    base = config.public_base_url or _base(config.bind)
    return [links.build_url(base, FLEET, due_date(), file, found.key_id, links.get_expiry_ms()) for file in FILES]


def _recent_trip(store: Store, config: Config) -> Document | None:
    """Return the newest trip that every request finds: visible, of a day before today, with a tracking_id."""
    now = datetime.datetime.now(datetime.UTC)
    shown = {
        "fleet": FLEET,
        "tracking_id": {"$ne": None},
        "trip_end_time": {"$lte": get_max_visible_end_ms(config.processing_delay_hours)},
        "date": {"$gte": str((now - HISTORY).date() + datetime.timedelta(weeks=1)), "$lt": str(now.date())},
    }
    fields = {"_id": 0, "trip_id": 1, "tracking_id": 1, "driver_id": 1, "date": 1}
    return store.trip_details.find_one(shown, fields, sort=[("trip_start_time", DESCENDING)])


def _address(bind: str, path: str) -> str:
    if bind.startswith("unix:"):
        return f"--unix-socket {shlex.quote(bind.removeprefix('unix:'))} {shlex.quote(f'{_base(bind)}{API}{path}')}"
    return shlex.quote(f"{_base(bind)}{API}{path}")


def _base(bind: str) -> str:
    if bind.startswith("unix:"):
        return "http://localhost"
    host = bind.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104
    return f"http://{host}"
