"""Daily summaries of a fleet, and the weekly ones that add up from them."""

import dataclasses
import datetime
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from pymongo.database import Database

from app.store import Document, pipelines
from app.store.buckets import VERSION_BYTES
from app.store.drivers import find_by_id, find_while_stale
from app.store.page import ATTEMPTS
from app.store.pipelines import DAILY, WEEKLY, Days
from app.store.reading import Find, find
from app.store.served import DRIVER, Found, Seen, from_served, text_of, week_span
from schemas.derive import Fields, fields_of, fits, projection
from schemas.mask import arranger
from schemas.page import DailyAggregates, WeeklyAggregates
from schemas.summary import DailySummary

DAYS_A_WEEK = 7
ABOUT = {"_id": 0, "driver_id": 1, "span": 1, "stale": 1, "version": 1}
TEXT = {**ABOUT, "text": 1}
STALE = {"stale": True}


def find_daily(
    db: Database[Document], fleet: str, driver_ids: list[str], date: str, fields: Fields = DAILY
) -> dict[str, Document]:
    """Return the `fields` of the Daily summaries of those who drove on the date, by driver_id. Index: (fleet, day)."""
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids]
    wanted = {"_id": 0, "day": 1, "stale": 1, **projection(fields, "summary.")}
    found = find(db.daily_summaries, {"fleet": fleet, "day": {"$in": days}}, wanted)
    sound = fits(DailySummary, fields)
    if stale := [doc["day"] for doc in found if "stale" in doc or not sound(doc.get("summary"))]:
        found = [doc for doc in found if doc["day"] not in stale]
        found += db.trips.aggregate(pipelines.daily_summaries(fleet, stale, fields))
    arrange = arranger(fields, DAILY)
    return {doc["day"]["driver_id"]: arrange(doc["summary"]) for doc in found}


def find_weekly(
    db: Database[Document], fleet: str, driver_ids: list[str], start_date: str, fields: Fields = WEEKLY
) -> dict[str, Document]:
    """Return the `fields` of the Weekly summaries of those who drove in the 7 days from `start_date`, by driver_id.

    Added up from at most 7 daily summaries a driver. Indexes: (fleet, day), (fleet, stale, day).
    """
    first = datetime.date.fromisoformat(start_date)
    dates = [str(first + datetime.timedelta(days=number)) for number in range(DAYS_A_WEEK)]
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids for date in dates]
    stale = _stale(db, fleet, days)
    fresh = [day for day in days if day not in stale]
    pipeline = pipelines.weekly_summaries(fleet, fresh, stale, dates[0], dates[-1], fields)
    return {doc["driver_id"]: doc["summary"] for doc in db.daily_summaries.aggregate(pipeline)}


def _stale(db: Database[Document], fleet: str, days: Days) -> Days:
    """Return those of the days whose trips are being written; their summaries are to be made from the trips."""
    match = {"fleet": fleet, "stale": True, "day": {"$in": days}}
    return [doc["day"] for doc in find(db.daily_summaries, match, {"_id": 0, "day": 1})]


@dataclasses.dataclass(frozen=True)
class Period:
    """A kind of summary: the answer it comes in, the span that it has of a date, and how it is made."""

    whole: Fields
    span: Callable[[str], str]
    find: Callable[..., dict[str, Document]]


DAY = Period(fields_of(DailyAggregates), str, find_daily)
WEEK = Period(fields_of(WeeklyAggregates), week_span, find_weekly)


class AskedSummaries(NamedTuple):
    """Whose summaries of which period, from which date on, and which `fields` of its answer."""

    period: Period
    driver_ids: list[str]
    start_date: str
    fields: Fields


def find_aggregates(db: Database[Document], fleet: str, asked: AskedSummaries, seen: Seen | None = None) -> Found:
    """Find what is asked for of a period's aggregates: an element a driver, in their order.

    The element of a driver who did not drive has no member `driving_summary`.
    Indexes: (fleet, driver_id, span), and where masked or stale those of the period's own reads. Raises UnknownDrivers.
    """
    made = functools.partial(_made, db, fleet, asked, find_while_stale)
    return _find_served(db, fleet, asked, seen) or Found(_agreed(made), None)


@from_served
def _find_served(db: Database[Document], fleet: str, asked: AskedSummaries, seen: Seen | None) -> Found | None:
    period, driver_ids, start_date, fields = asked
    span, whole = period.span(start_date), seen is None and fields is period.whole
    match = {"fleet": fleet, "driver_id": {"$in": driver_ids}, "span": {"$in": [DRIVER, span]}}
    found = {(doc["driver_id"], doc["span"]): doc for doc in find(db.served_spans, match, TEXT if whole else ABOUT)}
    drivers = [found.get((driver_id, DRIVER), STALE) for driver_id in driver_ids]
    if any("stale" in driver for driver in drivers):
        return None
    summaries = [found.get((driver_id, span)) for driver_id in driver_ids]
    version = b"".join(doc["version"] if doc else bytes(VERSION_BYTES) for doc in (*drivers, *summaries))
    if seen is not None:
        return Found(None, version) if seen(version) else _find_served(db, fleet, asked, None)
    if not whole:
        content = _made(db, fleet, asked, find)
        same = "driving_summary" not in (fields.get("data") or {}) or found == {
            (doc["driver_id"], doc["span"]): doc for doc in find(db.served_spans, match, ABOUT)
        }
        return Found(content, version) if same else None
    rows = [
        {"driver_info": text_of(driver)} | ({"driving_summary": text_of(summary)} if summary else {})
        for driver, summary in zip(drivers, summaries, strict=True)
    ]
    return Found({"data": rows}, version)


def _agreed(read: Callable[[], Document]) -> Document:
    """Return what two readings in a row agree on: days that are being written may be read half before, half after."""
    found = read()
    for _ in range(ATTEMPTS):
        again = read()
        if again == found:
            break
        found = again
    return found


def _made(db: Database[Document], fleet: str, asked: AskedSummaries, read: Find) -> Document:
    """Return the aggregates asked for, made of what masks read: drivers, by `read`, daily summaries and trips."""
    period, driver_ids, start_date, fields = asked
    row = fields.get("data") or {}
    known = find_by_id(db, fleet, driver_ids, row.get("driver_info") or {}, read)
    summary = row.get("driving_summary")
    found = {} if summary is None else period.find(db, fleet, driver_ids, start_date, summary)
    parts: dict[str, Any] = {"driver_info": known, "driving_summary": found}
    rows = [{name: parts[name][driver_id] for name in row if driver_id in parts[name]} for driver_id in driver_ids]
    return dict.fromkeys(fields, rows)
