"""Generated fleets: drivers and trips in the import format, which differ only in their dates from day to day.

The newest trips ended yesterday before 18:00 UTC. So all trips are visible at any hour of today, and none is too old to
request.
"""

import datetime
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from schemas.trip import EVENT_NAMES, OVERSPEEDING, SPEEDS

TODAY = datetime.datetime.now(datetime.UTC).date()
# Of the last complete week.
MONDAY = TODAY - datetime.timedelta(TODAY.weekday() + 7)
# Trips start between 4:00 and 18:00 UTC, and end by 18:00.
FIRST_START_SECOND, LAST_END_SECOND, LONGEST_TRIP_SECONDS = 4 * 3600, 18 * 3600, 3000
# Of the part of the day that a trip has: it starts in the first, and lasts for the second, so that no two overlap.
START_SHARE, TRIP_SHARE = 0.2, 0.8
NAMES = {"first_name": "Inês", "last_name": "Okafor", "alias": None}

Line = dict[str, Any]


class Fleet(NamedTuple):
    """A fleet whose drivers all have `trips_a_day` trips on each date.

    `points` has the dates, oldest first, and the number of trail points of each trip of the date. All drivers are in
    the `group`, if there is one.
    """

    name: str
    drivers: int
    trips_a_day: int
    points: dict[datetime.date, int]
    group: str = ""

    @property
    def dates(self) -> list[datetime.date]:
        """Return the dates of its trips, oldest first."""
        return list(self.points)

    @property
    def driver_ids(self) -> list[str]:
        """Return the ids of its drivers, in order."""
        return [f"driver-{number:06d}" for number in range(self.drivers)]


def standard_fleet(name: str, drivers: int = 100, days: int = 60, points: int = 600, old_points: int = 60) -> Fleet:
    """Return a fleet with 4 trips a day. Trails have `points` in the newest two weeks, and `old_points` before."""
    ages = range(days, 0, -1)
    return Fleet(
        name, drivers, 4, {TODAY - datetime.timedelta(age): points if age <= 14 else old_points for age in ages}
    )


# To check that a benchmark works.
SMOKE = standard_fleet("smoke", drivers=20, days=30, points=30, old_points=6)


def trip_id(driver: str, date: datetime.date, number: int) -> str:
    """Return the trip_id of a driver's trip on a date, by number from 0."""
    return f"{driver}-{date:%Y%m%d}-{number}"


def write(fleet: Fleet, folder: Path) -> Iterator[tuple[str, Path]]:
    """Write the files of a fleet: yield "drivers", and "trips of N points" for trips of each size, with the file."""
    yield "drivers", _write(folder / "drivers.ndjson", _drivers(fleet))
    for points, dates in groupby(fleet.points, lambda date: fleet.points[date]):
        yield f"trips of {points} points", _write(folder / "trips.ndjson", _trips(fleet, dates))


def _write(path: Path, lines: Iterable[Line]) -> Path:
    with path.open("wb") as file:
        file.writelines(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
    return path


def _drivers(fleet: Fleet) -> Iterator[Line]:
    dates = {"first_travel_date": str(fleet.dates[0]), "last_travel_date": str(fleet.dates[-1])}
    of_group = {"groups": [fleet.group]} if fleet.group else {}
    for driver in fleet.driver_ids:
        yield {"driver_id": driver, "email": f"{driver}@example.com", **NAMES, **dates, **of_group}


def _trips(fleet: Fleet, dates: Iterable[datetime.date]) -> Iterator[Line]:
    """Yield the trips of the dates in the order of the dates, as an upstream system would send them."""
    slot = (LAST_END_SECOND - FIRST_START_SECOND) // fleet.trips_a_day
    for date in dates:
        midnight = int(datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp())
        for driver in fleet.driver_ids:
            for number in range(fleet.trips_a_day):
                identifier = trip_id(driver, date, number)
                rng = random.Random(identifier)
                start = midnight + FIRST_START_SECOND + number * slot + rng.randrange(int(slot * START_SHARE))
                seconds = min(int(slot * TRIP_SHARE), LONGEST_TRIP_SECONDS)
                trip = _trip(rng, start * 1000, seconds, fleet.points[date])
                yield {"trip_id": identifier, "tracking_id": None, "driver_id": driver, **trip}


def _trip(rng: random.Random, start: int, seconds: int, points: int) -> Line:
    trail = _trail(rng, start, seconds * 1000 // points, points)
    events = [_event(rng, trail) for _ in range(rng.choice((0, 0, 1, 2, 3, 5)))]
    counts = Counter(event["event_name"] for event in events)
    miles = round(seconds / 3600 * rng.uniform(15, 50), 6)
    return {
        "trip_start_time": start,
        "trip_end_time": start + seconds * 1000,
        "duration_seconds": seconds,
        "distance_miles": miles,
        "insurance_period": rng.choice((None, 1, 2, 3)),
        **_position("start", trail[0]),
        **_position("end", trail[-1]),
        "night_driving_seconds": rng.choice((0, 0, 0, 0, seconds // 3)),
        "highway_miles": round(miles * rng.random(), 6),
        "night_driving_miles": 0.0,
        "event_summary": {
            **{f"{name.lower()}_count": counts[name] for name in EVENT_NAMES.values()},
            "phone_use_time_seconds": 12 * counts["PHONE_USE"],
            "overspeeding_time_seconds": 30 * counts["OVERSPEEDING"],
        },
        "focus_area": {f"is_{name.lower()}": counts[name] > 1 for name in EVENT_NAMES.values()},
        "trail_path": trail,
        "events": events,
    }


def _trail(rng: random.Random, start: int, step_ms: int, points: int) -> list[Line]:
    """Return points of a winding road, with the digits and the noise of a phone's positions."""
    latitude, longitude, turn = rng.uniform(30, 48), rng.uniform(-120, -75), rng.uniform(0.01, 0.05)
    return [
        {
            "timestamp": start + number * step_ms,
            "latitude": round(latitude + 0.1 * math.sin(number * turn) + 0.0001 * rng.random(), 6),
            "longitude": round(longitude + 0.0008 * number + 0.0001 * rng.random(), 6),
            "course": round(90 - 60 * math.cos(number * turn) + 10 * rng.random(), 1),
        }
        for number in range(points)
    ]


def _event(rng: random.Random, trail: list[Line]) -> Line:
    number, name = rng.choice(list(EVENT_NAMES.items()))
    begin = rng.randrange(len(trail))
    first, last = trail[begin], trail[min(begin + 3, len(trail) - 1)]
    return {
        "event_type": number,
        "event_name": name,
        **_position("event_start", first, "timestamp"),
        **_position("event_end", last, "timestamp"),
        "event_data": dict.fromkeys(SPEEDS, 61.2) if number == OVERSPEEDING else {},
    }


def _position(name: str, point: Line, *more: str) -> Line:
    return {f"{name}_{key}": point[key] for key in ("latitude", "longitude", *more)}
