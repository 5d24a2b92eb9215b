"""The trips of a fleet."""

import functools
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

import pymongo
from orjson import Fragment
from pymongo import ASCENDING
from pymongo.cursor import Cursor

from app.store import Document, Result, Store, StoreLags, UnknownRecord
from app.store.driver_periods import Calendar, find_periods, find_profiles
from app.store.pagination import PageRequest
from app.store.rendered import RenderedTrip, RenderedTrips
from app.store.scope import Scope
from schemas.identity import make_id
from schemas.mask import Fields, fields_of
from schemas.periods import DAY, MONTH, first_of_month
from schemas.trip import TripDetail, TripSummary

TRIP_SUMMARY_FIELDS, TRIP_DETAIL_FIELDS = fields_of(TripSummary), fields_of(TripDetail)
# The fields of the detail form that are not in the summary form. Each is stored as a fragment.
DETAIL_FRAGMENTS = tuple(name for name in TRIP_DETAIL_FIELDS if name not in TRIP_SUMMARY_FIELDS)
TRACKING_INDEX = "tracking_id"
# The number of trips on a page in detail form.
DETAIL_LIMIT = 5
LAST_DATE = "9999-12-31"
# The limit for reading one of several long trips while the response is sent. It is longer than that of a request: then
# a failure can only end the connection.
LATER_TIMEOUT_SECONDS = 5
OLDEST_FIRST = [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)]


def find_driver_trips(
    store: Store,
    scope: Scope,
    driver_id: str,
    *,
    start_date: str,
    end_date: str = LAST_DATE,
    max_end_ms: int,
    page: int,
    limit: int,
) -> Result:
    """Return a page of a driver's trips, in summary form, oldest first.

    These are the trips that started from `start_date` to `end_date` and ended by `max_end_ms` (epoch ms). Counts the
    trips with the calendars of the driver's months, then reads only the days on the page. Index: driver_periods (fleet,
    period, driver_id, start_date). Raises UnknownRecord.
    """
    page_request, driver, rows = PageRequest(page, limit), scope.match_drivers([driver_id]), list[str]()
    with store.snapshot():
        months = {"period": MONTH, "start_date": {"$gte": first_of_month(start_date), "$lte": end_date}}
        calendar = Calendar.of(find_periods(store, {**driver, **months}, "calendar"), start_date, end_date)
        if not calendar.dates and not find_profiles(store, driver):
            raise UnknownRecord(f"Not in this fleet: {driver_id}")
        counts_before = [0, *itertools.accumulate(_count_trips(store, driver, calendar, max_end_ms))]
        count = counts_before[-1]
        if page_request.skip < count:
            dates, offset = _locate_page(page_request, calendar.dates, counts_before)
            days = find_periods(store, {**driver, "period": DAY, "start_date": dates}, "trips", "trip_ends")
            trips = [pair for day in days for pair in zip(day["trips"], day["trip_ends"], strict=True)]
            rows = [trip for trip, end in trips if end <= max_end_ms][offset : offset + limit]
    return page_request.build_result(count, calendar.versions, {"trips": list(map(Fragment, rows))})


def _count_trips(store: Store, driver: Document, calendar: Calendar, max_end_ms: int) -> Iterable[int]:
    """Return the number of visible trips of each day in the calendar. It reads only days that have others, too."""
    counts = dict(zip(calendar.dates, calendar.trip_counts, strict=True))
    last_ends = zip(calendar.dates, calendar.last_trip_ends, strict=True)
    if dates := [date for date, last_end in last_ends if last_end > max_end_ms]:
        match = {**driver, "period": DAY, "start_date": {"$in": dates}}
        for day in find_periods(store, match, "start_date", "trip_ends"):
            counts[day["start_date"]] = sum(end <= max_end_ms for end in day["trip_ends"])
    return counts.values()


