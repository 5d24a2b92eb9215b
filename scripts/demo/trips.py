"""One trip of the demonstration fleet: runs from stop to stop on straight roads, its trail, its events and its totals.

The trail has a point every 5 seconds, and where a run begins, reaches its speed, brakes and ends.
"""

import cmath
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from schemas.trip import EVENT_NAMES, EventSummary
from scripts.demo.drivers import DemoDriver

LATITUDE, LONGITUDE = 38.84, -97.5  # degrees, the town's centre, on open farmland in Kansas
METERS_PER_DEGREE = 111_195  # of latitude
METERS_PER_MILE = 1609.344
MPS_PER_MPH = METERS_PER_MILE / 3600
ARTERIAL_METERS = 1_000  # from one to the next; all other roads in the town are streets
FAR_METERS, MOTORWAY_NORTH = 8_000, -4_000  # a motorway leads to what is far
MOTORWAY_MPH, WIDE_MPH, ARTERIAL_MPH, STREET_MPH = 65, 45, 35, 25
RUN_METERS = {MOTORWAY_MPH: 20_000, WIDE_MPH: 1_100, ARTERIAL_MPH: 800, STREET_MPH: 600}  # between two stops, about
NIGHT_UTC_HOURS = range(4, 11)  # 22:00 to 05:00 in the town
SAMPLE_SECONDS = 5
RAPID_ACCELERATION, HARD_BRAKE, PHONE_USE, OVERSPEEDING = EVENT_NAMES
OVERSPEEDING_MARGIN_MPH, OVERSPEEDING_MIN_SECONDS = 5, 10


class Run(NamedTuple):
    """A part of a trip on a straight road: the car starts, keeps its speed, and stops. Times are epoch seconds."""

    start: complex  # metres east, and as the imaginary part metres north, of the town's centre
    end: complex
    limit_mph: int
    departure: float
    mps: float
    acceleration_mps2: float
    braking_mps2: float

    @property
    def meters(self) -> float:
        """The length."""
        return abs(self.end - self.start)

    @property
    def times(self) -> tuple[float, float, float]:
        """When the car reaches its speed, brakes, and stands."""
        starting, braking = self.mps / self.acceleration_mps2, self.mps / self.braking_mps2
        cruising = self.meters / self.mps - (starting + braking) / 2
        first = self.departure + starting
        return first, first + cruising, first + cruising + braking

    def locate(self, second: float) -> dict[str, float]:
        """Return where the car is at a time."""
        first, last, arrival = self.times
        if second < first:
            meters = self.acceleration_mps2 * (second - self.departure) ** 2 / 2
        elif second < last:
            meters = self.mps * (second - (self.departure + first) / 2)
        else:
            meters = self.meters - self.braking_mps2 * (arrival - second) ** 2 / 2
        position = (self.start + (self.end - self.start) * meters / self.meters) / METERS_PER_DEGREE
        return {
            "timestamp": round(second * 1000),
            "latitude": round(LATITUDE + position.imag, 6),
            "longitude": round(LONGITUDE + position.real / math.cos(math.radians(LATITUDE)), 6),
        }

    def make_trail(self) -> Iterator[dict[str, float]]:
        """Yield the points of the trail."""
        course = round(90 - math.degrees(cmath.phase(self.end - self.start)), 1) % 360
        samples = range(math.ceil(self.departure) + SAMPLE_SECONDS, int(self.times[-1]), SAMPLE_SECONDS)
        for second in sorted({self.departure, *self.times, *samples}):
            yield {**self.locate(second), "course": course}


def drive(origin: complex, destination: complex, driver: DemoDriver, second: float, rng: random.Random) -> list[Run]:
    """Return the runs of a trip that begins at a time."""
    runs = list[Run]()
    for start, end, limit_mph in _find_roads(origin, destination):
        meters = abs(end - start)
        is_rapid = rng.random() < driver.accelerations / 100
        is_hard = rng.random() < driver.brakes * meters / METERS_PER_MILE / 100
        acceleration = rng.uniform(3.4, 4) if is_rapid else 1.5
        braking = rng.uniform(4.3, 5.6) if is_hard else 1.9
        # On a short run, the car brakes before it has reached its speed.
        most_mps = math.sqrt(2 * meters * acceleration * braking / (acceleration + braking))
        mps = min(most_mps, limit_mph * MPS_PER_MPH * driver.pace * rng.uniform(0.92, 1.12))
        runs.append(Run(start, end, limit_mph, second, mps, acceleration, braking))
        second = runs[-1].times[-1] + rng.uniform(3, 40)
    return runs


