"""The documents of `served_spans`, made from the canonical ones. Serialising is done here, once for all reads."""

import datetime
import itertools
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from app.store import Document, pipelines
from app.store.buckets import BUCKET_ROWS, Buckets, bucket_span
from app.store.served import DRIVER, version_of, week_span
from app.store.summaries import DAYS_A_WEEK
from schemas.derive import fields_of, projection
from schemas.driver import Driver
from schemas.trip import TripDetail, TripSummary
from scripts.store import Store

TRIP_FIELDS, DRIVER_FIELDS = projection(fields_of(TripSummary)), projection(fields_of(Driver))
DETAIL_FIELDS = projection(fields_of(TripDetail))
DETAIL = tuple(fields_of(TripDetail))
# The text of a larger trip would not fit beside the trip into MongoDB's 16 MiB.
MAX_TEXT_BYTES = 4_000_000


class Day(NamedTuple):
    """A driver's UTC date."""

    driver_id: str
    date: str


def trip_text(trip: Mapping[str, Any]) -> Document:
    """Return what is stored of a trip's detail form as JSON: its version and, unless that is large, its text."""
    text = orjson.dumps({name: trip[name] for name in DETAIL})
    version = {"version": version_of(text)}
    return {**version, "text": text} if len(text) <= MAX_TEXT_BYTES else version


def make_summaries(db: Store, fleet: str, days: Iterable[Day]) -> dict[Day, Document]:
    """Return the Daily summary of those of the days that have trips."""
    pipeline = pipelines.daily_summaries(fleet, [day._asdict() for day in days])
    return {Day(**doc["day"]): doc["summary"] for doc in db.trips.aggregate(pipeline)}


def make_days(db: Store, fleet: str, summaries: Mapping[Day, Document]) -> Iterator[tuple[Day, list[Document]]]:
    """Yield the documents of each of these days: its summary with its first bucket, then its other buckets."""
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for day in summaries]}}
    order = [("day", 1), ("trip_start_time", 1), ("trip_id", 1)]
    trips = ((Day(**trip.pop("day")), trip) for trip in db.trips.find(match, {**TRIP_FIELDS, "day": 1}).sort(order))
    for day, group in itertools.groupby(trips, key=lambda pair: pair[0]):
        text, buckets = orjson.dumps(summaries[day]), list[Document]()
        while chunk := [trip for _, trip in itertools.islice(group, BUCKET_ROWS)]:
            rows = [orjson.dumps(trip) for trip in chunk]
            ends = array("q", [trip["trip_end_time"] for trip in chunk]).tobytes()
            own = {} if buckets else {"text": text}
            bucket = {"version": version_of(*own.values(), ends, *rows), **own, "rows": rows, "ends": ends}
            buckets.append({**span_key(fleet, day.driver_id, bucket_span(day.date, len(buckets))), **bucket})
        yield day, buckets


def make_weeks(db: Store, fleet: str, days: Iterable[Day]) -> dict[tuple[str, str], Document | None]:
    """Return the documents of the weeks that the days lie in, by driver and span; None for one without summaries.

    Made from daily summaries, which have to be right.
    """
    mondays = defaultdict(set)
    for day in days:
        date = datetime.date.fromisoformat(day.date)
        mondays[date.toordinal() - date.weekday()].add(day.driver_id)
    weeks: dict[tuple[str, str], Document | None] = {}
    for monday, drivers in mondays.items():
        # The last week of the calendar has no end.
        if monday + DAYS_A_WEEK - 1 > datetime.date.max.toordinal():
            continue
        dates = [datetime.date.fromordinal(monday + number).isoformat() for number in range(DAYS_A_WEEK)]
        span = week_span(dates[0])
        wanted = [{"driver_id": driver_id, "date": date} for driver_id in sorted(drivers) for date in dates]
        weeks |= {(driver_id, span): None for driver_id in drivers}
        for doc in db.daily_summaries.aggregate(pipelines.weekly_summaries(fleet, wanted, [], dates[0], dates[-1])):
            weeks[doc["driver_id"], span] = _with_text(span_key(fleet, doc["driver_id"], span), doc["summary"])
    return weeks


def make_drivers(
    db: Store,
    fleet: str,
    driver_ids: Iterable[str],
    buckets: Mapping[str, Mapping[str, list[Document]]],
    *,
    anew: bool = False,
) -> Iterator[Document]:
    """Yield the documents of drivers: these buckets of some dates and, unless made anew, the stored ones of others."""
    match = {"fleet": fleet, "driver_id": {"$in": list(driver_ids)}}
    spans = db.served_spans.find({**match, "span": DRIVER}, {"_id": 0, "driver_id": 1, "buckets": 1})
    stored = {} if anew else {doc["driver_id"]: doc.get("buckets") for doc in spans}
    for driver in db.drivers.find(match, DRIVER_FIELDS):
        driver_id = driver["driver_id"]
        known = Buckets(stored.get(driver_id))
        for date, documents in buckets.get(driver_id, {}).items():
            known.replace(date, dict(enumerate(map(_about, documents))))
        yield {**_with_text(span_key(fleet, driver_id, DRIVER), driver), "buckets": known.stored()}


def span_key(fleet: str, driver_id: str, span: str) -> Document:
    """Return what tells a document of `served_spans` from all others."""
    return {"fleet": fleet, "driver_id": driver_id, "span": span}


def _with_text(key: Document, content: Document) -> Document:
    text = orjson.dumps(content)
    return {**key, "version": version_of(text), "text": text}


def _about(bucket: Document) -> tuple[int, int, int]:
    version = int.from_bytes(bucket["version"], sys.byteorder)
    return len(bucket["rows"]), max(array("q", bucket["ends"])), version
