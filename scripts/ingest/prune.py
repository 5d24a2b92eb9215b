"""`driver-analytics prune`: remove the trips before a date, and what is derived from them."""

import click

from scripts.materialize.deletions import count_trips_before, prune_trips
from scripts.mongodb.connection import naming_invalid_documents, open_store, select_fleets
from scripts.options import DATE, ID
from scripts.progress import sum_with_progress
from scripts.reports.build import delete_report


@click.command()
@click.option("--before", type=DATE, required=True, help="YYYY-MM-DD: the first UTC date whose trips stay.")
@click.option("--fleet", type=ID, help="Only this fleet. By default all fleets.")
@click.option("--dry-run", is_flag=True, help="Only count what would be removed.")
def prune(before: str, fleet: str | None, dry_run: bool) -> None:
    """Remove the trips that started before a date.

    What is derived from them goes with them: summaries of the dates before, and reports whose seven days are all before
    the date. Drivers of the driver file stay. The change feed reports no deletions, so clients keep their copies.

    The command does not ask for confirmation. If it was killed, run it again.
    """
    with open_store() as store:
        for name in select_fleets(store, fleet):
            match = {"fleet": name, "report_date": {"$lte": before}}
            reports = sorted(report["report_date"] for report in store.reports.find(match))
            if dry_run:
                trips = count_trips_before(store, name, before)
                click.echo(f"{name}: {trips} trips before {before} and {len(reports)} reports would be removed")
                continue
            with naming_invalid_documents(store, name):
                count = count_trips_before(store, name, before)
                trips = sum_with_progress(name, count, prune_trips(store, name, before))
            for date in reports:
                delete_report(store, name, date)
            click.echo(f"{name}: removed {trips} trips before {before}, {len(reports)} reports")
