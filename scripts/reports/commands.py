"""`driver-analytics reports`: build, list and delete the weekly and monthly reports that `/api/v1/report` links to."""

import datetime

import click

from app.store import Document
from app.store.fleets import get_time_zone
from app.store.reports import window_of
from schemas.param_fields import REPORT_TIME_FORMAT
from schemas.periods import LONG_PERIODS, WEEK, LongPeriodName, get_today
from schemas.report import FIRST_REPORT_DATES, UNITS, ReportWindow
from scripts.command_line.options import DATE, FLEET, FLEET_NAME
from scripts.command_line.output import echo, echo_table
from scripts.materialize.read_models import naming_damage
from scripts.mongodb.connection import name_other_fleets, open_store, select_fleets
from scripts.reports.build import build_report, delete_report, find_current_windows, is_current

COLUMNS = ("DATE", "PERIOD", "BUILT", "DRIVERS", "BYTES", "UNITS")
PERIOD = click.option("--period", type=click.Choice(LONG_PERIODS), help="What the report covers; a week by default.")


@click.group()
def reports() -> None:
    """Build, list and delete weekly and monthly reports.

    A report covers seven days, or a calendar month, of all drivers of a fleet. It is a CSV file and an HTML page.
    """


@reports.command()
@click.option("--fleet", type=FLEET_NAME, help="The fleet to report on.")
@click.option("--report-date", type=DATE, help="YYYY-MM-DD: the report covers the week or month before this date.")
@PERIOD
@click.option("--due", is_flag=True, help="Build the reports on last week and month of every fleet that needs them.")
@click.option("--units", type=click.Choice(list(UNITS)), help="The units of the page.")
def build(
    fleet: str | None, report_date: str | None, period: LongPeriodName | None, due: bool, units: str | None
) -> None:
    """Build a report, or with --due the reports on last week and last month of every fleet that needs them.

    The report of a date covers the seven days before it, or with --period month the calendar month before it: the date
    is then the first of a month. With --due, --period builds the reports of this period alone.

    A fleet needs a report if it has none, or if trips in it, groups, the time zone or what is done with implausible
    trips have changed since it was built.

    Once the report is complete, it replaces the earlier one of the same fleet, date and period in one step. If the
    command was killed, run it again.

    Without --units, a page has the units of the report that it replaces, else of the fleet's report before it, else
    miles. The CSV file always has miles.
    """
    if due is not (fleet is None) or due is not (report_date is None):
        raise click.UsageError("Give either --fleet ID and --report-date DATE, or only --due.")
    given = [_make_window(report_date, period or WEEK)] if report_date else []
    with open_store() as store:
        if fleet and report_date and report_date > str(get_today(get_time_zone(store, fleet))):
            raise click.UsageError(f"The days before {report_date} are not over yet. Give a --report-date up to today.")
        for name in select_fleets(store, fleet):
            for window in given or find_current_windows(store, name, period):
                if due and is_current(store, name, window):
                    echo(f"{name}: the {window} already exists")
                    continue
                with naming_damage(name):
                    report = build_report(store, name, window, units)
                echo(f"{name}: built the {window}, {report['drivers']} drivers")


def _make_window(report_date: str, period: LongPeriodName) -> ReportWindow:
    """Return the window of a report. Raises click.UsageError for a date that no report of this period has."""
    window = ReportWindow.of(report_date, period)
    if window.report_date != report_date:
        raise click.UsageError(f"--report-date of a monthly report is the first of a month: {window.report_date}.")
    if report_date < FIRST_REPORT_DATES[period]:
        raise click.UsageError(f"--report-date must be {FIRST_REPORT_DATES[period]} or later.")
    return window


@reports.command("list")
@FLEET
def list_(fleet: str) -> None:
    """List the reports of a fleet, oldest first.

    Columns, separated by tabs: report date, week or month, time of building (UTC), number of drivers, size of the CSV
    file in bytes, units of the page. A terminal also gets a line with the names of the columns.
    """
    with open_store(writes=False) as store:
        stored_reports = sorted(store.reports.find({"fleet": fleet}), key=window_of)
        if not stored_reports:
            echo(f"The fleet {fleet} has no reports.{name_other_fleets(store, fleet)}", err=True)
        echo_table(COLUMNS, map(_make_row, stored_reports))


def _make_row(report: Document) -> tuple[str, ...]:
    """Return the values of COLUMNS."""
    built = datetime.datetime.fromtimestamp(report["built_at"] // 1000, datetime.UTC)
    numbers = str(report["drivers"]), str(report["csv"]["bytes"])
    return *window_of(report), f"{built:{REPORT_TIME_FORMAT}}Z", *numbers, report["units"]


@reports.command()
@FLEET
@click.option("--report-date", type=DATE, required=True, help="YYYY-MM-DD: the date of the report.")
@PERIOD
def delete(fleet: str, report_date: str, period: LongPeriodName | None) -> None:
    """Delete a report and its files. Existing links to it then return 404, unless you build it again."""
    window = _make_window(report_date, period or WEEK)
    with open_store() as store:
        if not delete_report(store, fleet, window):
            raise click.ClickException(
                f"The fleet {fleet} has no {window}. To list its reports, run: driver-analytics reports "
                f"list --fleet {fleet}"
            )
    echo(f"{fleet}: deleted the {window}", err=True)
