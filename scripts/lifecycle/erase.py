"""`driver-analytics erase`: remove a driver and everything that is derived from the driver's data."""

import itertools
from collections.abc import Iterator

import click

from app.store import Document, Store
from schemas.identity import make_id
from schemas.periods import PERIODS
from schemas.report import ReportWindow
from scripts.command_line.options import FLEET, ID, option_once
from scripts.command_line.output import confirm, echo, sum_with_progress
from scripts.materialize.days import Day
from scripts.materialize.read_models import materialize, naming_damage
from scripts.materialize.trips import NOT_DELETED, TRIP_ID
from scripts.materialize.write_sources import OLDEST_FIRST, delete_trips_of
from scripts.mongodb.connection import BATCH_SIZE, open_store, require_fleet
from scripts.mongodb.transactions import transaction
from scripts.reports.build import build_report, find_reports_of
from scripts.reports.files import find_unused_files_with, remove_all_unused_files

# The collections whose documents have the `driver_id` of a driver. So have the entries of the change feed: a tombstone
# keeps it for 30 days, so that clients learn of the deletion.
OF_DRIVERS = ("drivers", "driver_groups", "trips", "trip_details", "driver_periods", "keys")


@click.command()
@FLEET
@option_once("--driver", "driver_id", type=ID, required=True, help="The driver_id of the driver.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def erase(fleet: str, driver_id: str, yes: bool) -> None:
    """Remove a driver and everything derived from the driver's data.

    The command removes the driver, the trips with their trails and events, the summaries, the driver's place in
    rankings, and the keys that open this driver alone. It builds the reports that contain the driver again, without the
    driver. The change feed reports the deletion of each trip for 30 days.

    It lists what it found, and asks for confirmation. If the command was killed, run it again. It cannot reach backups,
    exported and imported files, and files of rejected lines: docs/data.md says what to do about them.
    """
    with open_store() as store, naming_damage(fleet):
        counts, reports = count_documents_of_driver(store, fleet, driver_id), find_reports_of(store, fleet, driver_id)
        unused = find_unused_files_with(store, fleet, driver_id)
        if not (counts or reports or unused):
            # A fleet whose last driver was erased still has its state.
            require_fleet(store, fleet)
            echo(f"{fleet}: nothing is stored of the driver {driver_id}")
            return
        confirm(f"{fleet}: {driver_id}: {_describe_found(counts, reports, len(unused))}", yes)
        trips = sum_with_progress(fleet, counts.get("trips", 0), erase_driver(store, fleet, driver_id))
        for window in reports:
            build_report(store, fleet, window)
        remove_all_unused_files(store, fleet)
        echo(f"{fleet}: erased the driver {driver_id}: {trips} trips removed, {len(reports)} reports built again")


def count_documents_of_driver(store: Store, fleet: str, driver_id: str) -> dict[str, int]:
    """Return how many documents of each collection have the identifier of a driver. Collections without are left out.

    Scans the fleet's entries of the change feed, and the drivers.
    """
    of_driver: Document = {"fleet": fleet, "driver_id": driver_id}
    matches = {**dict.fromkeys(OF_DRIVERS, of_driver), "trip_changes": {**of_driver, **NOT_DELETED}}
    counts = {name: store.db[name].count_documents(match) for name, match in matches.items()}
    return {name: count for name, count in counts.items() if count}


def erase_driver(store: Store, fleet: str, driver_id: str) -> Iterator[int]:
    """Delete a driver, the driver's trips and all that is derived from them.

    Each step is a transaction. The last one deletes the driver, so a call after a kill does the rest. Yields after each
    step the number of trips that it deleted.
    """
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    trips = store.trips.find(of_driver, TRIP_ID, sort=OLDEST_FIRST, batch_size=BATCH_SIZE)
    details = store.trip_details.find(of_driver, TRIP_ID, batch_size=BATCH_SIZE)
    # Another program may have given a trip to another driver, with the read models not updated yet.
    yield from delete_trips_of(store, fleet, itertools.chain(trips, details), of_driver)
    yield _erase_rest(store, fleet, driver_id)


@transaction
def _erase_rest(store: Store, fleet: str, driver_id: str) -> int:
    """Delete the driver, and what else has the identifier: keys, invalid trips, read models that were wrong before."""
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    store.keys.delete_many(of_driver)
    for sources in (store.drivers, store.driver_groups):
        sources.delete_many({"$or": [{"_id": make_id(fleet, driver_id)}, of_driver]})
    count = store.trips.delete_many(of_driver).deleted_count
    entries = store.trip_changes.find({**of_driver, **NOT_DELETED}, TRIP_ID)
    trips = {entry["trip_id"]: None for entry in entries}
    periods = store.driver_periods.find({**of_driver, "period": {"$in": PERIODS}}, {"start_date": 1})
    days = {Day(driver_id, period["start_date"]) for period in periods}
    materialize(store, fleet, [driver_id], trips, days)
    store.trip_events.delete_many(of_driver)
    store.trip_changes.delete_many({**of_driver, **NOT_DELETED})
    # A report that was begun before is not published.
    store.fleets.update_one({"_id": fleet}, {"$inc": {"erasures": 1}})
    return count


def _describe_found(counts: dict[str, int], reports: list[ReportWindow], unused: int) -> str:
    parts = [f"{count} documents in {name}" for name, count in counts.items()]
    parts += [f"the {window}" for window in reports]
    parts += [f"{unused} files of earlier builds of reports"] if unused else []
    return "; ".join(parts)
