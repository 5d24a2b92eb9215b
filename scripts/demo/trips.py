"""One trip of the demonstration fleet: its trail, its events and its totals, from the moments of a drive.

The trail has a point about every 5 s, one at a crossing, three at a stop, and all moments of events and slow driving.
"""

import cmath
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from schemas.trip import EVENT_TYPES, EventSummary
from scripts.demo.driving import Moment
from scripts.demo.town import METERS_PER_MILE, MOTORWAY_MPH, MPS_PER_MPH

LATITUDE, LONGITUDE = 38.84, -97.5  # degrees, the town's centre
NIGHT_UTC_HOURS = range(4, 11)  # 22:00 to 05:00 in the town
METERS_PER_DEGREE = 111_195  # of latitude
SAMPLE_SECONDS, SLOW_MPS = 5, 10
RAPID_ACCELERATION, HARD_BRAKE, PHONE_USE, OVERSPEEDING = EVENT_TYPES
RAPID_ACCELERATION_MPS2, HARD_BRAKE_MPS2 = 3.0, -3.5
OVERSPEEDING_MARGIN_MPH, OVERSPEEDING_MIN_SECONDS = 5, 10


class Event(NamedTuple):
    """An event from one moment of a drive to another, given by their indexes."""

    first: int
    last: int
    event_type: int
    data: dict[str, float]


def make_trip(moments: list[Moment], phone: float, rng: random.Random) -> dict[str, Any]:
    """Return the trip (schema ImportedTrip) of a drive, but for the identifiers and the insurance period.

    `phone` is the share of the time in which the driver uses the phone.
    """
    events = sorted([*_find_events(moments), *_make_phone_use(len(moments), phone, rng)])
    rendered = [_render_event(event, moments) for event in events]
    trail = _make_trail(_choose_points(moments, events))
    highway = [b.meters - a.meters for a, b in itertools.pairwise(moments) if a.spot.limit_mph == MOTORWAY_MPH]
    miles = round(moments[-1].meters / METERS_PER_MILE, 6)
    seconds = round(moments[-1].arrival - moments[0].arrival)
    is_night = moments[0].arrival // 3600 % 24 in NIGHT_UTC_HOURS
    return {
        "trip_start_time": trail[0]["timestamp"],
        "trip_end_time": trail[-1]["timestamp"],
        "duration_seconds": seconds,
        "distance_miles": miles,
        "start_latitude": trail[0]["latitude"],
        "start_longitude": trail[0]["longitude"],
        "end_latitude": trail[-1]["latitude"],
        "end_longitude": trail[-1]["longitude"],
        "night_driving_seconds": seconds if is_night else 0,
        "highway_miles": round(sum(highway) / METERS_PER_MILE, 6),
        "night_driving_miles": miles if is_night else 0,
        "event_summary": _summarize(rendered),
        "trail_path": trail,
        "events": rendered,
    }


def _find_events(moments: list[Moment]) -> Iterator[Event]:
    """Yield the runs of moments with the same event and speed limit between them."""
    last = 0
    for (event_type, limit_mph), run in itertools.groupby(itertools.starmap(_classify, itertools.pairwise(moments))):
        first, last = last, last + len(list(run))
        seconds = moments[last].arrival - moments[first].departure
        if event_type == OVERSPEEDING and seconds >= OVERSPEEDING_MIN_SECONDS:
            mean_mps = (moments[last].meters - moments[first].meters) / seconds
            max_mps = max(moment.mps for moment in moments[first : last + 1])
            data = {
                "user_speed_mph": round(mean_mps / MPS_PER_MPH, 1),
                "speed_limit_mph": limit_mph,
                "max_user_speed_mph": round(max_mps / MPS_PER_MPH, 1),
            }
            yield Event(first, last, OVERSPEEDING, data)
        elif event_type in (RAPID_ACCELERATION, HARD_BRAKE):
            yield Event(first, last, event_type, {})


def _classify(here: Moment, ahead: Moment) -> tuple[int, int]:
    """Return the type of the event between two moments, or 0, and the speed limit there."""
    mps2, limit_mph = (ahead.mps - here.mps) / (ahead.arrival - here.departure), here.spot.limit_mph
    if mps2 < HARD_BRAKE_MPS2:
        return HARD_BRAKE, limit_mph
    if mps2 > RAPID_ACCELERATION_MPS2:
        return RAPID_ACCELERATION, limit_mph
    is_over = min(here.mps, ahead.mps) > (limit_mph + OVERSPEEDING_MARGIN_MPH) * MPS_PER_MPH
    return OVERSPEEDING if is_over else 0, limit_mph


def _make_phone_use(count: int, share: float, rng: random.Random) -> Iterator[Event]:
    """Yield stretches of the `count` moments of a drive, at most one of each 40."""
    for begin in range(0, count - 20, 40):
        if rng.random() < 2 * share:
            first = begin + rng.randint(1, 10)
            yield Event(first, min(first + rng.randint(10, 30), count - 1), PHONE_USE, {})


def _choose_points(moments: list[Moment], events: list[Event]) -> list[Moment]:
    """Return the moments that are in the trail."""
    needed = {index for event in events for index in range(event.first - 1, event.last + 3)}
    points = moments[:1]
    for index, moment in enumerate(moments[1:], start=1):
        is_due = moment.arrival >= points[-1].departure + SAMPLE_SECONDS
        if is_due or index in needed or moment.mps < SLOW_MPS or moment.spot.max_mps < math.inf:
            points.append(moment)
    return points


def _make_trail(moments: list[Moment]) -> list[dict[str, float]]:
    trail, course = [], 0.0
    for here, ahead in itertools.pairwise([*moments, moments[-1]]):
        step = ahead.spot.position - here.spot.position
        if step:
            course = round(90 - math.degrees(cmath.phase(step)), 1) % 360
        times = sorted({here.arrival, min(here.arrival + 1, here.departure), here.departure})
        trail += [{**_locate(here, second), "course": course} for second in times]
    return trail


def _locate(moment: Moment, second: float) -> dict[str, float]:
    """Return where the car is at a moment, at this time (epoch seconds)."""
    position = moment.spot.position / METERS_PER_DEGREE
    return {
        "timestamp": round(second * 1000),
        "latitude": round(LATITUDE + position.imag, 6),
        "longitude": round(LONGITUDE + position.real / math.cos(math.radians(LATITUDE)), 6),
    }


def _render_event(event: Event, moments: list[Moment]) -> dict[str, Any]:
    """Return the event in the shape of the schema Event."""
    first, last = moments[event.first], moments[event.last]
    return {
        "event_type": event.event_type,
        "event_name": EVENT_TYPES[event.event_type][0],
        **{f"event_start_{key}": value for key, value in _locate(first, first.departure).items()},
        **{f"event_end_{key}": value for key, value in _locate(last, last.arrival).items()},
        "event_data": event.data,
    }


def _summarize(events: list[dict[str, Any]]) -> dict[str, int]:
    """Return the EventSummary of events, in whole seconds, so that its sums have no long fractions."""
    totals = Counter[str]()
    for event in events:
        name, ms = event["event_name"].lower(), event["event_end_timestamp"] - event["event_start_timestamp"]
        totals.update({f"{name}_count": 1, f"{name}_time_seconds": round(ms / 1000)})
    return {name: totals[name] for name in EventSummary().fields}
