"""The trips of a fleet."""

import itertools
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
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
# The fields of the detail form that are not in the summary form. Each is stored as a fragment.
DETAIL_FRAGMENTS = tuple(name for name in DETAIL if name not in SUMMARY)
# The detail form as JSON: the summary without its closing brace, then each fragment.
DETAIL_FORMAT = "%s" + "".join(f',"{name}":%s' for name in DETAIL_FRAGMENTS) + "}"
BY_DATE = [("start_date", ASCENDING)]
CALENDAR = {"_id": 0, "calendar": 1}
# The fields of `_Calendar`.
CALENDAR_ARRAYS = ("dates", "trip_counts", "last_trip_ends", "versions")
TRIP_ENDS, TRIPS = ({"_id": 0, "start_date": 1, name: 1} for name in ("trip_ends", "trips"))
# More than the days of six months, so that all arrive in the first batch.
MAX_DAYS = 200
# Only one trip has a trip_id, and the index of trip_id has no times to sort by.
ORDER = {
    "trip_id": [("trip_id", ASCENDING)],
    "tracking_id": [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)],
}


def get_max_visible_end_ms(processing_delay_hours: float) -> int:
    """Return the latest end (epoch ms) that a visible trip can have now."""
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

    These are the trips that started on `start_date` or later and ended by `max_end_ms` (epoch ms). Counts the trips
    with the calendars of the driver's months, then reads only the days on the page. Index: driver_periods (fleet,
    period, driver_id, start_date). Raises UnknownDrivers.
    """
    page_request, rows = PageRequest(page, limit), list[str]()
    with store.snapshot() as session:
        periods = _DriverPeriods(store, session, {"fleet": fleet, "driver_id": driver_id})
        calendar = periods.get_calendar(start_date)
        if not calendar.dates and not periods.find(PROFILE, ANY_DATE, {"_id": 1}):
            raise UnknownDrivers([driver_id])
        trip_ends = periods.find_recent_trip_ends(calendar, max_end_ms)
        for date, ends in trip_ends.items():
            calendar.trip_counts[calendar.dates.index(date)] = sum(end <= max_end_ms for end in ends)
        # For each day the number of trips before it, and at the end the number of all.
        counts_before = [0, *itertools.accumulate(calendar.trip_counts)]
        count = counts_before[-1]
        if selection.include_content and "trips" in selection.fields and page_request.skip < count:
            first_day = bisect_right(counts_before, page_request.skip) - 1
            last_day = bisect_left(counts_before, page_request.skip + limit, hi=len(calendar.dates)) - 1
            days = {"$gte": calendar.dates[first_day], "$lte": calendar.dates[last_day]}
            visible_trips = periods.find_visible_trips(days, trip_ends, max_end_ms)
            rows = visible_trips[page_request.skip - counts_before[first_day] :][:limit]
    records = list(map(make_renderer(selection.fields.get("trips"), SUMMARY), rows))
    version = "".join([str(count), *calendar.versions])
    return Result(version, page_request.build_content(selection.fields, count, {"trips": records}))


class _Calendar(NamedTuple):
    """The days on which a driver drove, in order of date: the parallel arrays of `schemas.stored.Calendar`."""

    dates: list[str]
    trip_counts: list[int]
    last_trip_ends: list[int]
    versions: list[str]


class _DriverPeriods(NamedTuple):
    """The documents of a driver in `driver_periods`, as a session sees them."""

    store: Store
    session: ClientSession
    driver: Document

    def find(self, period: str, start_date: Any, projection: Document) -> list[Document]:
        """Return the documents of a period whose start_date matches, in order of date."""
        match = {**self.driver, "period": period, "start_date": start_date}
        options: dict[str, Any] = {"sort": BY_DATE, "batch_size": MAX_DAYS, "session": self.session}
        return list(self.store.driver_periods.find(match, projection, **options))

    def get_calendar(self, start_date: str) -> _Calendar:
        """Return the driver's calendar from a date on, made from the calendars of the months."""
        months = self.find(MONTH, {"$gte": f"{start_date[:7]}-01"}, CALENDAR)
        arrays: list[list[Any]] = [
            [value for month in months for value in month["calendar"][name]] for name in CALENDAR_ARRAYS
        ]
        first = bisect_left(arrays[0], start_date)
        return _Calendar(*(values[first:] for values in arrays))

    def find_recent_trip_ends(self, calendar: _Calendar, max_end_ms: int) -> dict[str, list[int]]:
        """Return the trip ends (epoch ms), by date, of the days with a trip that ended after `max_end_ms`.

        All trips of the other days are visible.
        """
        pairs = zip(calendar.dates, calendar.last_trip_ends, strict=True)
        dates = [date for date, last_end in pairs if last_end > max_end_ms]
        days = self.find(DAY.name, {"$in": dates}, TRIP_ENDS) if dates else []
        return {day["start_date"]: day["trip_ends"] for day in days}

    def find_visible_trips(self, dates: Document, trip_ends: Mapping[str, list[int]], max_end_ms: int) -> list[str]:
        """Return the visible trips of days, oldest first, as rendered JSON.

        `trip_ends` are those of the days with a trip that ended after `max_end_ms`.
        """
        trips: list[str] = []
        for day in self.find(DAY.name, dates, TRIPS):
            if ends := trip_ends.get(day["start_date"]):
                trips += [trip for trip, end in zip(day["trips"], ends, strict=True) if end <= max_end_ms]
            else:
                trips += day["trips"]
        return trips


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

    These are the trips that ended by `max_end_ms` (epoch ms). Reads only the fragments that a field mask selects.
    Indexes: trip_details (fleet, trip_id), (fleet, tracking_id, trip_start_time, trip_id, trip_end_time).
    """
    page_request, fields = PageRequest(page, limit), selection.fields.get("trips")
    match = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": max_end_ms}}
    options: dict[str, Any] = {"sort": ORDER[filter_param], "skip": page_request.skip, "limit": limit}
    trips = list[Document]()
    with store.snapshot() as session:
        if fields is not None:
            projection = {"_id": 0, "version": 1} | selection.projection(*_get_fragments(fields))
            trips = list(store.trip_details.find(match, projection, session=session, **options))
        # A page that is not full is the last one, so the count follows from it.
        if 0 < len(trips) < limit or (page == 1 and fields is not None and not trips):
            count = page_request.skip + len(trips)
        else:
            count = store.trip_details.count_documents(match, session=session)
    version = "".join([str(count), *(trip["version"] for trip in trips)])
    records = list(map(_make_trip_renderer(fields or {}), trips)) if selection.include_content else []
    return Result(version, page_request.build_content(selection.fields, count, {"trips": records}))


def _get_fragments(fields: Fields) -> Sequence[str]:
    """Return the names of the fragments that contain these fields of the detail form."""
    fragments = [name for name in DETAIL_FRAGMENTS if name in fields]
    return fragments if SUMMARY.keys().isdisjoint(fields) else ["summary", *fragments]


def _make_trip_renderer(fields: Fields) -> Callable[[Document], Any]:
    """Return a function that makes a value for orjson with these fields of the detail form from a trip's fragments."""
    if fields is DETAIL:
        # One format call copies the text once. A trail has tens of kilobytes.
        return lambda trip: Fragment(DETAIL_FORMAT % (trip["summary"][:-1], *map(trip.__getitem__, DETAIL_FRAGMENTS)))
    summary_fields = {name: below for name, below in fields.items() if name in SUMMARY}
    render_summary = make_renderer(summary_fields, SUMMARY)
    renderers = {name: make_renderer(fields[name], DETAIL[name]) for name in DETAIL_FRAGMENTS if name in fields}

    def render(trip: Document) -> Document:
        values = render_summary(trip["summary"]) if summary_fields else {}
        values |= {name: render(trip[name]) for name, render in renderers.items()}
        return {name: values[name] for name in fields}

    return render


def get_newest_trip_time(store: Store) -> float | None:
    """Return when a trip was last added (epoch seconds), over all fleets, or None if there is none. Index: (_id)."""
    newest = get_first(
        store.trip_details.find({"_id": {"$gte": ObjectId(bytes(12))}}, {"_id": 1}, sort=[("_id", DESCENDING)], limit=1)
    )
    return newest["_id"].generation_time.timestamp() if newest else None
