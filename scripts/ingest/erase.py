"""`driver-analytics erase`: remove a driver and everything that is derived from the driver's data."""

import sys

import click

from scripts.materialize.deletions import count_documents_of_driver, erase_driver
from scripts.mongodb.connection import find_fleets, naming_invalid_documents, open_store
from scripts.options import ID, take_one
from scripts.progress import sum_with_progress
from scripts.reports.build import build_report, find_reports_of, get_page_maker
from scripts.reports.files import find_unused_files_with, remove_all_unused_files


@click.command()
@click.option("--fleet", type=ID, required=True, help="The fleet of the driver.")
@click.option(
    "--driver",
    "driver_id",
    type=ID,
    required=True,
    multiple=True,
    callback=take_one,
    help="The driver_id of the driver.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def erase(fleet: str, driver_id: str, yes: bool) -> None:
    """Remove a driver and everything derived from the driver's data.

    The command removes the driver, the trips with their trails and events, the summaries and the driver's place in
    rankings. It builds the reports that contain the driver again, without the driver. The change feed reports the
    deletion of each trip for 30 days.

    It lists what it found, and asks for confirmation. If the command was killed, run it again. It cannot reach backups,
    exported and imported files, and files of rejected lines: docs/data.md says what to do about them.
    """
    with open_store() as store, naming_invalid_documents(store, fleet):
        counts, reports = count_documents_of_driver(store, fleet, driver_id), find_reports_of(store, fleet, driver_id)
        unused = find_unused_files_with(store, fleet, driver_id)
        if not (counts or reports or unused):
            # A fleet whose last driver was erased still has its state.
            find_fleets(store, fleet)
            click.echo(f"{fleet}: nothing is stored of the driver {driver_id}")
            return
        _confirm(f"{fleet}: {driver_id}: {_describe(counts, reports, len(unused))}", yes)
        if reports:
            # Otherwise the command would fail when the trips are already gone.
            get_page_maker()
        trips = sum_with_progress(fleet, counts.get("trips", 0), erase_driver(store, fleet, driver_id))
        for date in reports:
            build_report(store, fleet, date)
        remove_all_unused_files(store, fleet)
        click.echo(f"{fleet}: erased the driver {driver_id}: {trips} trips removed, {len(reports)} reports built again")


def _describe(counts: dict[str, int], reports: list[str], unused: int) -> str:
    parts = [f"{count} documents in {name}" for name, count in counts.items()]
    parts += [f"the reports of {', '.join(reports)}"] if reports else []
    parts += [f"{unused} files of earlier builds of reports"] if unused else []
    return "; ".join(parts)


def _confirm(description: str, yes: bool) -> None:
    """Print what is to be removed, and ask on a terminal.

    Raises click.ClickException if there is none, and click.Abort for no.
    """
    click.echo(description)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.ClickException("Nothing was removed: there is no terminal to ask on. Confirm with --yes.")
    click.confirm("Remove all of it? This cannot be undone.", abort=True)
