"""The demonstration fleet: generated drivers, and the trips that they drive on the roads of a generated town.

The modules build on each other: `drivers` says who drives and when, `town` has the roads and places, `driving` drives a
route, and `trips` makes a trip of a drive. The same day always gives the same trips.
"""

import datetime as dt
import itertools
import random
from collections.abc import Iterator
from typing import Any

from scripts.demo.drivers import DRIVERS, ROLES, DemoDriver
from scripts.demo.driving import drive, plan_route
from scripts.demo.town import get_town
from scripts.demo.trips import make_trip

FLEET = "demo"
# The fleet's calendar repeats every 8 weeks. Each day has a slot, its number modulo 56, on which the ids and content of
# its trips depend. So a fleet that is loaded again on another day repeats the days that are still in the window.
DAYS = 56


def make_drivers(today: dt.date) -> list[dict[str, Any]]:
    """Return the fleet's drivers (schema Driver), ordered by driver_id.

    Some have a first_travel_date in the year before `today`. The other travel dates follow from the trips.
    """
    drivers = []
    for number, driver in enumerate(DRIVERS, start=1):
        first, last = driver.name.split(" ") if driver.name else (None, None)
        address = driver.name and driver.name.lower().replace(" ", ".").replace("'", "").replace("í", "i")
        drivers.append(
            {
                "driver_id": f"{FLEET}-{number:02d}",
                "first_name": first,
                "last_name": last,
                "email": address and f"{address}@example.com",
                "alias": driver.alias,
                "first_travel_date": driver.joined and f"{today.year - 1}-{driver.joined}",
                "last_travel_date": None,
            }
        )
    return drivers


def make_trips(now: dt.datetime) -> list[dict[str, Any]]:
    """Return the trips (schema ImportedTrip) of the 8 weeks up to `now` (aware, UTC), by (trip_start_time, trip_id).

    No trip ends after `now`. There are about 1,200 trips with 110 trail points each.
    """
    today = int(now.timestamp()) // 86_400  # days since the epoch
    trips = [
        trip
        for number, driver in enumerate(DRIVERS, start=1)
        for day in range(today - DAYS + 1, today + 1)
        for trip in _make_day(number, driver, day)
        if trip["trip_end_time"] <= now.timestamp() * 1000
    ]
    return sorted(trips, key=lambda trip: (trip["trip_start_time"], trip["trip_id"]))


def _make_day(number: int, driver: DemoDriver, day: int) -> Iterator[dict[str, Any]]:
    """Yield the trips of the driver with this number, from 1, on a day since the epoch."""
    role, town, name = ROLES[driver.role], get_town(), f"{number:02d}-{day % DAYS:02d}"
    rng = random.Random(f"plan {name}")  # noqa: S311 - generated data, not a secret
    is_weekend = (day + 3) % 7 >= 5  # day 0 of the epoch was a Thursday
    if rng.random() >= role.day_probabilities[is_weekend]:
        return
    home, goals = town.homes[driver.home][number - 1], town.goals[number : number + role.goals]
    places = [home, *rng.sample(goals, rng.randint(*role.stops)), home]
    second = round((day * 24 + rng.uniform(*role.start_hours)) * 3600)
    for leg, (origin, destination) in enumerate(itertools.pairwise(places)):
        moments = drive(plan_route(origin, destination), driver, second, rng)
        yield {
            "trip_id": f"{FLEET}-{name}-{leg + 1}",
            "tracking_id": role.tracking and f"{role.tracking}-{name}",
            "driver_id": f"{FLEET}-{number:02d}",
            "insurance_period": role.insurance_periods[leg % len(role.insurance_periods)],
            **make_trip(moments, driver.phone, rng),
        }
        second = round(moments[-1].arrival + rng.uniform(*role.pause_hours) * 3600)
