"""The trips of a fleet, of all drivers together."""

from collections.abc import Iterable, Sequence
from typing import Any

from orjson import Fragment

from app.store import Document, Result, Store
from app.store.cursor_lists import Bounds, Conditions, CursorList, Range, find_page, match_drivers
from app.store.rendered import RenderedTrip, RenderedTrips
from app.store.scope import Scope
from app.store.trips import DETAIL_FRAGMENTS, make_rendered_trip
from schemas.cursor import ListCursor
from schemas.fleet import NO_INSURANCE_PERIOD
from schemas.identity import make_start_key
from schemas.mask import Fields
from schemas.params import DETAIL, NEWEST, WORST
from schemas.periods import MS_PER_DAY, date_of, dates_between

# A page in detail form ends before it has more.
MAX_PAGE_BYTES = 8_000_000
# How long before a time trips in progress may have started.
MAX_IN_PROGRESS_MS = 7 * MS_PER_DAY
# Less and greater than every key.
LEAST_KEY, GREATEST_KEY = "", "~"


def find_fleet_trips(
    store: Store,
    scope: Scope,
    *,
    start_date: str | None = None,
    end_date: str | None = None,
    at: int | None,
    driver_ids: Sequence[str] = (),
    group: str | None = None,
    order: str,
    form: str,
    limit: int,
    cursor: ListCursor | None,
    max_end_ms: int,
    fields: Fields,
    **filters: Any,
) -> Result:
    """Return a page of the trips that started from `start_date` to `end_date`, or were in progress `at` (epoch ms).

    These are trips that ended by `max_end_ms` (epoch ms). `filters` are those of `_make_filters`. In detail form, a
    trip has only the fragments that `fields` of the page select. Indexes: trip_details (fleet, start_key, ...), for the
    order `worst` (fleet, date, worst_key, ...), and for one driver the same with driver_id after the fleet. Raises
    UnknownRecord, and ValidationError if the cursor is of other parameters.
    """
    trip_fields = (fields.get("trips") or {}).get("trip") or {}
    fragments = [name for name in DETAIL_FRAGMENTS if form == DETAIL and name in trip_fields]
    query = ("trips", start_date, end_date, at, order, sorted(driver_ids), group, form, filters)
    with store.snapshot():
        listed = CursorList.open(store, scope, cursor, *query)
        prefix, of_drivers = match_drivers(store, scope, driver_ids, group)
        start_ms, end_ms = _get_window_ms(listed, start_date, end_date, at, order)
        # A trip that starts later is not visible.
        end_ms = min(end_ms, max_end_ms + 1)
        part = _find_range(store, listed, prefix, start_ms, end_ms, order)
        # The other indexes begin with the start.
        starts = {"trip_start_time": {"$gte": start_ms, "$lt": end_ms}} if part.hint == "worst" and at else {}
        ends = {"trip_end_time": {"$gte": at, "$lte": max_end_ms}} if at is not None else {}
        conditions = Conditions(scope, max_end_ms, {**starts, **ends, **of_drivers, **_make_filters(**filters)}, group)
        names = ("version", "tracking_id", "trip_end_time", "fm_score", "implausible", part.key, "summary", *fragments)
        projection = {"_id": 0, **dict.fromkeys(names, 1)}
        found, position = find_page(store, [part], conditions, limit, projection, MAX_PAGE_BYTES)
    trips = (
        _make_detailed_trips(found) if form == DETAIL else [_rate(trip, Fragment(trip["summary"])) for trip in found]
    )
    content = {"limit": limit, "start_date": start_date, "end_date": end_date, "trips": trips}
    return listed.make_result(position, content, [trip["version"] for trip in found])


def _make_detailed_trips(found: Iterable[Document]) -> RenderedTrips:
    """Return Rated trips in detail form."""
    trips = RenderedTrips()
    for document in found:
        trip = make_rendered_trip(document)
        trips.add(_rate(document, trip), trip.length)
    return trips


def _rate(document: Document, trip: Fragment | RenderedTrip) -> Document:
    """Return a Rated trip."""
    rating = {"tracking_id": document["tracking_id"], "fm_score": document["fm_score"]}
    return {"trip": trip, **rating, "implausible": document.get("implausible", [])}


def _make_filters(min_distance_miles: float, implausible: str | None, insurance_period: str | None = None) -> Document:
    """Return the condition on trips."""
    filters: Document = {}
    if insurance_period is not None:
        # A trip without one has no such field.
        filters["insurance_period"] = None if insurance_period == NO_INSURANCE_PERIOD else int(insurance_period)
    if min_distance_miles:
        filters["distance_miles"] = {"$gte": min_distance_miles}
    if implausible is not None:
        filters["is_implausible"] = implausible == "true"
    return filters


def _get_window_ms(
    listed: CursorList, start_date: str | None, end_date: str | None, at: int | None, order: str
) -> tuple[int, int]:
    """Return from when to when (epoch ms) the trips of a list start; the end is outside."""
    if at is not None:
        return at - MAX_IN_PROGRESS_MS + 1, at + 1
    # A list in another order than that of time ends with the day on which the client began it. So it stays the same
    # over midnight.
    last_date = end_date or (str(listed.day) if order == WORST else None)
    # The parameters have a start_date if they do not have `at`.
    return listed.get_window_ms(str(start_date), last_date)


def _find_range(store: Store, listed: CursorList, prefix: Document, start_ms: int, end_ms: int, order: str) -> Range:
    """Return the trips that start from one time to another, in an order. `prefix` is as `match_drivers` returns it."""
    starts = Bounds(make_start_key(start_ms), make_start_key(end_ms), order == NEWEST)
    by_driver = "driver_id" in prefix
    if order != WORST:
        index = "driver_start" if by_driver else "start"
        return Range(store.trip_details, index, prefix, "start_key", starts.after(listed.position))
    bounds = Bounds(LEAST_KEY, GREATEST_KEY, is_reversed=False).after(listed.position)
    if by_driver:
        match = {**prefix, "start_key": starts.match(None)}
        return Range(store.trip_details, "driver_start", match, "worst_key", bounds)
    dates = dates_between(date_of(start_ms, listed.zone), date_of(end_ms - 1, listed.zone))
    return Range(store.trip_details, "worst", {**prefix, "date": {"$in": dates}}, "worst_key", bounds)
