"""`driver-analytics demo`: load a fleet to try the service with, through the same functions as an import."""

import datetime

import click
from pymongo import DESCENDING

from app.store import Store
from app.store.reports import get_report
from schemas.driver import ImportedDriver
from schemas.periods import UTC, get_today
from schemas.trip import ImportedTrip
from scripts.command_line.batches import batches
from scripts.command_line.output import echo, make_bar
from scripts.demo.fleet import FLEET, make_drivers, make_trips
from scripts.materialize.write_sources import delete_trips, prepare_driver, prepare_trip, write_drivers, write_trips
from scripts.mongodb.connection import open_store
from scripts.reports.build import build_report, find_current_windows

BATCH_TRIPS = 300
# An older fleet is loaded again as of today: the API serves only the trips of six months.
MAX_AGE = datetime.timedelta(weeks=4)


@click.command()
def demo() -> None:
    """Generate and load the demonstration fleet.

    It has 20 drivers with about 1,200 trips in the 8 weeks up to today. If you load it again on another day, it moves
    to the 8 weeks up to that day.
    """
    with open_store() as store:
        load_demo(store)
    echo(f"Loaded the fleet '{FLEET}'. Issue a key for it: driver-analytics keys issue --fleet {FLEET}")


def load_demo(store: Store) -> None:
    """Load the demonstration fleet and its reports as of now. They replace earlier ones."""
    now = datetime.datetime.now(datetime.UTC)
    trips = [prepare_trip(FLEET, trip) for trip in ImportedTrip().load(make_trips(now), many=True)]
    stored_ids = store.trips.distinct("trip_id", {"fleet": FLEET})
    delete_trips(store, FLEET, sorted({*stored_ids} - {trip.source["trip_id"] for trip in trips}))
    drivers = ImportedDriver().load(make_drivers(now.date()), many=True)
    write_drivers(store, FLEET, [prepare_driver(FLEET, driver) for driver in drivers])
    with make_bar("Demonstration fleet", len(trips)) as bar:
        for batch in batches(trips, BATCH_TRIPS):
            write_trips(store, FLEET, batch)
            bar.update(len(batch))
    for window in find_current_windows(store, FLEET):
        build_report(store, FLEET, window)


def ensure_demo(store: Store) -> bool:
    """Load the demonstration fleet and its reports if they are missing or old. Returns whether the store has the fleet.

    A store with other fleets is left unchanged.
    """
    if needs_load(store):
        load_demo(store)
    elif store.drivers.find_one({"fleet": FLEET}) is None:
        return False
    for window in find_current_windows(store, FLEET):
        if get_report(store, FLEET, window) is None:
            build_report(store, FLEET, window)
    return True


def needs_load(store: Store) -> bool:
    """Return whether the fleet is missing, incomplete or older than MAX_AGE, in a store without other fleets."""
    if store.drivers.find_one({"fleet": {"$ne": FLEET}}) is not None:
        return False
    newest = store.trip_details.find_one({"fleet": FLEET}, {"_id": 0, "date": 1}, sort=[("date", DESCENDING)])
    # A key is issued after the last trip, so a fleet without a key was only loaded in part.
    if newest is None or store.keys.find_one({"fleet": FLEET}) is None:
        return True
    return get_today(UTC) - datetime.date.fromisoformat(newest["date"]) > MAX_AGE
