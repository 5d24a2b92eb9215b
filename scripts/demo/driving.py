"""How a driver drives a route: a speed profile, and the trail that a receiver in the car records.

The speed profile follows from limits, turns, stops and the driver's style. The trail has a point every 5 s, one at each
end of a turn, and one every second around sharp changes of speed.
"""

import dataclasses
import itertools
import math
import random

from scripts.demo.drivers import DemoDriver
from scripts.demo.geometry import (
    DEGREES_PER_METER_EAST,
    DEGREES_PER_METER_NORTH,
    LATITUDE,
    LONGITUDE,
    METERS_PER_MILE,
    MPS_PER_MPH,
    Fix,
    Point,
)
from scripts.demo.routes import Mark, Route

SAMPLE_SECONDS = 5
MAX_SPEED_MPH = 85  # of any driver of the fleet


@dataclasses.dataclass(slots=True)
class Knot:
    """A point of a drive; between two knots the acceleration is constant. Times are in seconds since the start."""

    meters: float
    limit_mph: int  # from here on
    mps: float
    is_steady: bool = False  # neither stop nor turn
    stop_seconds: float = 0
    braking_mps2: float = 1.9  # maximum, towards the next knot
    acceleration_mps2: float = 1.5
    arrival: float = 0
    departure: float = 0


def drive(route: Route, driver: DemoDriver, rng: random.Random) -> list[Knot]:
    """Return the speed profile of a drive, which respects turns, stops and comfortable accelerations."""
    knots = _cruise(route.marks, driver.pace, rng)
    hundreds_of_miles = knots[-1].meters / METERS_PER_MILE / 100
    _add_hard_brakes(knots, int(driver.brakes * hundreds_of_miles + rng.random()), rng)
    _add_rapid_accelerations(knots, int(driver.accelerations * hundreds_of_miles + rng.random()), rng)
    for here, ahead in reversed(list(itertools.pairwise(knots))):
        here.mps = min(here.mps, math.sqrt(ahead.mps**2 + 2 * here.braking_mps2 * (ahead.meters - here.meters)))
    for here, ahead in itertools.pairwise(knots):
        meters = ahead.meters - here.meters
        ahead.mps = min(ahead.mps, math.sqrt(here.mps**2 + 2 * here.acceleration_mps2 * meters))
        ahead.arrival = here.departure + 2 * meters / (here.mps + ahead.mps)
        ahead.departure = ahead.arrival + ahead.stop_seconds
    return knots


def _cruise(marks: list[Mark], pace: float, rng: random.Random) -> list[Knot]:
    """Return a knot for each mark, with the speed that the driver would like to have there."""
    trip_pace, variation, limit = pace * rng.uniform(0.96, 1.04), 0.0, marks[0].limit_mph
    knots = []
    for mark in marks:
        variation = 0.9 * variation + rng.gauss(0, 0.02)
        cruise_mph = min(min(limit, mark.limit_mph) * trip_pace * (1 + variation), MAX_SPEED_MPH)
        limit = mark.limit_mph
        knot = Knot(mark.meters, limit, min(cruise_mph * MPS_PER_MPH, mark.turn_mps), mark.turn_mps == math.inf)
        if mark.stop_probability > rng.random():
            knot.mps, knot.is_steady = 0, False
            knot.stop_seconds = rng.uniform(1, 4) if mark.stop_probability == 1 else rng.uniform(4, 50)
        knots.append(knot)
    for knot in (knots[0], knots[-1]):
        knot.mps, knot.is_steady = 0, False
    return knots


def _add_hard_brakes(knots: list[Knot], count: int, rng: random.Random) -> None:
    """Add hard brakes where the speed is steady."""
    for _ in range(count):
        steady = [
            i for i in range(2, len(knots)) if knots[i].mps > 9 and all(k.is_steady for k in knots[i - 2 : i + 2])
        ]
        if steady:
            i = rng.choice(steady)
            knots[i].braking_mps2 = rng.uniform(4.3, 5.6)
            _add_knot(knots, i, knots[i].mps * rng.uniform(0.25, 0.4), knots[i].braking_mps2)


def _add_rapid_accelerations(knots: list[Knot], count: int, rng: random.Random) -> None:
    """Add rapid accelerations after stops."""
    for _ in range(count):
        stops = [i for i, (here, ahead) in enumerate(itertools.pairwise(knots)) if here.mps == 0 and ahead.mps > 8]
        if stops:
            i = rng.choice(stops)
            knots[i].acceleration_mps2 = rng.uniform(3.4, 4)
            _add_knot(knots, i, min(rng.uniform(8.5, 11), knots[i + 1].mps), knots[i].acceleration_mps2)


def _add_knot(knots: list[Knot], i: int, mps: float, mps2: float) -> None:
    """Add a knot where the car reaches the speed `mps` after knot i, unless a turn or stop comes first."""
    meters = knots[i].meters + abs(mps**2 - knots[i].mps ** 2) / (2 * mps2)
    j = i + 1
    while knots[j].is_steady and knots[j].meters <= meters:
        j += 1
    if knots[j].meters > meters:
        knots[i + 1 : j] = [Knot(meters, knots[j - 1].limit_mph, mps)]


def sample(route: Route, knots: list[Knot], shift: Point) -> list[Fix]:
    """Return the trail of a drive, in the order of time. All of it is `shift` metres off, as with a real receiver."""
    fixes, k, p = [], 0, 0
    for second in _sample_seconds(knots):
        while k + 2 < len(knots) and knots[k + 1].arrival <= second:
            k += 1
        here, ahead = knots[k], knots[k + 1]
        share = min(max(0, (second - here.departure) / (ahead.arrival - here.departure)), 1)
        mean_mps = here.mps + (ahead.mps - here.mps) * share / 2
        meters = here.meters + mean_mps * share * (ahead.arrival - here.departure)
        while p + 2 < len(route.line) and route.line[p + 1][0] <= meters:
            p += 1
        (begin, x0, y0), (end, x1, y1) = route.line[p : p + 2]
        share = (meters - begin) / (end - begin)
        latitude = LATITUDE + (y0 + (y1 - y0) * share + shift[1]) * DEGREES_PER_METER_NORTH
        longitude = LONGITUDE + (x0 + (x1 - x0) * share + shift[0]) * DEGREES_PER_METER_EAST
        fixes.append(Fix(second, round(latitude, 6), round(longitude, 6), here.limit_mph))
    return fixes


def _sample_seconds(knots: list[Knot]) -> list[int]:
    """Return the times of the trail points, in seconds since the start."""
    last = math.ceil(knots[-1].arrival)
    seconds = {*range(0, last, SAMPLE_SECONDS), last}
    for here, ahead in itertools.pairwise(knots):
        if not here.is_steady:
            seconds.add(round(here.arrival))
        if abs(here.mps - ahead.mps) > 2.5 * (ahead.arrival - here.departure):
            seconds.update(range(max(0, int(here.departure) - 2), min(last, int(ahead.arrival) + 4)))
    return sorted(seconds)
