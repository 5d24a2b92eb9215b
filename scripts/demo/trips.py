"""One trip of the demonstration fleet: a driven route, measured on its rounded trail as a reader would measure it.

- Distance: haversine between trail points. Speed: that distance divided by the time between the two points.
- Course: bearing towards the next point; the previous course while the car does not move.
- Highway: steps above 55 mph. Night: steps that begin between 22:00 and 05:00 in local solar time of the town.
"""

import itertools
import math
from typing import Any, NamedTuple

from schemas.trip import EVENT_TYPES
from scripts.demo.drivers import DemoDriver
from scripts.demo.driving import drive, sample
from scripts.demo.events import Event, find_overspeeding, find_sharp_changes, make_phone_use, summarize
from scripts.demo.geometry import LONGITUDE, METERS_PER_MILE, Fix, bearing, haversine_meters
from scripts.demo.rng import make_rng
from scripts.demo.routes import get_route
from scripts.demo.schedule import Leg

HIGHWAY_MPH = 55
SOLAR_OFFSET_SECONDS = int(LONGITUDE * 240)  # local solar time minus UTC: the sun moves one degree in 240 s

TrailPoint = dict[str, float]


class _Steps(NamedTuple):
    """The steps between trail points: one value of each list per step."""

    seconds: list[int]
    miles: list[float]
    mph: list[float]
    night: list[bool]


def make_trip(trip_id: str, driver_id: str, driver: DemoDriver, leg: Leg, start_second: int) -> dict[str, Any]:
    """Return the trip (schema ImportedTrip) of a leg that starts at `start_second` (epoch)."""
    rng, route = make_rng(trip_id), get_route(leg.origin, leg.destination)
    fixes = sample(route, drive(route, driver, rng), (rng.gauss(0, 2.5), rng.gauss(0, 2.5)))
    seconds, miles, mph, night = steps = _measure(fixes, start_second)
    trail = _make_trail(fixes, start_second)
    events = find_sharp_changes(seconds, mph) + find_overspeeding(fixes, miles, mph)
    events += make_phone_use(fixes, driver.phone, rng)
    events.sort(key=lambda event: (event.first, event.last))
    return {
        "trip_id": trip_id,
        "tracking_id": leg.tracking_id,
        "driver_id": driver_id,
        "trip_start_time": trail[0]["timestamp"],
        "trip_end_time": trail[-1]["timestamp"],
        "duration_seconds": fixes[-1].second,
        "distance_miles": round(math.fsum(miles), 6),
        "insurance_period": leg.insurance_period,
        "start_latitude": fixes[0].latitude,
        "start_longitude": fixes[0].longitude,
        "end_latitude": fixes[-1].latitude,
        "end_longitude": fixes[-1].longitude,
        "night_driving_seconds": sum(itertools.compress(seconds, night)),
        "highway_miles": _highway_miles(steps),
        "night_driving_miles": round(math.fsum(itertools.compress(miles, night)), 6),
        "event_summary": summarize(events, fixes),
        "trail_path": trail,
        "events": [_render_event(event, trail) for event in events],
    }


def _measure(fixes: list[Fix], start_second: int) -> _Steps:
    pairs = list(itertools.pairwise(fixes))
    seconds = [b.second - a.second for a, b in pairs]
    miles = [haversine_meters(a, b) / METERS_PER_MILE for a, b in pairs]
    mph = [m / s * 3600 for m, s in zip(miles, seconds, strict=True)]
    night = [not 5 <= (start_second + SOLAR_OFFSET_SECONDS + a.second) / 3600 % 24 < 22 for a, _ in pairs]
    return _Steps(seconds, miles, mph, night)


def _highway_miles(steps: _Steps) -> float:
    return round(math.fsum(m for m, v in zip(steps.miles, steps.mph, strict=True) if v > HIGHWAY_MPH), 6)


def _make_trail(fixes: list[Fix], start_second: int) -> list[TrailPoint]:
    trail: list[TrailPoint] = []
    course = 0.0
    for a, b in [*itertools.pairwise(fixes), (fixes[-1], fixes[-1])]:
        course = bearing(a, b) if a[1:3] != b[1:3] else course
        timestamp = (start_second + a.second) * 1000
        trail.append({"timestamp": timestamp, "latitude": a.latitude, "longitude": a.longitude, "course": course})
    return trail


def _render_event(event: Event, trail: list[TrailPoint]) -> dict[str, Any]:
    """Return the event (schema Event) between two points of the trail."""
    first, last = trail[event.first], trail[event.last]
    return {
        "event_type": event.event_type,
        "event_name": EVENT_TYPES[event.event_type][0],
        "event_start_timestamp": first["timestamp"],
        "event_end_timestamp": last["timestamp"],
        "event_start_latitude": first["latitude"],
        "event_start_longitude": first["longitude"],
        "event_end_latitude": last["latitude"],
        "event_end_longitude": last["longitude"],
        "event_data": event.data,
    }
