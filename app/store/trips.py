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
from app.store.pagination import PageRequest, Selection, get_first, make_renderer
from app.store.summaries import ANY_DATE, DAY, MONTH, PROFILE
from schemas.introspection import Fields, fields_of
from schemas.trip import TripDetail, TripSummary

MS_PER_HOUR = 3_600_000
SUMMARY, DETAIL = fields_of(TripSummary), fields_of(TripDetail)
# The fields of the detail form that are stored as a fragment each, beside the summary form.
DETAIL_FRAGMENTS = tuple(name for name in DETAIL if name not in SUMMARY)
BY_DATE = [("start_date", ASCENDING)]
CALENDAR = {"_id": 0, "calendar": 1}
# The fields of `_Calendar`.
ARRAYS = ("dates", "trip_counts", "last_trip_ends", "versions")
ENDS, TRIPS = ({"_id": 0, "start_date": 1, name: 1} for name in ("trip_ends", "trips"))
# More than six months have: all come with the first reply.
MAX_DAYS = 200
# One trip has a trip_id, and its index holds no times.
ORDER = {
    "trip_id": [("trip_id", ASCENDING)],
    "tracking_id": [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)],
}


def get_max_visible_end_ms(processing_delay_hours: float) -> int:
    """Return the latest end (epoch ms) of a trip that is visible now."""
    return int(time.time() * 1000) - int(processing_delay_hours * MS_PER_HOUR)


def find_driver_trips(
    store: Store,
    fleet: str,
    driver_id: str,
    *,
    start_date: str,
    max_end_ms: int,
    page: int,
    limit: int,
    selection: Selection,
) -> Result:
    """Return a page of a driver's trips, in summary form, oldest first.

    These are the trips that started on `start_date` or later and had ended by `max_end_ms` (epoch ms). Counts trips by
    the calendars of the driver's months, then reads only the days on the page. Index: driver_periods (fleet, period,
    driver_id, start_date). Raises UnknownDrivers.
    """
    page_request, rows = PageRequest(page, limit), list[str]()
    with store.snapshot() as session:
        periods = _Periods(store, session, {"fleet": fleet, "driver_id": driver_id})
        days = periods.calendar(start_date)
        if not days.dates and not periods.find(PROFILE, ANY_DATE, {"_id": 1}):
            raise UnknownDrivers([driver_id])
        # Of most days all trips are visible; of the others they are counted.
        counts = days.trip_counts
        unsettled = [date for date, end in zip(days.dates, days.last_trip_ends, strict=True) if end > max_end_ms]
        found = periods.find(DAY.name, {"$in": unsettled}, ENDS) if unsettled else []
        ends: dict[str, list[int]] = {day["start_date"]: day["trip_ends"] for day in found}
        for date, at in ends.items():
            counts[days.dates.index(date)] = sum(end <= max_end_ms for end in at)
        before = [0, *itertools.accumulate(counts)]
        count = before[-1]
        if selection.include_content and "trips" in selection.fields and page_request.skip < count:
            first = bisect_right(before, page_request.skip) - 1
            last = bisect_left(before, page_request.skip + limit, hi=len(counts)) - 1
            match = {"$gte": days.dates[first], "$lte": days.dates[last]}
            for day in periods.find(DAY.name, match, TRIPS):
                if known := ends.get(day["start_date"]):
                    rows += [row for row, end in zip(day["trips"], known, strict=True) if end <= max_end_ms]
                else:
                    rows += day["trips"]
            rows = rows[page_request.skip - before[first] :][:limit]
    records = list(map(make_renderer(selection.fields.get("trips"), SUMMARY), rows))
    return Result(
        "".join([str(count), *days.versions]), page_request.build_content(selection.fields, count, {"trips": records})
    )


class _Calendar(NamedTuple):
    """The days of a driver by date, as `schemas.stored.Calendar` has them."""

    dates: list[str]
    trip_counts: list[int]
    last_trip_ends: list[int]
    versions: list[str]


