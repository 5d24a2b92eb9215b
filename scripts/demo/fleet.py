"""The demonstration fleet: generated drivers, and the trips that they drive in a town and a suburb of it.

`drivers` says who drives and when, and `trips` drives. The same day always gives the same trips.
"""

import datetime as dt
import itertools
import random
from collections.abc import Iterator
from typing import Any

from scripts.demo.drivers import DRIVERS, ROLES, DemoDriver
from scripts.demo.trips import drive, make_trip

FLEET = "demo"
# The fleet's calendar repeats every 8 weeks. Each day has a slot, its number modulo 56, on which the ids and content of
# its trips depend. So a fleet that is loaded again on another day repeats the days that are still in the window.
DAYS = 56
BLOCK_METERS = 250
# The centres in metres east and north, and how many blocks they extend to each side.
AREAS = {"town": (complex(0, 0), 12), "suburb": (complex(11_500, -4_250), 4)}
# Of the places where a driver goes.
SUBURB_SHARE = 0.05


def make_drivers(today: dt.date) -> list[dict[str, Any]]:
    """Return the fleet's drivers (schema ImportedDriver), ordered by driver_id. Half of them are in each of two groups.

    Some have a first_travel_date in the year before `today`. The other travel dates follow from the trips.
    """
    drivers = []
    for number, driver in enumerate(DRIVERS, start=1):
        first, last = driver.name.split(" ") if driver.name else (None, None)
        drivers.append(
            {
                "driver_id": f"{FLEET}-{number:02d}",
                "first_name": first,
                "last_name": last,
                "email": driver.name and f"{first}.{last}@example.com".lower().replace("'", "").replace("í", "i"),
                "alias": driver.alias,
                "first_travel_date": driver.joined and f"{today.year - 1}-{driver.joined}",
                "groups": ["North" if number % 2 else "South"],
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
    role, name = ROLES[driver.role], f"{number:02d}-{day % DAYS:02d}"
    rng = random.Random(f"plan {name}")  # noqa: S311 - generated data, not a secret
    is_weekend = (day + 3) % 7 >= 5  # day 0 of the epoch was a Thursday
    if rng.random() >= role.day_probabilities[is_weekend]:
        return
    home, *goals = _choose_places(f"{number:02d}", driver.home, role.goals)
    places = [home, *rng.sample(goals, rng.randint(*role.stops)), home]
    second = round((day * 24 + rng.uniform(*role.start_hours)) * 3600)
    for leg, (origin, destination) in enumerate(itertools.pairwise(places)):
        runs = drive(origin, destination, driver, second, rng)
        yield {
            "trip_id": f"{FLEET}-{name}-{leg + 1}",
            "tracking_id": role.tracking and f"{role.tracking}-{name}",
            "driver_id": f"{FLEET}-{number:02d}",
            "insurance_period": role.insurance_periods[leg % len(role.insurance_periods)],
            **make_trip(runs, driver.phone, rng),
        }
        second = round(runs[-1].times[-1] + rng.uniform(*role.pause_hours) * 3600)


def _choose_places(name: str, home: str, goals: int) -> list[complex]:
    """Return where the driver with this name lives, and as many other places to go to: crossings of streets."""
    rng = random.Random(f"places {name}")  # noqa: S311 - generated data, not a secret
    places = list[complex]()
    while len(places) <= goals:
        area = home if not places else "suburb" if rng.random() < SUBURB_SHARE else "town"
        centre, half = AREAS[area]
        place = centre + BLOCK_METERS * complex(rng.randint(-half, half), rng.randint(-half, half))
        if place not in places:
            places.append(place)
    return places
