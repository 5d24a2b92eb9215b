"""The demonstration fleet: generated drivers, and the trips that they drive on the roads of a generated town.

The modules build on each other: `drivers` says who drives, `town` has the roads and places, `schedule` plans each
driver's day, `routes` finds the fastest route of a trip, `driving` drives it and records a trail, and `trips` and
`events` measure the trip on its trail. The same day always gives the same trips.
"""

import datetime as dt
import heapq
from collections.abc import Iterator
from typing import Any

from scripts.demo.drivers import DRIVERS, FLEET, DemoDriver, make_driver_id, make_drivers
from scripts.demo.schedule import DAYS, plan_day
from scripts.demo.trips import SOLAR_OFFSET_SECONDS, make_trip

__all__ = ["FLEET", "make_drivers", "make_trips"]

SECONDS_PER_DAY = 86_400
PAUSE_SECONDS = 240  # between two trips of a driver


def make_trips(now: dt.datetime) -> Iterator[dict[str, Any]]:
    """Yield the trips (schema ImportedTrip) of the 8 weeks up to `now` (aware, UTC), by (trip_start_time, trip_id).

    No trip ends after `now`. There are about 1,200 trips with 110 trail points each.
    """
    trips_by_driver = [
        _driver_trips(number, driver, now) for number, driver in enumerate(DRIVERS, start=1) if driver.role
    ]
    return heapq.merge(*trips_by_driver, key=lambda trip: (trip["trip_start_time"], trip["trip_id"]))


def _driver_trips(number: int, driver: DemoDriver, now: dt.datetime) -> Iterator[dict[str, Any]]:
    """Yield one driver's trips of the days up to `now`, oldest first."""
    driver_id, now_second = make_driver_id(number), int(now.timestamp())
    today = (now_second + SOLAR_OFFSET_SECONDS) // SECONDS_PER_DAY  # local solar days since the epoch
    for day in range(today - DAYS + 1, today + 1):
        slot, free_second = day % DAYS, 0
        for leg_number, leg in enumerate(plan_day(number, driver, slot), start=1):
            planned_second = day * SECONDS_PER_DAY - SOLAR_OFFSET_SECONDS + int(leg.hour * 3600)
            trip_id = f"{driver_id}-{slot:02d}-{leg_number}"
            trip = make_trip(trip_id, driver_id, driver, leg, max(planned_second, free_second))
            if trip["trip_end_time"] > now_second * 1000:
                return
            yield trip
            free_second = trip["trip_end_time"] // 1000 + PAUSE_SECONDS
