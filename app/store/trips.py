"""Trips of a fleet."""

import itertools
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bson import ObjectId
from orjson import Fragment
from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Result, Store, UnknownDrivers
from app.store.pages import Page, Wanted, first, renderer
from app.store.summaries import DAY, PROFILE
from schemas.derive import Fields, fields_of
from schemas.trip import TripDetail, TripSummary

MS_PER_HOUR = 3_600_000
SUMMARY, DETAIL = fields_of(TripSummary), fields_of(TripDetail)
# The fields of the detail form that are stored as a fragment each, beside the summary form.
PARTS = tuple(name for name in DETAIL if name not in SUMMARY)
BY_DATE = [("start_date", ASCENDING)]
# All that the count needs stands in the index.
CALENDAR = {"_id": 0, "start_date": 1, "trip_count": 1, "last_trip_end": 1, "version": 1}
ENDS, TRIPS = ({"_id": 0, "start_date": 1, name: 1} for name in ("trip_ends", "trips"))
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
    with store.snapshot() as session:
        driver = _DriverDays(store, session, {"fleet": fleet, "driver_id": driver_id}, start_date)
        days = driver.find(CALENDAR)
        if not days and not driver.exists():
            raise UnknownDrivers([driver_id])
        counts: list[int] = [day["trip_count"] for day in days]
        # Of most days all trips are visible; of the others they are counted.
        unsettled = [day["start_date"] for day in days if day["last_trip_end"] > ended_by]
        ends = {day["start_date"]: day["trip_ends"] for day in driver.find(ENDS, unsettled)} if unsettled else {}
        for index, day in enumerate(days if unsettled else ()):
            if day["start_date"] in ends:
                counts[index] = sum(end <= ended_by for end in ends[day["start_date"]])
        before = list(itertools.accumulate(counts, initial=0))
        count = before[-1]
        if wanted.content and "trips" in wanted.fields and asked.skip < count:
            first_day, past = bisect_right(before, asked.skip) - 1, bisect_left(before, asked.skip + limit)
            for day in driver.find(TRIPS, skip=first_day, limit=past - first_day):
                at = ends.get(day["start_date"], ())
                rows += (
                    [row for row, end in zip(day["trips"], at, strict=True) if end <= ended_by] if at else day["trips"]
                )
            rows = rows[asked.skip - before[first_day] :][:limit]
    version = "".join([str(count), *(day["version"] for day in days)])
    records = list(map(renderer(wanted.fields.get("trips"), SUMMARY), rows))
    return Result(version, asked.content(wanted.fields, count, {"trips": records}))


class _DriverDays(NamedTuple):
    """The days of a driver from a date on, as a session sees them."""

    store: Store
    session: ClientSession
    match: Document
    start_date: str

    def find(
        self, projection: Document, dates: list[str] | None = None, *, skip: int = 0, limit: int = 0
    ) -> list[Document]:
        """Return days, or those of some dates, by date."""
        match = {**self.match, "period": DAY.name, "start_date": {"$in": dates} if dates else {"$gte": self.start_date}}
        bounds: dict[str, Any] = {"sort": BY_DATE, "skip": skip, "limit": limit, "batch_size": MAX_DAYS}
        return list(self.store.driver_periods.find(match, projection, session=self.session, **bounds))

    def exists(self) -> bool:
        """Return whether there is such a driver."""
        match = {**self.match, "period": PROFILE}
        return first(self.store.driver_periods.find(match, {"_id": 1}, limit=1, session=self.session)) is not None


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