class _Periods(NamedTuple):
    """The periods of a driver, as a session sees them."""

    store: Store
    session: ClientSession
    driver: Document

    def find(self, name: str, start_date: Any, projection: Document) -> list[Document]:
        """Return the periods of a name whose first date matches, by date."""
        match = {**self.driver, "period": name, "start_date": start_date}
        bounds: dict[str, Any] = {"sort": BY_DATE, "batch_size": MAX_DAYS, "session": self.session}
        return list(self.store.driver_periods.find(match, projection, **bounds))

    def calendar(self, start_date: str) -> _Calendar:
        """Return the days of the driver's months, from a date on."""
        months = self.find(MONTH, {"$gte": f"{start_date[:7]}-01"}, CALENDAR)
        arrays: list[list[Any]] = [[value for month in months for value in month["calendar"][name]] for name in ARRAYS]
        first = bisect_left(arrays[0], start_date)
        return _Calendar(*(values[first:] for values in arrays))


def find_trips(
    store: Store,
    fleet: str,
    filter_param: str,
    filter_value: str,
    *,
    max_end_ms: int,
    page: int,
    limit: int,
    selection: Selection,
) -> Result:
    """Return a page of the trips with this `trip_id` or `tracking_id`, in detail form, oldest first.

    Only trips that had ended by `max_end_ms` (epoch ms). Reads no fragment that a mask leaves out. Indexes:
    trip_details (fleet, trip_id), (fleet, tracking_id, trip_start_time, trip_id, trip_end_time).
    """
    page_request, fields = PageRequest(page, limit), selection.fields.get("trips")
    match = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": max_end_ms}}
    bounds: dict[str, Any] = {"sort": ORDER[filter_param], "skip": page_request.skip, "limit": limit}
    trips = list[Document]()
    with store.snapshot() as session:
        if fields is not None:
            projection = {"_id": 0, "version": 1} | selection.projection(*_parts(fields))
            trips = list(store.trip_details.find(match, projection, session=session, **bounds))
        # A page that is not full is the last one.
        if 0 < len(trips) < limit or (page == 1 and fields is not None and not trips):
            count = page_request.skip + len(trips)
        else:
            count = store.trip_details.count_documents(match, session=session)
    version = "".join([str(count), *(trip["version"] for trip in trips)])
    records = list(map(_trip_renderer(fields or {}), trips)) if selection.include_content else []
    return Result(version, page_request.build_content(selection.fields, count, {"trips": records}))


def _parts(fields: Fields) -> Sequence[str]:
    """Return the fragments that hold these fields of the detail form."""
    parts = [name for name in DETAIL_FRAGMENTS if name in fields]
    return parts if SUMMARY.keys().isdisjoint(fields) else ["summary", *parts]


def _trip_renderer(fields: Fields) -> Callable[[Document], Any]:
    """Return a function that makes a value for orjson of a trip's fragments: these fields of the detail form."""
    if fields is DETAIL:
        return lambda trip: Fragment(
            ",".join((trip["summary"][:-1], *(f'"{name}":{trip[name]}' for name in DETAIL_FRAGMENTS))) + "}"
        )
    of_summary = {name: below for name, below in fields.items() if name in SUMMARY}
    render_summary = make_renderer(of_summary, SUMMARY)
    renderers = {name: make_renderer(fields[name], DETAIL[name]) for name in DETAIL_FRAGMENTS if name in fields}

    def render(trip: Document) -> Document:
        values = render_summary(trip["summary"]) if of_summary else {}
        values |= {name: render(trip[name]) for name, render in renderers.items()}
        return {name: values[name] for name in fields}

    return render


def get_newest_trip_time(store: Store) -> float | None:
    """Return when a trip was last added (epoch seconds), over all fleets, or None if there is none. Index: (_id)."""
    newest = get_first(
        store.trip_details.find({"_id": {"$gte": ObjectId(bytes(12))}}, {"_id": 1}, sort=[("_id", DESCENDING)], limit=1)
    )
    return newest["_id"].generation_time.timestamp() if newest else None
