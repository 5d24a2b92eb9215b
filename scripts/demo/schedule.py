"""What each driver does on each day, on a calendar that repeats every 56 days (8 weeks).

Each calendar day has a slot, its number modulo 56, and the slot determines the ids and content of the day's trips. So a
fleet that is loaded again on another day repeats the days that are still in the window, and replaces the others.
"""

import itertools
import random
from collections.abc import Callable
from typing import NamedTuple

from scripts.demo.drivers import DRIVING_PROBABILITIES, DemoDriver
from scripts.demo.rng import make_rng
from scripts.demo.town import Node, get_town

DAYS = 56  # a multiple of 7, so that a slot always falls on the same weekday


class Leg(NamedTuple):
    """A planned trip between two places. It starts at this local hour or later; hours above 24 are after midnight."""

    hour: float
    origin: Node
    destination: Node
    tracking_id: str | None = None
    insurance_period: int | None = None


class Day(NamedTuple):
    """A driver's day: random numbers, the places of the town and of the driver, and the part of ids that is unique."""

    rng: random.Random
    places: dict[str, list[Node]]
    home: Node
    work: Node
    name: str
    role: str
    is_weekend: bool


def plan_day(number: int, driver: DemoDriver, slot: int) -> list[Leg]:
    """Return the legs of a driver, by number from 1, on the day of a slot, in the order of time."""
    rng, role, places = make_rng("day", number, slot), driver.role or "", get_town().places
    is_weekend = (slot + 3) % 7 >= 5  # day 0 of the epoch was a Thursday
    if rng.random() > DRIVING_PROBABILITIES[role][is_weekend]:
        return []
    home, work = places[driver.home][number - 1], make_rng("work", number).choice(places["office"])
    day = Day(rng, places, home, work, f"{number:02d}-{slot:02d}", role, is_weekend)
    return _PLANS[role](day)


def _plan_deliveries(day: Day) -> list[Leg]:
    rng, depot = day.rng, day.places["depot"]
    stops = rng.sample(day.places["site"], rng.randint(2, 6))
    chain, hour = [*depot, *stops, *depot], rng.uniform(8, 10)
    deliveries = [Leg(hour + 0.4 * i, a, b, f"round-{day.name}") for i, (a, b) in enumerate(itertools.pairwise(chain))]
    return [Leg(hour - 0.7, day.home, chain[0]), *deliveries]


def _plan_jobs(day: Day) -> list[Leg]:
    rng = day.rng
    sites, hour = rng.sample(day.places["site"], rng.randint(2, 3)), rng.uniform(8, 9.5)
    # The way home belongs to the last job.
    jobs = [f"job-{day.name}-{min(i, len(sites) - 1)}" for i in range(len(sites) + 1)]
    drives = itertools.pairwise([day.home, *sites, day.home])
    return [Leg(hour + 1.7 * i, *drive, job) for i, (drive, job) in enumerate(zip(drives, jobs, strict=True))]


def _plan_rides(day: Day) -> list[Leg]:
    # Insurance periods of ride hailing: 1 waiting for a call, 2 on the way to the passenger, 3 with the passenger.
    rng, places = day.rng, day.places
    goals = [*places["site"], *places["office"], *places["airport"]]
    hour = rng.uniform(9, 13) if day.role == "day cab" else rng.uniform(20, 22)
    here = rng.choice(places["office"])
    legs = [Leg(hour, day.home, here, None, 1)]
    for ride in range(1, rng.randint(3, 4)):
        pickup, goal = rng.sample([place for place in goals if place != here], 2)
        legs.append(Leg(hour + 0.9 * ride, here, pickup, f"ride-{day.name}-{ride}", 2))
        legs.append(Leg(hour + 0.9 * ride, pickup, goal, f"ride-{day.name}-{ride}", 3))
        here = goal
    return [*legs, Leg(hour + 4, here, day.home, None, 1)]


def _plan_night_shift(day: Day) -> list[Leg]:
    rng = day.rng
    return [Leg(rng.uniform(21.6, 22.6), day.home, day.work), Leg(rng.uniform(28.2, 29.3), day.work, day.home)]


def _plan_commute(day: Day) -> list[Leg]:
    if day.is_weekend:
        return _plan_outing(day)
    rng = day.rng
    shop, hour = rng.choice(day.places["site"]), rng.uniform(16.3, 17.8)
    way_home = [Leg(hour, day.work, day.home)]
    if rng.random() < 0.3:
        way_home = [Leg(hour, day.work, shop), Leg(hour + 0.8, shop, day.home)]
    return [Leg(rng.uniform(7, 8.5), day.home, day.work), *way_home]


def _plan_outing(day: Day) -> list[Leg]:
    rng, places = day.rng, day.places
    goal, hour = rng.choice([*places["site"], *places["office"], *places["airport"]]), rng.uniform(9.5, 18)
    return [Leg(hour, day.home, goal), Leg(hour + rng.uniform(1, 3), goal, day.home)]


_PLANS: dict[str, Callable[[Day], list[Leg]]] = {
    "commuter": _plan_commute,
    "courier": _plan_deliveries,
    "day cab": _plan_rides,
    "night cab": _plan_rides,
    "night guard": _plan_night_shift,
    "night nurse": _plan_night_shift,
    "private": _plan_outing,
    "technician": _plan_jobs,
}
