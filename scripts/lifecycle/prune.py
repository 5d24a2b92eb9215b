"""`driver-analytics prune`: remove the trips before a date, and what is derived from them."""

from collections.abc import Iterator

import click

from app.store import Document, Store
from app.store.fleets import get_time_zone
from app.store.reports import window_of
from schemas.periods import midnight
from scripts.command_line.options import DATE, ONE_OR_ALL_FLEETS
from scripts.command_line.output import echo, sum_with_progress
from scripts.materialize.trips import TRIP_ID
from scripts.materialize.write_sources import OLDEST_FIRST, delete_trips_of
from scripts.mongodb.connection import BATCH_SIZE, open_store, select_fleets
from scripts.reports.build import delete_report


@click.command()
@click.option("--before", type=DATE, required=True, help="YYYY-MM-DD: the first date whose trips stay.")
@ONE_OR_ALL_FLEETS
@click.option("--dry-run", is_flag=True, help="Only count what would be removed.")
def prune(before: str, fleet: str | None, dry_run: bool) -> None:
    """Remove the trips that started before a date.

    What is derived from them goes with them: summaries of the dates before, and reports whose dates are all before the
    date. Drivers of the driver file stay. The change feed reports no deletions, so clients keep their copies.

    The command does not ask for confirmation. If it was killed, run it again.
    """
    with open_store() as store:
        for name in select_fleets(store, fleet):
            # A week and a month end on the date before their report date.
            match = {"fleet": name, "report_date": {"$lte": before}}
            reports = sorted(map(window_of, store.reports.find(match)))
            count = store.trips.count_documents(_match_before(store, name, before), hint="driver_trips")
            if dry_run:
                echo(f"{name}: {count} trips before {before} and {len(reports)} reports would be removed")
                continue
            trips = sum_with_progress(name, count, prune_trips(store, name, before))
            for window in reports:
                delete_report(store, name, window)
            echo(f"{name}: removed {trips} trips before {before}, {len(reports)} reports")


def prune_trips(store: Store, fleet: str, date: str) -> Iterator[int]:
    """Delete the trips that started before a date, and all that is derived from them.

    Each step is a transaction. The change feed reports no deletions. Yields after each step the number of trips that it
    deleted.
    """
    match = _match_before(store, fleet, date)
    trips = store.trips.find(match, TRIP_ID, sort=OLDEST_FIRST, batch_size=BATCH_SIZE).hint("driver_trips")
    yield from delete_trips_of(store, fleet, trips, match, tombstones=False)
    # Invalid trips whose _id is not their identity. They have no read models.
    yield store.trips.delete_many(match).deleted_count


def _match_before(store: Store, fleet: str, date: str) -> Document:
    return {"fleet": fleet, "trip_start_time": {"$lt": midnight(date, get_time_zone(store, fleet))}}
