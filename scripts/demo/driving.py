"""How a driver drives a route: where the car is when, and how fast.

The speed follows from limits, turns, stops and the driver's style.
"""

import cmath
import functools
import itertools
import math
import random
from typing import NamedTuple

from scripts.demo.drivers import DemoDriver
from scripts.demo.town import METERS_PER_MILE, MOTORWAY_MPH, MPS_PER_MPH, STREET_MPH, Node, find_ways, get_town

TURN_MPS2, BRAKING_MPS2, ACCELERATION_MPS2 = 2.4, 1.9, 1.5  # comfortable; in a turn, sideways
LIGHTS_PROBABILITY = 0.45  # of a stop at traffic lights
SPOT_METERS = 24
HARD_BRAKE_MPS = 14  # from lower speeds a hard brake would be too short to see


class Spot(NamedTuple):
    """A point of a route, with the limit from there on."""

    position: complex  # metres east, and as the imaginary part metres north, of the town's centre
    limit_mph: int
    max_mps: float = math.inf  # in a turn
    stop_probability: float = 0


class Moment(NamedTuple):
    """When and how fast a car is at a spot. Times are epoch seconds; they differ at a stop."""

    spot: Spot
    meters: float  # since the start
    mps: float
    arrival: float
    departure: float


@functools.cache
def plan_route(origin: Node, destination: Node) -> list[Spot]:
    """Return the spots of the fastest route: its nodes, and at least one between two of them, about every 24 m."""
    roads, ways, nodes, route = get_town().roads, find_ways(destination), [origin], []
    while nodes[-1] != destination:
        nodes.append(ways[nodes[-1]])
    legs = [(roads[a][b], complex(*b) - complex(*a)) for a, b in itertools.pairwise(nodes)]
    for node, (before_mph, before), (mph, step) in zip(nodes, [legs[0], *legs], legs, strict=False):
        has_lights = sum(limit in (35, 45) for limit in roads[node].values()) >= 3
        has_stop_sign = before_mph == STREET_MPH < mph
        stop_probability = 1 if has_stop_sign or node == origin else LIGHTS_PROBABILITY if has_lights else 0
        radius = 120 if MOTORWAY_MPH in (before_mph, mph) else 12
        angle = max(abs(cmath.phase(step / before)), 0.01)
        corner = Spot(complex(*node), mph, math.sqrt(TURN_MPS2 * radius / math.tan(angle / 2)), stop_probability)
        pieces = max(2, round(abs(step) / SPOT_METERS))
        route += [corner, *(Spot(corner.position + step * piece / pieces, mph) for piece in range(1, pieces))]
    return [*route, Spot(complex(*destination), mph, stop_probability=1)]


def drive(route: list[Spot], driver: DemoDriver, start_second: float, rng: random.Random) -> list[Moment]:
    """Return when and how fast a driver is at each spot of a route."""
    lengths = [abs(b.position - a.position) for a, b in itertools.pairwise(route)]
    allowed_mps = _plan_speeds(route, lengths, driver.pace, rng)
    brakes_per_meter = driver.brakes / METERS_PER_MILE / 100
    moments, meters, mps, arrival = [], 0.0, 0.0, start_second
    for spot, length, next_allowed_mps in zip(route, lengths, allowed_mps[1:], strict=False):
        departure = arrival
        if mps == 0:
            departure += rng.uniform(2, 4) if spot.stop_probability == 1 else rng.uniform(4, 50)
            is_rapid = rng.random() < driver.accelerations / 100
            change_mps2, lowest_mps = rng.uniform(3.4, 4) if is_rapid else ACCELERATION_MPS2, 0.0
        elif min(mps, next_allowed_mps) > HARD_BRAKE_MPS and rng.random() < brakes_per_meter * length:
            change_mps2, lowest_mps = -rng.uniform(4.3, 5.6), mps * rng.uniform(0.25, 0.4)
        elif change_mps2 > 0 or mps <= lowest_mps:
            change_mps2, lowest_mps = ACCELERATION_MPS2, 0.0
        moments.append(Moment(spot, meters, mps, arrival, departure))
        next_mps = min(math.sqrt(max(mps**2 + 2 * change_mps2 * length, lowest_mps**2)), next_allowed_mps)
        meters, arrival = meters + length, departure + 2 * length / (mps + next_mps)
        mps = next_mps
    return [*moments, Moment(route[-1], meters, mps, arrival, arrival)]


def _plan_speeds(route: list[Spot], lengths: list[float], pace: float, rng: random.Random) -> list[float]:
    """Return the speed (m/s) at each spot that the driver would like to have and from which the car can still stop."""
    variation, trip_pace, speeds = 0.0, pace * rng.uniform(0.96, 1.04), []
    for spot in route:
        variation = 0.97 * variation + rng.uniform(-0.018, 0.018)
        cruise_mps = spot.limit_mph * MPS_PER_MPH * trip_pace * (1 + variation)
        speeds.append(0 if rng.random() < spot.stop_probability else min(cruise_mps, spot.max_mps))
    for k in range(len(lengths) - 1, -1, -1):
        speeds[k] = min(speeds[k], math.sqrt(speeds[k + 1] ** 2 + 2 * BRAKING_MPS2 * lengths[k]))
    return speeds
