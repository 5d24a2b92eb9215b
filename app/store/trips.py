"""Trips of a fleet."""

import itertools
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from bson import ObjectId
from orjson import Fragment
from pymongo import ASCENDING, DESCENDING

from app.store import Document, Result, Store, UnknownDrivers
from app.store.pages import Page, Wanted, first, renderer
from schemas.derive import Fields, fields_of
from schemas.trip import TripDetail, TripSummary

MS_PER_HOUR = 3_600_000
SUMMARY, DETAIL = fields_of(TripSummary), fields_of(TripDetail)
# The fields of the detail form that are stored as a fragment each, beside the summary form.
PARTS = tuple(name for name in DETAIL if name not in SUMMARY)
BY_DATE = [("start_date", ASCENDING)]
# All that the count needs stands in the index.
CALENDAR = {"_id": 0, "start_date": 1, "trip_count": 1, "last_trip_end": 1, "version": 1}
# More than six months have: all come with the first reply.
MAX_DAYS = 200
# One trip has a trip_id, and its index holds no times.
ORDER = {
    "trip_id": [("trip_id", ASCENDING)],
    "tracking_id": [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)],
}


def visible_until(processing_delay_hours: float) -> int:
    """Return the latest end (epoch ms) of a trip that is visible now."""
    return int(time.time() * 1000) - int(processing_delay_hours * MS_PER_HOUR)


def find_driver_trips(
    store: Store, fleet: str, driver_id: str, *, start_date: str, ended_by: int, page: int, limit: int, wanted: Wanted
) -> Result:
    """Return a page of a driver's trips, in summary form, oldest first.

    These are the trips that started on `start_date` or later and had ended by `ended_by` (epoch ms). Counts trips by
    day, then reads only the days on the page. Index: driver_periods (fleet, period, driver_id, start_date, ...).
    Raises UnknownDrivers.
    """
    asked, rows = Page(page, limit), list[str]()
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    match = {**of_driver, "period": "day", "start_date": {"$gte": start_date}}
    with store.snapshot() as session:

        def find_days(projection: Document, where: Document = match, **bounds: int) -> list[Document]:
            days = store.driver_periods.find(
                where, projection, sort=BY_DATE, batch_size=MAX_DAYS, session=session, **bounds
            )
            return list(days)

        days, visible = find_days(CALENDAR), dict[str, int]()
        if not days and not find_days({"_id": 1}, {**of_driver, "period": "all"}):
            raise UnknownDrivers([driver_id])
        # Of most days all trips are visible; of the others, the trips are counted.
        if unsettled := [day["start_date"] for day in days if day["last_trip_end"] > ended_by]:
            ends = find_days({"_id": 0, "start_date": 1, "trip_ends": 1}, {**match, "start_date": {"$in": unsettled}})
            visible = {day["start_date"]: sum(end <= ended_by for end in day["trip_ends"]) for day in ends}
        counts = [visible.get(day["start_date"], int(day["trip_count"])) for day in days]
        before = list(itertools.accumulate(counts, initial=0))
        if wanted.content and "trips" in wanted.fields and asked.skip < before[-1]:
            begin, end = bisect_right(before, asked.skip) - 1, bisect_left(before, asked.skip + limit)
            found = find_days({"_id": 0, "trips": 1, "trip_ends": 1}, skip=begin, limit=end - begin)
            rows = [
                row for day in found for row, at in zip(day["trips"], day["trip_ends"], strict=True) if at <= ended_by
            ]
            rows = rows[asked.skip - before[begin] :][:limit]
    version = "".join([str(before[-1]), *(day["version"] for day in days)])
    records = list(map(renderer(wanted.fields.get("trips"), SUMMARY), rows))
    return Result(version, asked.content(wanted.fields, before[-1], {"trips": records}))


def find_trips(
    store: Store,
    fleet: str,
    filter_param: str,
    filter_value: str,
    *,
    ended_by: int,
    page: int,
    limit: int,
    wanted: Wanted,
) -> Result:
    """Return a page of the trips with this `trip_id` or `tracking_id`, in detail form, oldest first.

    Only trips that had ended by `ended_by` (epoch ms). Reads no fragment that a mask leaves out. Indexes:
    trip_details (fleet, trip_id), (fleet, tracking_id, trip_start_time, trip_id, trip_end_time).
    """
    asked, fields = Page(page, limit), wanted.fields.get("trips")
    match = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": ended_by}}
    bounds: dict[str, Any] = {"sort": ORDER[filter_param], "skip": asked.skip, "limit": limit}
    trips = list[Document]()
    with store.snapshot() as session:
        if fields is not None:
            projection = {"_id": 0, "version": 1} | wanted.projection(*_parts(fields))
            trips = list(store.trip_details.find(match, projection, session=session, **bounds))
        # A page that is not full is the last one.
        if 0 < len(trips) < limit or (page == 1 and fields is not None and not trips):
            count = asked.skip + len(trips)
        else:
            count = store.trip_details.count_documents(match, session=session)
    version = "".join([str(count), *(trip["version"] for trip in trips)])
    records = list(map(_trip_renderer(fields or {}), trips)) if wanted.content else []
    return Result(version, asked.content(wanted.fields, count, {"trips": records}))


def _parts(fields: Fields) -> Sequence[str]:
    """Return the fragments that hold these fields of the detail form."""
    parts = [name for name in PARTS if name in fields]
    return parts if SUMMARY.keys().isdisjoint(fields) else ["summary", *parts]


def _trip_renderer(fields: Fields) -> Callable[[Document], Any]:
    """Return a function that makes a value for orjson of a trip's fragments: these fields of the detail form."""
    if fields is DETAIL:
        return lambda trip: Fragment(
            ",".join((trip["summary"][:-1], *(f'"{name}":{trip[name]}' for name in PARTS))) + "}"
        )
    of_summary = {name: below for name, below in fields.items() if name in SUMMARY}
    render_summary = renderer(of_summary, SUMMARY)
    renderers = {name: renderer(fields[name], DETAIL[name]) for name in PARTS if name in fields}

    def render(trip: Document) -> Document:
        values = render_summary(trip["summary"]) if of_summary else {}
        values |= {name: render(trip[name]) for name, render in renderers.items()}
        return {name: values[name] for name in fields}

    return render


def get_newest_trip_time(store: Store) -> float | None:
    """Return when a trip was last added (epoch seconds), over all fleets, or None if there is none. Index: (_id)."""
    newest = first(
        store.trip_details.find({"_id": {"$gte": ObjectId(bytes(12))}}, {"_id": 1}, sort=[("_id", DESCENDING)], limit=1)
    )
    return newest["_id"].generation_time.timestamp() if newest else None
