"""`driver-analytics reports`: build, list and delete the weekly reports that `/api/v1/report` links to."""

import datetime

import click

from app.store import Document
from app.store.fleets import get_time_zone
from schemas.params import REPORT_TIME_FORMAT
from schemas.periods import get_today
from schemas.report import UNITS
from scripts.command_line.options import DATE, FLEET, FLEET_NAME
from scripts.command_line.output import echo, echo_table
from scripts.mongodb.connection import name_other_fleets, open_store, select_fleets
from scripts.reports.build import build_report, current_report_date, delete_report, is_current

# The earliest date with the week of a report before it, and the week to which the report compares it.
FIRST_DATE = "0001-01-15"
COLUMNS = ("DATE", "BUILT", "DRIVERS", "BYTES", "UNITS")


@click.group()
def reports() -> None:
    """Build, list and delete weekly reports.

    A report covers seven days of all drivers of a fleet. It is a CSV file and an HTML page.
    """


@reports.command()
@click.option("--fleet", type=FLEET_NAME, help="The fleet to report on.")
@click.option("--report-date", type=DATE, help="YYYY-MM-DD: the report covers the seven days before this date.")
@click.option("--due", is_flag=True, help="Build the report for this week's Monday, of every fleet that needs it.")
@click.option("--units", type=click.Choice(list(UNITS)), help="The units of the page.")
def build(fleet: str | None, report_date: str | None, due: bool, units: str | None) -> None:
    """Build a report, or with --due last week's report of every fleet that needs it.

    A fleet needs it if it has none, or if trips in it, groups or the time zone have changed since it was built.

    Once the report is complete, it replaces the earlier one of the same fleet and date in one step. If the command was
    killed, run it again.

    Without --units, a page has the units of the report that it replaces, else of the fleet's report before it, else
    miles. The CSV file always has miles.
    """
    if due is not (fleet is None) or due is not (report_date is None):
        raise click.UsageError("Give either --fleet ID and --report-date DATE, or only --due.")
    if report_date and report_date < FIRST_DATE:
        raise click.UsageError(f"--report-date must be {FIRST_DATE} or later.")
    with open_store() as store:
        if fleet and report_date and report_date > str(get_today(get_time_zone(store, fleet))):
            raise click.UsageError(
                f"The seven days before {report_date} are not over yet. Give a --report-date up to today."
            )
        for name in select_fleets(store, fleet):
            date = report_date or current_report_date(store, name)
            if due and is_current(store, name, date):
                echo(f"{name}: the report of {date} already exists")
                continue
            report = build_report(store, name, date, units)
            echo(f"{name}: built the report of {date}, {report['drivers']} drivers")


@reports.command("list")
@FLEET
def list_(fleet: str) -> None:
    """List the reports of a fleet, oldest first.

    Columns, separated by tabs: report date, time of building (UTC), number of drivers, size of the CSV file in bytes,
    units of the page. A terminal also gets a line with the names of the columns.
    """
    with open_store(writes=False) as store:
        stored_reports = list(store.reports.find({"fleet": fleet}).sort("report_date"))
        if not stored_reports:
            echo(f"The fleet {fleet} has no reports.{name_other_fleets(store, fleet)}", err=True)
        echo_table(COLUMNS, map(_make_row, stored_reports))


def _make_row(report: Document) -> tuple[str, ...]:
    """Return the values of COLUMNS."""
    built = datetime.datetime.fromtimestamp(report["built_at"] // 1000, datetime.UTC)
    numbers = str(report["drivers"]), str(report["csv"]["bytes"])
    return report["report_date"], f"{built:{REPORT_TIME_FORMAT}}Z", *numbers, report["units"]


@reports.command()
@FLEET
@click.option("--report-date", type=DATE, required=True, help="YYYY-MM-DD: the date of the report.")
def delete(fleet: str, report_date: str) -> None:
    """Delete a report and its files. Existing links to it then return 404, unless you build it again."""
    with open_store() as store:
        if not delete_report(store, fleet, report_date):
            raise click.ClickException(
                f"The fleet {fleet} has no report of {report_date}. To list its reports, run: driver-analytics reports "
                f"list --fleet {fleet}"
            )
    echo(f"{fleet}: deleted the report of {report_date}", err=True)
