"""The fleets that are loaded: made-up drivers and trips, the same ones each time but for their dates.

Dates count back from today, whose newest trip ended yesterday before 18:00 UTC: so a trip is old enough to be served at
any hour, and recent enough to be asked for.
"""

import datetime
import gzip
import io
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from app.store import Document
from app.store.score import compute_focus_area

DAYS = 60
# Trails are kept whole for two weeks, and thinned out after.
RECENT_DAYS = 14
DRIVES_FROM, DRIVES_UNTIL = 4 * 3600, 18 * 3600  # seconds of the day
LONGEST_TRIP_SECONDS = 3000
MS = 1000
# Level 1 costs less than what it saves in writing.
GZIP_LEVEL = 1
PROGRESS_LINES = 1000
NOISE_RADIANS = 0.2

FIRST_NAMES = ("Amina", "Benjamin", "Chiara", "Daniel", "Elif", "Farah", "Grace", "Hugo", "Ingrid", "João")
LAST_NAMES = ("Yusuf", "Clarke", "Rossi", "Okafor", "Demir", "Haddad", "Kim", "Martínez", "Larsen", "Silva")
EVENTS = ((1, "RAPID_ACCELERATION"), (2, "HARD_BRAKE"), (7, "PHONE_USE"), (9, "OVERSPEEDING"))


class Shape(NamedTuple):
    """How many of what: `points` of a trail in the newest 14 days, `old_points` before; `tracked` groups all trips of
    a driver under one tracking_id."""

    drivers: int = 200
    days: int = DAYS
    trips_a_day: int = 4
    points: int = 600
    old_points: int = 60
    tracked: bool = False


def today() -> datetime.date:
    """Return the UTC date."""
    return datetime.datetime.now(datetime.UTC).date()


def driver_id(number: int) -> str:
    """Return the id of a driver, numbered from 0; ids sort as their numbers do."""
    return f"driver-{number:06d}"


def trip_id(driver: int, date: datetime.date, number: int) -> str:
    """Return the id of the driver's trip of that number, from 0, on the date."""
    return f"{driver_id(driver)}-{date:%Y%m%d}-{number}"


