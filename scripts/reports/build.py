"""`driver-analytics reports`: what endpoint 6 links to, built from daily summaries."""

import csv
import datetime
import hashlib
import io
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click
from bson import ObjectId
from gridfs import GridFSBucket

from app.store import Document, Store
from app.store.reports import BUCKET, FILES
from schemas.params import REPORT_TIME_FORMAT
from schemas.report import HEADER, row
from scripts.mongodb.connection import fleets, open_store
from scripts.options import DATE, ID
from scripts.reports.figures import Gathering

# For so long after a report was built anew, its earlier files are kept for those who are reading them.
KEPT_MS = 3_600_000
# No identifier holds one.
SEPARATOR = "\t"
# With two weeks of the calendar before it.
FIRST_DATE = "0001-01-15"
# What a spreadsheet would run. A sign alone, or before what makes up numbers and telephone numbers, runs nothing.
RUNS = re.compile(r"[=@\t\r\n]|[+-](?![0-9 .()-]*\Z)")

FLEET = click.option("--fleet", type=ID, required=True, help="The fleet whose reports they are.")


@click.group()
def reports() -> None:
    """A fleet's reports: seven days of all its drivers, as CSV and as a page to read."""


@reports.command()
@click.option("--fleet", type=ID, help="The fleet to report on.")
@click.option("--report-date", type=DATE, help="YYYY-MM-DD: the report covers the seven UTC days before this date.")
@click.option("--due", is_flag=True, help="Every fleet's report for this week's Monday that is missing; for a timer.")
def build(fleet: str | None, report_date: str | None, due: bool) -> None:
    """Build one report, or with --due all that are due.

    A report replaces the earlier one of the same fleet and date, in one step, once it is whole. After a kill run the
    same command again.
    """
    if due is not (fleet is None) or due is not (report_date is None):
        raise click.UsageError("Give --fleet ID and --report-date DATE, or --due alone.")
    date = report_date or due_date()
    if date > str(today()):
        raise click.UsageError(f"The days before {date} are not over yet; give a --report-date up to today.")
    if date < FIRST_DATE:
        raise click.UsageError(f"--report-date must be from {FIRST_DATE} on.")
    with open_store() as store:
        for name in fleets(store, fleet):
            if due and store.reports.find_one({"fleet": name, "report_date": date}) is not None:
                click.echo(f"{name}: the report of {date} is there already")
                continue
            report = build_report(store, name, date)
            click.echo(f"{name}: report of {date} built, {report['drivers']} drivers")


@reports.command("list")
@FLEET
def list_(fleet: str) -> None:
    """List the fleet's reports, oldest first: date, when built, drivers, bytes of the CSV; tab-separated, in UTC."""
    with open_store() as store:
        for report in store.reports.find({"fleet": fleet}).sort("report_date"):
            built = datetime.datetime.fromtimestamp(report["built_at"] // 1000, datetime.UTC).strftime(
                f"{REPORT_TIME_FORMAT}Z"
            )
            click.echo("\t".join((report["report_date"], built, str(report["drivers"]), str(report["csv"]["bytes"]))))


@reports.command()
@FLEET
@click.option("--report-date", type=DATE, required=True, help="YYYY-MM-DD: the date of the report.")
def delete(fleet: str, report_date: str) -> None:
    """Delete a report with its files. Links to it find nothing, unless it is built again while they last."""
    with open_store() as store:
        if store.reports.delete_one({"fleet": fleet, "report_date": report_date}).deleted_count == 0:
            raise click.ClickException(
                f"{fleet} has no report of {report_date}; 'driver-analytics reports list --fleet ID' lists them."
            )
        _remove(store, _file_ids(store, _prefix(fleet, report_date)))
    click.echo(f"{fleet}: the report of {report_date} is deleted.", err=True)


def today() -> datetime.date:
    """Return the UTC date."""
    return datetime.datetime.now(datetime.UTC).date()


def due_date() -> str:
    """Return the date of the report on last week, Monday to Sunday: this week's Monday."""
    date = today()
    return str(date - datetime.timedelta(date.weekday()))


