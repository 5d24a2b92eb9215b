"""Documents to load: each whole and in shape, with what a test cares for set by name."""

import dataclasses
import datetime
import itertools
from collections.abc import Sequence
from typing import Any

from schemas.driver import Driver
from schemas.periods import MONTH
from schemas.report import ReportWindow
from schemas.summary import GRADES, SummaryFocusArea
from schemas.trip import ImportedTrip, TripDetail
from scripts.reports.content import Figures, Row

NUMBERS = itertools.count(1)
# The fields of a trip that are null if a line lacks them.
NULL_BY_DEFAULT = [name for name, field in ImportedTrip().fields.items() if field.load_default is None]

# Those that are stored, but not returned.
NOT_RETURNED = ImportedTrip().fields.keys() - TripDetail().fields.keys()


def epoch_ms(text: str) -> int:
    """Return the milliseconds of a time such as 2026-03-10T08:00 (UTC)."""
    return int(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp() * 1000)


def make_driver(driver_id: str = "d1", **fields: Any) -> dict[str, Any]:
    """Return a line of a drivers file."""
    return {**dict.fromkeys(Driver().fields), "driver_id": driver_id, **fields}


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


def make_speeding(timestamp: int, speed: float = 50.5, limit: float = 35, most: float = 61.0) -> dict[str, Any]:
    """Return an overspeeding event."""
    speeds = {"user_speed_mph": speed, "speed_limit_mph": limit, "max_user_speed_mph": most}
    return make_event(timestamp, event_type=9, event_name="OVERSPEEDING", event_data=speeds)


def make_trip(start: str = "2026-03-10T08:00", driver_id: str = "d1", **fields: Any) -> dict[str, Any]:
    """Return a line of a trips file: ten miles in half an hour, by default."""
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
        **dict.fromkeys(NULL_BY_DEFAULT),
        **fields,
    }


def days_ago(days: int, time: str = "08:00") -> str:
    """Return a time of so many days before today (UTC), such as 2026-03-10T08:00."""
    return f"{datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days)}T{time}"


def make_summary(score: float = 92.5, miles: float = 100.0, coach: Sequence[str] = (), **events: int) -> dict[str, Any]:
    """Return a driving summary, with these flags of its focus area up and these counts and seconds of events."""
    return {
        "fm_score": score,
        "fm_grade": next(name for name, lowest in GRADES.items() if score >= lowest),
        "trip_count": 12,
        "distance_miles": miles,
        "duration_seconds": 14_400,
        "night_driving_seconds": 1_440,
        "highway_miles": miles / 4,
        "events_summary": make_event_summary(**events),
        "focus_area": {flag: flag in coach for flag in SummaryFocusArea().fields},
    }


WEEKLY, MONTHLY = ReportWindow("2026-11-16"), ReportWindow("2026-12-01", MONTH)


def make_figures(*rows: Row, window: ReportWindow = WEEKLY, **figures: Any) -> Figures:
    """Return the figures of a report on these drivers."""
    ranked = sorted((row for row in rows if row.summary), key=lambda row: row.summary["fm_score"])
    usual = Figures(
        fleet="acme",
        window=window,
        time_zone="UTC",
        built_at=epoch_ms("2026-11-16T06:00"),
        drivers=len(rows),
        drove=len(ranked),
        parts=[make_summary(60.0 + 5 * n, 100.0 * n) if ranked and n else None for n in range(len(window.parts))],
        scores=[sum(min(row.summary["fm_score"] // 10, 9) == band for row in ranked) for band in range(10)],
        grades={name: sum(row.summary["fm_grade"] == name for row in ranked) for name in GRADES},
        focus={flag: sum(row.summary["focus_area"][flag] for row in ranked) for flag in SummaryFocusArea().fields},
        best=ranked[::-1][: min(10, -(-len(ranked) // 2))],
        worst=ranked[: min(10, len(ranked) // 2)],
        first=list(rows),
    )
    if ranked:
        usual.total = make_summary(71.3, 2345.6, hard_brake_count=40, phone_use_count=70)
        usual.before = make_summary(70.1, 2000.0, hard_brake_count=30, phone_use_count=80)
    return dataclasses.replace(usual, **figures)