def drivers(count: int, first_date: str | None = None, last_date: str | None = None) -> Iterator[Document]:
    """Yield the lines of a drivers file, all with the same travel dates."""
    for number in range(count):
        first, last = FIRST_NAMES[number % 10], LAST_NAMES[number // 10 % 10]
        yield {
            "driver_id": driver_id(number),
            "first_name": first,
            "last_name": last,
            "email": f"{first}.{last}.{number}@example.com".lower(),
            "alias": None if number % 3 else f"Van {number}",
            "first_travel_date": first_date,
            "last_travel_date": last_date,
        }


def day_trips(shape: Shape, driver: int, age: int, base: datetime.date) -> Iterator[Document]:
    """Yield the lines of one driver's day, `age` days before the date `base`."""
    date = base - datetime.timedelta(age)
    rng = random.Random(f"{driver}:{age}")
    slot = (DRIVES_UNTIL - DRIVES_FROM) / shape.trips_a_day
    midnight = datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp()
    points = shape.points if age <= RECENT_DAYS else shape.old_points
    for number in range(shape.trips_a_day):
        seconds = int(min(slot * 0.8, LONGEST_TRIP_SECONDS))
        start = (int(midnight) + DRIVES_FROM + int(slot * number) + rng.randrange(int(slot * 0.2) or 1)) * MS
        yield _trip(rng, driver, trip_id(driver, date, number), start, seconds, points, tracked=shape.tracked)


def trips(shape: Shape, base: datetime.date, ages: range | None = None) -> Iterator[Document]:
    """Yield the lines of a trips file, a day after the other, as upstream would send them; only days of these ages."""
    for age in ages or range(shape.days, 0, -1):
        for driver in range(shape.drivers):
            yield from day_trips(shape, driver, age, base)


def _trip(
    rng: random.Random, driver: int, trip: str, start: int, seconds: int, points: int, *, tracked: bool
) -> Document:
    trail = _trail(rng, start, seconds * MS // max(1, points - 1), points)
    first, last = trail[0], trail[-1]
    events = [_event(rng, trail) for _ in range(rng.choice((0, 0, 1, 2, 3, 5)))]
    seen = Counter(event["event_name"] for event in events)
    miles = round(seconds / 3600 * rng.uniform(15, 50), 6)
    made = {
        "trip_id": trip,
        "tracking_id": driver_id(driver) if tracked else None,
        "driver_id": driver_id(driver),
        "trip_start_time": start,
        "trip_end_time": start + seconds * MS,
        "duration_seconds": seconds,
        "distance_miles": miles,
        "insurance_period": rng.choice((None, 1, 2, 3)),
        "start_latitude": first["latitude"],
        "start_longitude": first["longitude"],
        "end_latitude": last["latitude"],
        "end_longitude": last["longitude"],
        "night_driving_seconds": rng.randrange(seconds) if rng.random() < 0.2 else 0,
        "highway_miles": round(miles * rng.random(), 6),
        "night_driving_miles": 0.0,
        "event_summary": {
            "phone_use_count": seen["PHONE_USE"],
            "rapid_acceleration_count": seen["RAPID_ACCELERATION"],
            "hard_brake_count": seen["HARD_BRAKE"],
            "overspeeding_count": seen["OVERSPEEDING"],
            "phone_use_time_seconds": 12 * seen["PHONE_USE"],
            "overspeeding_time_seconds": 30 * seen["OVERSPEEDING"],
        },
        "trail_path": trail,
        "events": events,
    }
    return {**made, "focus_area": compute_focus_area(made)}


def _trail(rng: random.Random, start: int, step_ms: int, points: int) -> list[Document]:
    """Return points along two waves: a road, with as many digits and as much noise as a phone sends."""
    latitude, longitude = rng.uniform(30, 48), rng.uniform(-120, -75)
    turn, phase = rng.uniform(0.01, 0.05), rng.uniform(0, math.tau)
    trail = []
    for number in range(points):
        heading = phase + math.sin(number * turn) * 2 + rng.random() * NOISE_RADIANS
        latitude += math.cos(heading) * 0.0006
        longitude += math.sin(heading) * 0.0008
        trail.append(
            {
                "timestamp": start + number * step_ms,
                "latitude": round(latitude, 6),
                "longitude": round(longitude, 6),
                "course": round(math.degrees(heading) % 360, 1),
            }
        )
    return trail


def _event(rng: random.Random, trail: list[Document]) -> Document:
    number, name = rng.choice(EVENTS)
    begin = rng.randrange(len(trail))
    first, last = trail[begin], trail[min(begin + 3, len(trail) - 1)]
    speeds = {"user_speed_mph": 61.2, "speed_limit_mph": 55, "max_user_speed_mph": 68.4}
    return {
        "event_type": number,
        "event_name": name,
        "event_start_timestamp": first["timestamp"],
        "event_end_timestamp": last["timestamp"],
        "event_start_latitude": first["latitude"],
        "event_start_longitude": first["longitude"],
        "event_end_latitude": last["latitude"],
        "event_end_longitude": last["longitude"],
        "event_data": speeds if name == "OVERSPEEDING" else {},
    }


def write(path: Path, lines: Iterable[Document], progress: Callable[[int], None] = lambda count: None) -> int:
    """Write NDJSON, gzip, and return the number of lines, which it tells every now and then too."""
    count = 0
    with gzip.open(path, "wb", compresslevel=GZIP_LEVEL) as file, io.BufferedWriter(file, 1 << 20) as buffer:
        for count, line in enumerate(lines, 1):
            buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            if count % PROGRESS_LINES == 0:
                progress(count)
    return count
