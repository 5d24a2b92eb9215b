"""The trips of a fleet, of all drivers together."""

from collections.abc import Sequence
from typing import Any

from app.store import Document, Result, Store
from app.store.cursor_lists import Bounds, Cursors, KeyIndex, find_page, match_known_drivers
from app.store.fleets import get_time_zone, get_window_ms
from app.store.scope import Scope
from app.store.trips import DETAIL_FRAGMENTS, render_trip
from schemas.fleet import NO_INSURANCE_PERIOD
from schemas.identity import make_start_key
from schemas.mask import Fields
from schemas.params import DETAIL, NEWEST, WORST
from schemas.periods import MS_PER_DAY, date_of, dates_between, get_today

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
    cursor: tuple[Any, ...] | None,
    max_end_ms: int,
    fields: Fields,
    **filters: Any,
) -> Result:
    """Return a page of the trips that started from `start_date` to `end_date`, or were in progress `at` (epoch ms).

    These are trips that ended by `max_end_ms` (epoch ms). `filters` are those of `_make_filters`. In detail form, a
    trip has only the fragments that `fields` of the page select. Indexes: trip_details (fleet, start_key, ...), and for
    the order `worst` (fleet, date, worst_key, ...). Raises UnknownRecord, and ValidationError if the cursor is of other
    parameters.
    """
    window = (start_date, end_date, at, order)
    trip_fields = (fields.get("trips") or {}).get("trip") or {}
    fragments = [name for name in DETAIL_FRAGMENTS if form == DETAIL and name in trip_fields]
    with store.snapshot():
        cursors = Cursors.of(store, scope, "trips", *window, sorted(driver_ids), group, form, filters)
        index, bounds, beyond = _choose_index(store, scope.fleet, *window, cursors.read(cursor))
        of_drivers = match_known_drivers(store, scope, driver_ids, group)
        conditions = {**of_drivers, **_make_filters(at, max_end_ms, **filters), **beyond}
        names = ("version", "tracking_id", "fm_score", "implausible", index.key, "summary", *fragments)
        visible, projection = {"trip_end_time": {"$lte": max_end_ms}}, {"_id": 0, **dict.fromkeys(names, 1)}
        found, rest = find_page(index, bounds, visible, conditions, limit, projection, MAX_PAGE_BYTES)
    content = {"limit": limit, "start_date": start_date, "end_date": end_date, "trips": list(map(_render, found))}
    return cursors.make_result(rest, content, [trip["version"] for trip in found])


def _render(trip: Document) -> Document:
    """Return a Rated trip for orjson."""
    rating = {"tracking_id": trip["tracking_id"], "fm_score": trip["fm_score"]}
    return {"trip": render_trip(trip), **rating, "implausible": trip.get("implausible", [])}


def _make_filters(
    at: int | None,
    max_end_ms: int,
    min_distance_miles: float,
    implausible: str | None,
    insurance_period: str | None = None,
) -> Document:
    """Return the condition on trips."""
    filters: Document = {"trip_end_time": {"$gte": at, "$lte": max_end_ms}} if at is not None else {}
    if insurance_period is not None:
        # A trip without one has no such field.
        filters["insurance_period"] = None if insurance_period == NO_INSURANCE_PERIOD else int(insurance_period)
    if min_distance_miles:
        filters["totals.distance_miles"] = {"$gte": min_distance_miles}
    if implausible is not None:
        filters["is_implausible"] = implausible == "true"
    return filters


def _choose_index(
    store: Store,
    fleet: str,
    start_date: str | None,
    end_date: str | None,
    at: int | None,
    order: str,
    rest: Bounds | None,
) -> tuple[KeyIndex, Bounds, Document]:
    """Return the index that finds a list of trips, the bounds of the list, and a filter that the bounds do not have.

    The bounds are those of the `rest` of the list, unless it begins.
    """
    if start_date is not None:
        start_ms, end_ms = get_window_ms(store, fleet, start_date, end_date)
    elif at is not None:
        start_ms, end_ms = at - MAX_IN_PROGRESS_MS + 1, at + 1
    if order != WORST:
        index = KeyIndex(store.trip_details, "start_key", "start", {"fleet": fleet})
        return index, rest or Bounds(make_start_key(start_ms), make_start_key(end_ms), order == NEWEST), {}
    zone = get_time_zone(store, fleet)
    last_date = end_date or (str(get_today(zone)) if at is None else date_of(at, zone))
    bounds = rest or Bounds(LEAST_KEY, GREATEST_KEY, is_reversed=False, last_date=last_date)
    dates = dates_between(date_of(start_ms, zone), bounds.last_date)
    index = KeyIndex(store.trip_details, "worst_key", "worst", {"fleet": fleet, "date": {"$in": dates}})
    window = {"trip_start_time": {"$gte": start_ms, "$lt": end_ms}} if at is not None else {}
    return index, bounds, window
