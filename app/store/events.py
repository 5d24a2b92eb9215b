"""The events of a fleet."""

from collections.abc import Sequence
from typing import Any

import orjson
from orjson import Fragment

from app.store import Document, Result, Store
from app.store.cursor_lists import Bounds, Cursors, KeyIndex, find_page, match_known_drivers
from app.store.fleets import get_window_ms
from app.store.scope import Scope
from schemas.identity import make_event_id
from schemas.params import NEWEST
from schemas.periods import MS_PER_SECOND
from schemas.plausibility import LEFT_OUT
from schemas.trip import OVERSPEEDING, FleetEvent

EVENT_FIELDS = tuple(FleetEvent().fields)


def find_events(
    store: Store,
    scope: Scope,
    *,
    start_date: str,
    end_date: str | None = None,
    driver_ids: Sequence[str] = (),
    group: str | None = None,
    order: str,
    limit: int,
    cursor: tuple[Any, ...] | None,
    max_end_ms: int,
    **filters: Any,
) -> Result:
    """Return a page of the events that start from `start_date` to `end_date`, of trips that ended by `max_end_ms`.

    If the fleet leaves out implausible trips, it leaves out their events. `filters` are those of `_make_filters`.
    Index: trip_events (_id). Raises UnknownRecord, and ValidationError if the cursor is of other
    parameters.
    """
    with store.snapshot():
        query = (start_date, end_date, sorted(driver_ids), group, order, filters)
        cursors = Cursors.of(store, scope, "events", *query)
        start_id, end_id = (
            make_event_id(scope.fleet, ms) for ms in get_window_ms(store, scope.fleet, start_date, end_date)
        )
        bounds = cursors.read(cursor) or Bounds(start_id, end_id, order == NEWEST)
        conditions = {**match_known_drivers(store, scope, driver_ids, group), **_make_filters(**filters)}
        index = KeyIndex(store.trip_events, "_id", {"_id": 1}, {})
        left_out = {"is_implausible": {"$exists": False}} if cursors.policy == LEFT_OUT else {}
        visible = {"trip_end_time": {"$lte": max_end_ms}, **left_out}
        events, rest = find_page(index, bounds, visible, conditions, limit)
    texts = [orjson.dumps({name: event[name] for name in EVENT_FIELDS}).decode() for event in events]
    window = {"limit": limit, "start_date": start_date, "end_date": end_date}
    return cursors.make_result(rest, {**window, "events": list(map(Fragment, texts))}, texts)


def _make_filters(
    event_types: Sequence[int] = (),
    bbox: tuple[float, ...] | None = None,
    min_seconds: float = 0,
    min_over_mph: float | None = None,
) -> Document:
    """Return the condition on events."""
    conditions: list[Document] = [{"event_type": {"$in": list(event_types)}}] if event_types else []
    if bbox:
        west, south, east, north = bbox
        conditions.append({"event_start_latitude": {"$gte": south, "$lte": north}})
        sides = {"event_start_longitude": {"$gte": west}}, {"event_start_longitude": {"$lte": east}}
        # A box that crosses the antimeridian has the longitudes from west to 180, and from -180 to east.
        conditions.append({"$and" if west <= east else "$or": list(sides)})
    if min_seconds:
        duration = {"$subtract": ["$event_end_timestamp", "$event_start_timestamp"]}
        conditions.append({"$expr": {"$gte": [{"$divide": [duration, MS_PER_SECOND]}, min_seconds]}})
    if min_over_mph is not None:
        conditions.append({"event_type": OVERSPEEDING})
        # As a double, so that no sum exceeds 64 bits.
        lowest = {"$add": ["$event_data.speed_limit_mph", float(min_over_mph)]}
        conditions.append({"$expr": {"$gte": ["$event_data.max_user_speed_mph", lowest]}})
    return {"$and": conditions} if conditions else {}
