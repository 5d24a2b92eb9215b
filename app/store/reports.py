"""The reports of a fleet, and their files in GridFS."""

from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from gridfs import GridFSBucket
from marshmallow import EXCLUDE
from pymongo import ASCENDING, DESCENDING

from app.store import Document, InvalidDocument, Result, Store
from app.store.pagination import PageRequest
from schemas.fields import MIN_EPOCH_MS
from schemas.periods import midnight
from schemas.report import ReportWindow
from schemas.stored import StoredReport

# GridFS stores a bucket in two collections: NAME.files and NAME.chunks.
BUCKET = "report_files"
# The files of a report, as fields of its document.
FILES = ("csv", "page")
NEWEST_FIRST = [("report_date", DESCENDING), ("period", DESCENDING)]
SCHEMA = StoredReport(unknown=EXCLUDE)


def window_of(report: Document) -> ReportWindow:
    """Return the window of a report (schema StoredReport)."""
    return ReportWindow(report["report_date"], report["period"])


def match_report(fleet: str, window: ReportWindow) -> Document:
    """Return the condition for the report of a fleet on a window. Index: reports (fleet, report_date, period)."""
    return {"fleet": fleet, "report_date": window.report_date, "period": window.period}


def get_report(store: Store, fleet: str, window: ReportWindow) -> Document | None:
    """Return the report (schema StoredReport) of a fleet on a window, or None. Raises InvalidDocument."""
    report = store.reports.find_one(match_report(fleet, window))
    if report is not None and SCHEMA.validate(report):
        raise InvalidDocument(store.reports, report)
    return report


def find_reports(store: Store, fleet: str, *, page: int, limit: int) -> Result:
    """Return a ReportPage: the reports that are built, newest first. Index: (fleet, report_date, period)."""
    page_request, match = PageRequest(page, limit), {"fleet": fleet}
    options: dict[str, Any] = {"sort": NEWEST_FIRST, "skip": page_request.skip, "limit": limit}
    with store.snapshot():
        count = store.reports.count_documents(match)
        reports = list(store.reports.find(match, {"_id": 0}, **options))
    records = [
        {
            "report_date": report["report_date"],
            "period": report["period"],
            "start_date": (dates := window_of(report).dates)[0],
            "end_date": dates[-1],
            "built_at": report["built_at"],
            "driver_count": report["drivers"],
            "units": report["units"],
        }
        for report in reports
    ]
    versions = [f"{window_of(report)}:{report['built_at']}" for report in reports]
    return page_request.build_result(count, versions, {"reports": records})


def has_only_later_trips(store: Store, fleet: str, date: str, zone: ZoneInfo) -> bool:
    """Return whether a fleet has trips, but none that ended before a date in its time zone.

    Index: trip_changes (fleet, trip_end_time, trip_id).
    """
    match, projection = {"fleet": fleet, "trip_end_time": {"$gte": MIN_EPOCH_MS}}, {"_id": 0, "trip_end_time": 1}
    first = store.trip_changes.find_one(match, projection, sort=[("trip_end_time", ASCENDING)])
    return first is not None and first["trip_end_time"] >= midnight(date, zone)


def read_file(store: Store, file: Document) -> Iterator[bytes]:
    """Yield the content of a report's file (schema StoredFile), one chunk of GridFS at a time.

    PyMongo reads up to 16 MB ahead. Index: (files_id, n). Raises PyMongoError, for example CorruptGridFile.
    """
    stream = GridFSBucket(store.db, BUCKET).open_download_stream(file["file_id"])
    while chunk := stream.readchunk():
        yield chunk