def build_report(store: Store, fleet: str, report_date: str) -> Document:
    """Build a report, which is there in one step once both of its files are, and return it (schema StoredReport)."""
    try:
        # Other commands start without what draws.
        from scripts.reports import charts  # noqa: F401
        from scripts.reports.page import make_page
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"Reports need {error.name}; install 'driver-analytics-api[reports]', or run 'make setup'."
        ) from None
    _remove_leftovers(store, fleet)
    key = {"fleet": fleet, "report_date": report_date}
    with store.snapshot() as session:
        gathering = Gathering(store, session, fleet, report_date)
        total = (store.fleet_drivers.find_one({"_id": fleet}) or {"driver_count": 0})["driver_count"]
        with click.progressbar(length=total, label=fleet, file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
            file = _store(store, f"{_prefix(fleet, report_date)}csv", _csv(gathering, bar))
    page = _store(store, f"{_prefix(fleet, report_date)}page", [make_page(gathering.figures)])
    report = {**key, "built_at": _now(), "drivers": gathering.figures.drivers, "csv": file, "page": page}
    left = store.reports.find_one(key) or {}
    ids = [left[name]["file_id"] for name in FILES if name in left]
    store.db[f"{BUCKET}.files"].update_many({"_id": {"$in": ids}}, {"$set": {"metadata.left_at": _now()}})
    store.reports.replace_one(key, report, upsert=True)
    return report


def _csv(gathering: Gathering, bar: Any) -> Iterator[bytes]:
    """Yield the file's bytes, some rows at a time."""
    yield _lines([HEADER])
    for rows in gathering.rows():
        yield _lines([list(map(_cell, row(*found))) for found in rows])
        bar.update(len(rows))


def _lines(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and RUNS.match(value):
        return f"'{value}"
    return value


def _store(store: Store, name: str, parts: Iterable[bytes]) -> Document:
    """Write a file, and return where it is (schema StoredFile)."""
    file_id, digest, size = f"{name}{SEPARATOR}{ObjectId()}", hashlib.sha256(), 0
    with GridFSBucket(store.db, BUCKET).open_upload_stream_with_id(file_id, name) as stream:
        for part in parts:
            stream.write(part)
            digest.update(part)
            size += len(part)
    return {"file_id": file_id, "bytes": size, "digest": digest.hexdigest()}


def _remove_leftovers(store: Store, fleet: str) -> None:
    """Remove files that belong to no report: what a killed command left, and what was replaced a while ago."""
    reports = store.reports.find({"fleet": fleet}, {"_id": 0, "csv": 1, "page": 1})
    used = {report[name]["file_id"] for report in reports for name in FILES}
    # Others may be building a report just now.
    unused = {file_id for file_id in _file_ids(store, _prefix(fleet)) - used if _age_ms(file_id) > KEPT_MS}
    lately = {"_id": {"$in": list(unused)}, "metadata.left_at": {"$gt": _now() - KEPT_MS}}
    _remove(store, unused - {file["_id"] for file in store.db[f"{BUCKET}.files"].find(lately, {"_id": 1})})


def _age_ms(file_id: str) -> float:
    return _now() - ObjectId(file_id.rpartition(SEPARATOR)[2]).generation_time.timestamp() * 1000


def _file_ids(store: Store, prefix: str) -> set[str]:
    """Return the files whose ids begin with this, halves of files included. Indexes: (_id), (files_id, n)."""
    # What follows the separator is greater than it and less than the next character.
    between = {"$gte": prefix, "$lt": prefix[:-1] + chr(ord(SEPARATOR) + 1)}
    files = store.db[f"{BUCKET}.files"].find({"_id": between}, {"_id": 1})
    return {file["_id"] for file in files}.union(
        store.db[f"{BUCKET}.chunks"].distinct("files_id", {"files_id": between})
    )


def _remove(store: Store, file_ids: set[str]) -> None:
    store.db[f"{BUCKET}.files"].delete_many({"_id": {"$in": list(file_ids)}})
    store.db[f"{BUCKET}.chunks"].delete_many({"files_id": {"$in": list(file_ids)}})


def _prefix(*words: str) -> str:
    """Return what the ids of a fleet's files, or of one report's, begin with: by it they are found in any state."""
    return "".join(word + SEPARATOR for word in words)


def _now() -> int:
    return int(time.time() * 1000)
