"""Building a report: its CSV file, its page, and the document in `reports` that refers to both."""

from collections.abc import Iterator
from typing import Any

from gridfs.errors import GridFSError
from pymongo import ASCENDING

from app.store import Document, Store
from app.store.drivers import HEAD_OFFSET
from app.store.fleets import get_time_zone
from app.store.reports import FILES, NEWEST_FIRST, has_only_later_trips, match_report, window_of
from schemas.csv_rows import begin_csv, render_rows
from schemas.periods import LONG_PERIODS, WEEK, LongPeriodName, dates_of_period, get_today
from schemas.report import HEADER, MILES, UNITS, ReportWindow, row
from scripts.command_line.output import make_bar
from scripts.mongodb.transactions import transaction
from scripts.reports.content import FigureCollector, get_trips_version
from scripts.reports.files import (
    mark_replaced,
    read_rows,
    remove_files,
    remove_files_of,
    remove_unused_files,
    write_file,
)
from scripts.reports.page import make_page

# The fields that reports of earlier versions lack, with their values.
FIRST_VALUES = {"period": WEEK, "trips_version": ""}


def find_current_windows(store: Store, fleet: str, period: LongPeriodName | None = None) -> list[ReportWindow]:
    """Return the windows of the reports on last week, Monday to Sunday, and on last month, or on one of them.

    It leaves out a window that was over before the first trip of the fleet.
    """
    zone = get_time_zone(store, fleet)
    periods, today = [period] if period else LONG_PERIODS, str(get_today(zone))
    windows = [ReportWindow(dates_of_period(each, today)[0], each) for each in periods]
    return [each for each in windows if not has_only_later_trips(store, fleet, each.report_date, zone)]


def build_report(store: Store, fleet: str, window: ReportWindow, units: str | None = None) -> Document:
    """Build a report, and return its document (schema StoredReport).

    Without `units`, the page has those of the report that it replaces, else of the fleet's report before it, else
    miles. The API returns the report once both files are complete. If a driver is erased meanwhile, the report is built
    again.
    """
    units = units or _get_units(store, fleet, window)
    remove_unused_files(store, fleet)
    while True:
        # Nothing can be written to the database while a snapshot is read.
        with store.snapshot(), make_bar(fleet, _count_drivers(store, fleet)) as bar:
            collector = FigureCollector(store, fleet, window)
            trips_version = get_trips_version(store, fleet, window)
            erasures = _count_erasures(store, fleet)
            content = list(_render_csv(collector, bar))
        csv_file = write_file(store, fleet, window, "csv", content)
        page = make_page(collector.figures, UNITS[units])
        files = {"csv": csv_file, "page": write_file(store, fleet, window, "page", [page])}
        report = {
            **match_report(fleet, window),
            "built_at": collector.figures.built_at,
            "drivers": collector.figures.drivers,
            **files,
            "units": units,
            "trips_version": trips_version,
        }
        if _publish(store, fleet, report, erasures):
            return report
        remove_files(store, {file["file_id"] for file in files.values()})


def is_current(store: Store, fleet: str, window: ReportWindow) -> bool:
    """Return whether a fleet has the report on a calendar week or month, and what it shows has not changed since."""
    report = store.reports.find_one(match_report(fleet, window))
    return report is not None and report["trips_version"] == get_trips_version(store, fleet, window)


def _get_units(store: Store, fleet: str, window: ReportWindow) -> str:
    """Return the units of the report that is there, else of the fleet's last one up to its date."""
    match = {"fleet": fleet, "report_date": {"$lte": window.report_date}}
    report = store.reports.find_one(match_report(fleet, window)) or store.reports.find_one(match, sort=NEWEST_FIRST)
    return report["units"] if report else MILES


@transaction
def _publish(store: Store, fleet: str, report: Document, erasures: int) -> bool:
    """Write the document of a report, unless a driver was erased since. Returns whether it was written."""
    if _count_erasures(store, fleet) != erasures:
        return False
    identity = match_report(fleet, window_of(report))
    if replaced := store.reports.find_one(identity):
        mark_replaced(store, replaced)
    store.reports.replace_one(identity, report, upsert=True)
    return True


def _count_erasures(store: Store, fleet: str) -> int:
    """Return how many drivers of a fleet were erased."""
    state = store.fleets.find_one({"_id": fleet}, {"erasures": 1}) or {}
    return int(state.get("erasures", 0))


def _count_drivers(store: Store, fleet: str) -> int:
    head = store.fleet_drivers.find_one({"fleet": fleet, "offset": HEAD_OFFSET})
    return int(head["driver_count"]) if head else 0


def delete_report(store: Store, fleet: str, window: ReportWindow) -> bool:
    """Delete a report and its files. Returns whether there was such a report."""
    report = store.reports.find_one_and_delete(match_report(fleet, window))
    if report is None:
        return False
    # Those of an earlier version have other names.
    remove_files(store, {report[name]["file_id"] for name in FILES})
    remove_files_of(store, fleet, window)
    return True


def complete_reports(store: Store, fleet: str) -> None:
    """Give the reports of earlier versions the fields that they lack.

    They cover a week. What they show of trips is unknown, so `reports build --due` builds them again if they are due.
    """
    change = {name: {"$ifNull": [f"${name}", value]} for name, value in FIRST_VALUES.items()}
    lacks_one = {"$or": [{name: {"$exists": False}} for name in FIRST_VALUES]}
    store.reports.update_many({"fleet": fleet, **lacks_one}, [{"$set": change}])


def find_reports_of(store: Store, fleet: str, driver_id: str) -> list[ReportWindow]:
    """Return the windows of the fleet's reports that contain a driver. Reads the CSV files."""
    reports = store.reports.find({"fleet": fleet}, sort=[("report_date", ASCENDING)])
    return [window_of(report) for report in reports if _contains(store, report, driver_id)]


def _contains(store: Store, report: Document, driver_id: str) -> bool:
    """Return whether the CSV file of a report has a row for a driver, or cannot be read."""
    # Without the marks before formulas: a report of another version may have others.
    column, plain = HEADER.index("driver_id"), driver_id.replace("'", "")
    try:
        rows = read_rows(store, report["csv"]["file_id"])
        return any(cell.replace("'", "") == plain for row in rows for cell in row[column : column + 1])
    except GridFSError:
        return True


def _render_csv(collector: FigureCollector, bar: Any) -> Iterator[bytes]:
    """Yield the CSV file in pieces: first the header, then some rows at a time."""
    yield begin_csv(HEADER)
    for rows in collector.rows():
        yield render_rows([row(each.driver, each.groups, each.summary) for each in rows])
        bar.update(len(rows))
