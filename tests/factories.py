"""Documents to load: each whole and in shape, with what a test cares for set by name."""

import datetime
import itertools
from typing import Any

NUMBERS = itertools.count(1)


def epoch_ms(text: str) -> int:
    """Return the milliseconds of a time such as 2026-03-10T08:00 (UTC)."""
    return int(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp() * 1000)


def make_driver(driver_id: str = "d1", **fields: Any) -> dict[str, Any]:
    """Return a line of a drivers file."""
    names = dict.fromkeys(("first_name", "last_name", "email", "alias", "first_travel_date", "last_travel_date"))
    return {"driver_id": driver_id, **names, **fields}


def make_event_summary(**fields: Any) -> dict[str, Any]:
    """Return an event summary, of zeros but for `fields`."""
    counts = ("phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
    return {**dict.fromkeys(counts, 0), "phone_use_time_seconds": 0, "overspeeding_time_seconds": 0, **fields}


def make_point(timestamp: int, **fields: Any) -> dict[str, Any]:
    """Return a trail point."""
    return {"timestamp": timestamp, "latitude": 41.25, "longitude": -96.5, "course": 90.0, **fields}


def make_event(timestamp: int, **fields: Any) -> dict[str, Any]:
    """Return a hard brake."""
    return {
        "event_type": 2,
        "event_name": "HARD_BRAKE",
        "event_start_timestamp": timestamp,
        "event_end_timestamp": timestamp + 1000,
        "event_start_latitude": 41.25,
        "event_start_longitude": -96.5,
        "event_end_latitude": 41.25,
        "event_end_longitude": -96.5,
        "event_data": {},
        **fields,
    }


def make_trip(start: str = "2026-03-10T08:00", driver_id: str = "d1", **fields: Any) -> dict[str, Any]:
    """Return a line of a trips file: ten miles in half an hour, unless told otherwise."""
    begin = epoch_ms(start)
    return {
        "trip_id": f"t{next(NUMBERS)}",
        "tracking_id": None,
        "driver_id": driver_id,
        "trip_start_time": begin,
        "trip_end_time": begin + 1_800_000,
        "duration_seconds": 1800,
        "distance_miles": 10.0,
        "insurance_period": None,
        "start_latitude": 41.25,
        "start_longitude": -96.5,
        "end_latitude": 41.3,
        "end_longitude": -96.6,
        "night_driving_seconds": 0,
        "highway_miles": 0.0,
        "night_driving_miles": 0.0,
        "event_summary": make_event_summary(),
        "trail_path": [make_point(begin), make_point(begin + 1_800_000, latitude=41.3, longitude=-96.6)],
        "events": [],
        **fields,
    }


def days_ago(days: int, time: str = "08:00") -> str:
    """Return a time of so many days before today (UTC), such as 2026-03-10T08:00."""
    return f"{datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days)}T{time}"
