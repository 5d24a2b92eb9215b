"""The fleets of the benchmark: generated drivers and trips, which differ only in their dates from day to day.

The newest trips ended yesterday before 18:00 UTC. So all trips are visible at any hour of today, and none is too old to
request.
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
# Trails are complete for two weeks, and have fewer points before.
RECENT_DAYS = 14
FIRST_START_SECOND, LAST_END_SECOND = 4 * 3600, 18 * 3600  # of the UTC day
LONGEST_TRIP_SECONDS = 3000
MS = 1000
# The lowest level: a higher one takes more time than it saves in writing.
GZIP_LEVEL = 1
PROGRESS_LINES = 1000
NOISE_RADIANS = 0.2

FIRST_NAMES = ("Amina", "Benjamin", "Chiara", "Daniel", "Elif", "Farah", "Grace", "Hugo", "Ingrid", "João")
LAST_NAMES = ("Yusuf", "Clarke", "Rossi", "Okafor", "Demir", "Haddad", "Kim", "Martínez", "Larsen", "Silva")
EVENTS = ((1, "RAPID_ACCELERATION"), (2, "HARD_BRAKE"), (7, "PHONE_USE"), (9, "OVERSPEEDING"))


class Shape(NamedTuple):
    """The size of a fleet.

    A trail has `points` in the newest 14 days, and `old_points` before. With `tracked`, all trips of a driver have the
    same tracking_id.
    """

    drivers: int = 200
    days: int = DAYS
    trips_a_day: int = 4
    points: int = 600
    old_points: int = 60
    tracked: bool = False


def today() -> datetime.date:
    """Return today's UTC date."""
    return datetime.datetime.now(datetime.UTC).date()


def driver_id(number: int) -> str:
    """Return the driver_id of a driver, by number from 0. The ids have the order of the numbers."""
    return f"driver-{number:06d}"


def trip_id(driver: int, date: datetime.date, number: int) -> str:
    """Return the trip_id of a driver's trip on a date, by number from 0."""
    return f"{driver_id(driver)}-{date:%Y%m%d}-{number}"


def drivers(count: int, first_date: str | None = None, last_date: str | None = None) -> Iterator[Document]:
    """Yield drivers (schema Driver), all with the same travel dates."""
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
    """Yield the trips (schema ImportedTrip) of a driver on the day that is `age` days before the date `base`."""
    date = base - datetime.timedelta(age)
    rng = random.Random(f"{driver}:{age}")
    slot = (LAST_END_SECOND - FIRST_START_SECOND) / shape.trips_a_day
    midnight = datetime.datetime.combine(date, datetime.time(), datetime.UTC).timestamp()
    points = shape.points if age <= RECENT_DAYS else shape.old_points
    for number in range(shape.trips_a_day):
        seconds = int(min(slot * 0.8, LONGEST_TRIP_SECONDS))
        start = (int(midnight) + FIRST_START_SECOND + int(slot * number) + rng.randrange(int(slot * 0.2) or 1)) * MS
        yield _trip(rng, driver, trip_id(driver, date, number), start, seconds, points, tracked=shape.tracked)


def trips(shape: Shape, base: datetime.date, ages: range | None = None) -> Iterator[Document]:
    """Yield the trips of the days of these ages, in the order of days, as an upstream system would send them."""
    for age in ages or range(shape.days, 0, -1):
        for driver in range(shape.drivers):
            yield from day_trips(shape, driver, age, base)


def _trip(
    rng: random.Random, driver: int, trip: str, start: int, seconds: int, points: int, *, tracked: bool
) -> Document:
    trail = _trail(rng, start, seconds * MS // max(1, points - 1), points)
    first, last = trail[0], trail[-1]
    events = [_event(rng, trail) for _ in range(rng.choice((0, 0, 1, 2, 3, 5)))]
    counts = Counter(event["event_name"] for event in events)
    miles = round(seconds / 3600 * rng.uniform(15, 50), 6)
    trip_document = {
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
            "phone_use_count": counts["PHONE_USE"],
            "rapid_acceleration_count": counts["RAPID_ACCELERATION"],
            "hard_brake_count": counts["HARD_BRAKE"],
            "overspeeding_count": counts["OVERSPEEDING"],
            "phone_use_time_seconds": 12 * counts["PHONE_USE"],
            "overspeeding_time_seconds": 30 * counts["OVERSPEEDING"],
        },
        "trail_path": trail,
        "events": events,
    }
    return {**trip_document, "focus_area": compute_focus_area(trip_document)}


def _trail(rng: random.Random, start: int, step_ms: int, points: int) -> list[Document]:
    """Return points of a winding road, with the digits and the noise of a phone's positions."""
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
    """Write NDJSON, compressed with gzip. Returns the number of lines; calls `progress` with it every 1,000 lines."""
    count = 0
    with gzip.open(path, "wb", compresslevel=GZIP_LEVEL) as file, io.BufferedWriter(file, 1 << 20) as buffer:
        for count, line in enumerate(lines, 1):
            buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            if count % PROGRESS_LINES == 0:
                progress(count)
    return count
