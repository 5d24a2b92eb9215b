"""The events of a fleet."""

from collections.abc import Sequence
from typing import Any

import orjson
from orjson import Fragment

from app.store import Document, Result, Store
from app.store.cursor_lists import Bounds, Conditions, CursorList, Range, find_page, match_drivers
from app.store.scope import Scope
from schemas.cursor import ListCursor
from schemas.identity import make_event_id, make_id
from schemas.params import NEWEST
from schemas.periods import MS_PER_SECOND
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
    cursor: ListCursor | None,
    max_end_ms: int,
    **filters: Any,
) -> Result:
    """Return a page of the events that start from `start_date` to `end_date`, of trips that ended by `max_end_ms`.

    If the fleet leaves out implausible trips, their events are not stored. `filters` are those of `_make_filters`.
    Indexes: trip_events (_id), that of late events, and for one driver (fleet, driver_id, _id). Raises UnknownRecord,
    and ValidationError if the cursor is of other parameters.
    """
    with store.snapshot():
        query = ("events", start_date, end_date, sorted(driver_ids), group, order, filters)
        listed = CursorList.open(store, scope, cursor, *query)
        prefix, of_drivers = match_drivers(store, scope, driver_ids, group)
        start, end = (make_event_id(scope.fleet, ms) for ms in listed.get_window_ms(start_date, end_date))
        # The position lacks the fleet, so that the cursor is short.
        position = None if listed.position is None else make_id(scope.fleet, listed.position)
        bounds = Bounds(start, end, order == NEWEST).after(position)
        ranges = _find_ranges(store, prefix, bounds, make_event_id(scope.fleet, max_end_ms + 1))
        conditions = Conditions(scope, max_end_ms, {**of_drivers, **_make_filters(**filters)}, group)
        events, last_id = find_page(store, ranges, conditions, limit)
    texts = [orjson.dumps({name: event[name] for name in EVENT_FIELDS}).decode() for event in events]
    content = {"limit": limit, "start_date": start_date, "end_date": end_date, "events": list(map(Fragment, texts))}
    return listed.make_result(last_id and last_id.removeprefix(make_id(scope.fleet, "")), content, texts)


def _find_ranges(store: Store, prefix: Document, bounds: Bounds, first_hidden: str) -> list[Range]:
    """Return the parts of a list of events, of which those from `first_hidden` on start when visible trips have ended.

    There are hundreds of thousands of these in a large fleet, and all but the late ones are of trips that are not
    visible: only the late ones are read.
    """
    if "driver_id" in prefix:
        return [Range(store.trip_events, "driver", prefix, "_id", bounds)]
    # The fleet begins each `_id`.
    return [
        Range(store.trip_events, "late", {**prefix, "is_late": True}, "_id", part)
        if part.first >= first_hidden
        else Range(store.trip_events, {"_id": 1}, {}, "_id", part)
        for part in bounds.split(first_hidden)
        if part.first < part.last
    ]


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