def _find_roads(origin: complex, destination: complex) -> Iterator[tuple[complex, complex, int]]:
    """Yield the roads from stop to stop, each with its limit.

    They lead to an arterial, or for a far destination to the motorway, along it, and off it.
    """
    is_far = abs(destination.real - origin.real) > FAR_METERS
    north = MOTORWAY_NORTH if is_far else round(origin.imag / ARTERIAL_METERS) * ARTERIAL_METERS
    main_mph = MOTORWAY_MPH if is_far else ARTERIAL_MPH if north else WIDE_MPH
    corners = [origin, complex(origin.real, north), complex(destination.real, north), destination]
    for number, (start, end) in enumerate(itertools.pairwise(corners)):
        meters = abs(end - start)
        limit_mph = main_mph if number == 1 else STREET_MPH if meters < ARTERIAL_METERS else ARTERIAL_MPH
        count = max(1, round(meters / RUN_METERS[limit_mph]))
        stops = [start + (end - start) * stop / count for stop in range(count + 1)]
        if meters:
            yield from ((*pair, limit_mph) for pair in itertools.pairwise(stops))


def make_trip(runs: list[Run], phone: float, rng: random.Random) -> dict[str, Any]:
    """Return the trip (schema ImportedTrip) of a drive, but for the identifiers and the insurance period.

    `phone` is the share of the time in which the driver uses the phone.
    """
    trail = [point for run in runs for point in run.make_trail()]
    events = [event for run in runs for event in _make_events(run, phone, rng)]
    miles = round(sum(run.meters for run in runs) / METERS_PER_MILE, 6)
    highway_miles = round(sum(run.meters for run in runs if run.limit_mph == MOTORWAY_MPH) / METERS_PER_MILE, 6)
    seconds = round(runs[-1].times[-1] - runs[0].departure)
    is_night = runs[0].departure // 3600 % 24 in NIGHT_UTC_HOURS
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
        "highway_miles": highway_miles,
        "night_driving_miles": miles if is_night else 0,
        "event_summary": _summarize(events),
        "trail_path": trail,
        "events": events,
    }


def _make_events(run: Run, phone: float, rng: random.Random) -> list[dict[str, Any]]:
    """Return the events of a run (schema Event)."""
    first, last, arrival = run.times
    mph, quarter = round(run.mps / MPS_PER_MPH, 1), (arrival - run.departure) / 4
    is_fast = mph > run.limit_mph + OVERSPEEDING_MARGIN_MPH and last - first >= OVERSPEEDING_MIN_SECONDS
    speeds = {"user_speed_mph": mph, "speed_limit_mph": run.limit_mph, "max_user_speed_mph": mph}
    possible = (
        (run.acceleration_mps2 > 3, RAPID_ACCELERATION, run.departure, first),
        (rng.random() < 2 * phone, PHONE_USE, run.departure + quarter, arrival - quarter),
        (is_fast, OVERSPEEDING, first, last),
        (run.braking_mps2 > 4, HARD_BRAKE, last, arrival),
    )
    return [
        {
            "event_type": event_type,
            "event_name": EVENT_NAMES[event_type],
            **{f"event_start_{key}": value for key, value in run.locate(start).items()},
            **{f"event_end_{key}": value for key, value in run.locate(end).items()},
            "event_data": speeds if event_type == OVERSPEEDING else {},
        }
        for happens, event_type, start, end in possible
        if happens
    ]


def _summarize(events: list[dict[str, Any]]) -> dict[str, int]:
    """Return the EventSummary of events, in whole seconds, so that its sums have no long fractions."""
    totals = Counter[str]()
    for event in events:
        name, ms = event["event_name"].lower(), event["event_end_timestamp"] - event["event_start_timestamp"]
        totals.update({f"{name}_count": 1, f"{name}_time_seconds": round(ms / 1000)})
    return {name: totals[name] for name in EventSummary().fields}