def _locate_page(page_request: PageRequest, dates: Sequence[str], counts_before: Sequence[int]) -> tuple[Document, int]:
    """Return the condition on the dates of the days on a page, and how many trips of these days come before the page.

    `counts_before` has for each day the number of visible trips before it, and at the end the number of all.
    """
    first_day = bisect_right(counts_before, page_request.skip) - 1
    last_day = bisect_left(counts_before, page_request.skip + page_request.limit, hi=len(dates)) - 1
    return {"$gte": dates[first_day], "$lte": dates[last_day]}, page_request.skip - counts_before[first_day]


def find_trips(
    store: Store, scope: Scope, filter_param: str, filter_value: str, *, max_end_ms: int, page: int, fields: Fields
) -> Result:
    """Return a page of the trips with this `trip_id` or `tracking_id`, in detail form, oldest first.

    These are the trips that ended by `max_end_ms` (epoch ms), as RenderedTrips. Besides the summary form, a trip has
    only the fragments that `fields` of the page select. Of long trips, the first are read; to read another one raises
    StoreLags if it was changed meanwhile. Indexes: trip_details (_id), (fleet,
    tracking_id, trip_start_time, trip_id, trip_end_time, driver_id).
    """
    page_request, trip_fields = PageRequest(page, DETAIL_LIMIT), fields.get("trips") or {}
    match, order, hint = _choose_index(scope, filter_param, filter_value)
    match |= {**scope.match(), "trip_end_time": {"$lte": max_end_ms}}
    projection = dict.fromkeys(["version", "summary", *(name for name in DETAIL_FRAGMENTS if name in trip_fields)], 1)
    versions, trips = list[str](), RenderedTrips()

    def find(*, skip: int, projection: Document) -> Cursor[Document]:
        found = store.trip_details.find(match, projection, sort=order).hint(hint)
        return found.skip(page_request.skip + skip).limit(DETAIL_LIMIT - skip)

    with store.snapshot():
        with find(skip=0, projection={"_id": 0, **projection}) as found:
            for document in found:
                versions.append(document["version"])
                trip = make_rendered_trip(document)
                trips.add(trip, trip.length)
                if trips.are_long:
                    break
        if trips.are_long and len(versions) < DETAIL_LIMIT:
            for left in find(skip=len(versions), projection={"version": 1}):
                versions.append(left["version"])
                trips.add_later(functools.partial(_read_trip, store, left, projection))
        # A page that is not full is the last one, so the count follows from it.
        if 0 < len(versions) < DETAIL_LIMIT or (page == 1 and not versions):
            count = page_request.skip + len(versions)
        else:
            options: Any = {"hint": hint} if hint else {}
            count = store.trip_details.count_documents(match, **options)
    return page_request.build_result(count, versions, {"trips": trips})


def _read_trip(store: Store, match: Document, projection: Document) -> RenderedTrip:
    """Return the trip with an `_id` and a version. Raises StoreLags if there is none."""
    with pymongo.timeout(LATER_TIMEOUT_SECONDS):
        trip = store.trip_details.find_one(match, projection)
    if trip is None:
        raise StoreLags
    return make_rendered_trip(trip)


def _choose_index(
    scope: Scope, filter_param: str, filter_value: str
) -> tuple[Document, list[tuple[str, int]], str | None]:
    """Return the condition for the trips with an identifier, their order, and the index that MongoDB has to use."""
    if filter_param == "trip_id":
        return {"_id": make_id(scope.fleet, filter_value)}, [("_id", ASCENDING)], None
    # With the key of a driver, MongoDB might read all trips of the driver instead, with their trails.
    return {"tracking_id": filter_value}, OLDEST_FIRST, TRACKING_INDEX if scope.driver_id is not None else None


def make_rendered_trip(trip: Document) -> RenderedTrip:
    """Return a trip with its summary form, and the fields of the detail form that were read."""
    return RenderedTrip(trip["summary"], {name: trip[name] for name in DETAIL_FRAGMENTS if name in trip})
