"""The demonstration fleet: made-up drivers, and the trips that they drive on the roads of a made-up town.

The town stands on open farmland in Kansas: streets (25 mph), arterials (35 and 45 mph), a motorway ring (65 mph), a
suburb reached by motorway, an airport. A trip is the fastest route between two places, driven with a speed profile
(limits, turns, stops, the driver's style) and sampled to a trail: a point every 5 s, one at each end of a turn, and one
every second around sharp changes of speed. Every figure of a trip is then measured on its rounded trail, as a reader of
the trail would measure it:

- distance: haversine between trail points; speed: that distance over the time between the two points;
- course: bearing towards the next point; while standing, the last one;
- highway: driven above 55 mph; night: steps that begin between 22:00 and 05:00 in local solar time of the town;
- HARD_BRAKE and RAPID_ACCELERATION: speed changes beyond -3.5 and +3.0 m/s2 from one step of 1 s to the next;
- OVERSPEEDING: at least 10 s at more than 5 mph above the limit; PHONE_USE: stretches between two trail points.

Days go round in a ring of 56 slots (8 weeks): a calendar day always has the same slot, and the slot decides ids and
content. A fleet loaded again on another day so repeats the days still in the window and replaces the ones that left it.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import functools
import heapq
import itertools
import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from schemas.trip import EVENT_TYPES

FLEET = "demo"
DAYS = 56  # a multiple of 7, so that a slot always falls on the same weekday

LATITUDE, LONGITUDE = 38.84, -97.5  # degrees, the town's centre
SOLAR_OFFSET_SECONDS = int(LONGITUDE * 240)  # local solar time minus UTC: the sun takes 240 s a degree
EARTH_RADIUS_METERS = 6_371_008.8  # mean radius, IUGG
METERS_PER_MILE = 1609.344
MPS_PER_MPH = METERS_PER_MILE / 3600

SAMPLE_SECONDS = 5
HARD_BRAKE_MPS2, RAPID_ACCELERATION_MPS2 = -3.5, 3.0
OVERSPEEDING_MARGIN_MPH, OVERSPEEDING_MIN_SECONDS = 5, 10
HIGHWAY_MPH = 55
MAX_SPEED_MPH = 85  # the fastest that anybody of the fleet drives
TURN_MPS2 = 2.4  # comfortable sideways acceleration
SHARP_TURN = math.radians(35)  # less is a bend of the road, taken at speed

Point = tuple[float, float]  # metres east and north of the town's centre
Node = tuple[str, int, int]  # kind and numbers
Roads = dict[Node, dict[Node, tuple[int, float]]]  # limit (mph) and cost (s) of the road between two nodes
Event = tuple[int, int, int, dict[str, float]]  # type, first and last index in the trail, event_data


class Profile(NamedTuple):
    """A driver: who, what for and how (pace as a share of the limit, phone as a share of the time)."""

    name: str | None
    alias: str | None
    role: str | None  # None: never drives
    home: str = "town"
    joined: str | None = None  # month and day of the previous year
    pace: float = 1
    phone: float = 0
    brakes: float = 0  # per 100 miles
    accelerations: float = 0  # per 100 miles


PROFILES = (
    Profile("Amina Yusuf", None, "commuter", "suburb", "02-17", 0.97, 0.004, 1, 1),
    Profile("Benjamin Clarke", "Ben", "commuter", "suburb", None, 1.08, 0.02, 4, 3),
    Profile("Chiara Rossi", None, "commuter", "town", "05-02", 1.01, 0.03, 6, 4),
    Profile("Daniel Okafor", "Van 1", "courier", "town", None, 1.05, 0.02, 12, 10),
    Profile("Elif Demir", "Van 2", "courier", "town", "09-11", 0.98, 0.003, 2, 2),
    Profile(None, None, "commuter", "town", None, 1.0, 0.12, 9, 6),
    Profile("Grace Kim", "Cab 1", "day cab", "town", None, 1.03, 0.035, 6, 6),
    Profile("Hugo Martínez", "Cab 2", "night cab", "town", None, 1.12, 0.08, 16, 14),
    Profile("Ingrid Larsen", None, "night nurse", "suburb", "03-04", 0.97, 0, 2, 1),
    Profile("Jamal Washington", "Night desk", "night guard", "town", None, 1.07, 0.05, 9, 8),
    Profile("Keiko Tanaka", "Service 1", "technician", "town", "06-23", 1.02, 0.04, 5, 5),
    Profile("Liam O'Connor", "Service 2", "technician", "suburb", None, 1.1, 0.1, 14, 14),
    Profile("Mei Chen", "Cab 3", "day cab", "town", None, 0.98, 0.01, 2, 3),
    Profile("Noah Schmidt", None, "private", "town", None, 1.14, 0.12, 16, 18),
    Profile("Olga Petrova", None, "private", "town", "01-15", 0.95, 0, 1, 0),
    Profile("Priya Raman", "PR", "commuter", "town", None, 1.11, 0.11, 11, 9),
    Profile("Quentin Dubois", None, "private", "suburb", None, 1.07, 0.05, 8, 10),
    Profile("Rosa Silva", None, "private", "town", None, 1.04, 0.03, 5, 8),
    Profile("Samuel Nguyen", "Sam", "commuter", "town", "08-30", 1.06, 0.06, 12, 10),
    Profile("Thandiwe Mbeki", None, None),
)
CHANCES = {  # of driving on a weekday, and on a day of the weekend
    "commuter": (0.72, 0.3),
    "courier": (0.42, 0.12),
    "day cab": (0.25, 0.12),
    "night cab": (0.25, 0.35),
    "night guard": (0.55, 0.35),
    "night nurse": (0.45, 0.45),
    "private": (0.25, 0.3),
    "technician": (0.45, 0),
}


def make_drivers(today: dt.date) -> list[dict[str, Any]]:
    """Return the fleet's drivers as lines of a drivers file, by driver_id.

    Some have a first_travel_date in the year before `today`; all other travel dates are left to the trips.
    """
    drivers = []
    for number, profile in enumerate(PROFILES, start=1):
        first, last = profile.name.split(" ") if profile.name else (None, None)
        address = profile.name and profile.name.lower().replace(" ", ".").replace("'", "").replace("í", "i")
        drivers.append(
            {
                "driver_id": f"{FLEET}-{number:02d}",
                "first_name": first,
                "last_name": last,
                "email": address and f"{address}@example.com",
                "alias": profile.alias,
                "first_travel_date": profile.joined and f"{today.year - 1}-{profile.joined}",
                "last_travel_date": None,
            }
        )
    return drivers


def make_trips(now: dt.datetime) -> Iterator[dict[str, Any]]:
    """Yield the trips of the 8 weeks up to `now` (aware, UTC) as lines of a trips file, by (trip_start_time, trip_id).

    No trip ends after `now`. There are about 1,200 trips with 110 trail points each.
    """
    drives = [_driver_trips(number, profile, now) for number, profile in enumerate(PROFILES, start=1) if profile.role]
    return heapq.merge(*drives, key=lambda trip: (trip["trip_start_time"], trip["trip_id"]))


def _driver_trips(number: int, profile: Profile, now: dt.datetime) -> Iterator[dict[str, Any]]:
    """Yield one driver's trips of the days up to `now`, oldest first."""
    driver_id, now_second = f"{FLEET}-{number:02d}", int(now.timestamp())
    today = (now_second + SOLAR_OFFSET_SECONDS) // 86_400  # local solar days since the epoch
    for day in range(today - DAYS + 1, today + 1):
        slot, free_second = day % DAYS, 0
        for leg_number, leg in enumerate(_plan_day(number, profile, slot), start=1):
            planned_second = day * 86_400 - SOLAR_OFFSET_SECONDS + int(leg.hour * 3600)
            trip_id = f"{driver_id}-{slot:02d}-{leg_number}"
            trip = _make_trip(trip_id, driver_id, profile, leg, max(planned_second, free_second))
            if trip["trip_end_time"] > now_second * 1000:
                return
            yield trip
            free_second = trip["trip_end_time"] // 1000 + 240  # nobody drives two trips at once


def _rng(*seed: object) -> random.Random:
    """Return a generator that a seed determines in every process (a str seed is not hashed with a salt)."""
    return random.Random("/".join(map(str, seed)))


class Leg(NamedTuple):
    """A planned trip: from where to where, not before this local hour (above 24: after midnight)."""

    hour: float
    origin: Node
    destination: Node
    tracking_id: str | None = None
    insurance_period: int | None = None


def _plan_day(number: int, profile: Profile, slot: int) -> list[Leg]:
    """Return what a driver does on a slot's day, in order."""
    rng, role, places = _rng("day", number, slot), profile.role or "", _town().places
    weekend = (slot + 3) % 7 >= 5  # day 0 of the epoch was a Thursday
    if rng.random() > CHANCES[role][weekend]:
        return []
    home, work = places[profile.home][number - 1], _rng("work", number).choice(places["office"])
    name = f"{number:02d}-{slot:02d}"
    if role == "courier":
        stops = rng.sample(places["site"], rng.randint(2, 6))
        chain, hour = [*places["depot"], *stops, *places["depot"]], rng.uniform(8, 10)
        round_legs = [Leg(hour + 0.4 * i, a, b, f"round-{name}") for i, (a, b) in enumerate(itertools.pairwise(chain))]
        return [Leg(hour - 0.7, home, chain[0]), *round_legs]
    if role == "technician":
        # The way home belongs to the last job.
        sites, hour = rng.sample(places["site"], rng.randint(2, 3)), rng.uniform(8, 9.5)
        jobs = [f"job-{name}-{min(i, len(sites) - 1)}" for i in range(len(sites) + 1)]
        drives = itertools.pairwise([home, *sites, home])
        return [Leg(hour + 1.7 * i, *drive, job) for i, (drive, job) in enumerate(zip(drives, jobs, strict=True))]
    if role in ("day cab", "night cab"):
        # Insurance periods of ride hailing: 1 waiting for a call, 2 on the way to the passenger, 3 with the passenger.
        goals = [*places["site"], *places["office"], *places["airport"]]
        hour = rng.uniform(9, 13) if role == "day cab" else rng.uniform(20, 22)
        here = rng.choice(places["office"])
        legs = [Leg(hour, home, here, None, 1)]
        for ride in range(1, rng.randint(3, 4)):
            pickup, goal = rng.sample([place for place in goals if place != here], 2)
            legs.append(Leg(hour + 0.9 * ride, here, pickup, f"ride-{name}-{ride}", 2))
            legs.append(Leg(hour + 0.9 * ride, pickup, goal, f"ride-{name}-{ride}", 3))
            here = goal
        return [*legs, Leg(hour + 4, here, home, None, 1)]
    if role in ("night guard", "night nurse"):
        return [Leg(rng.uniform(21.6, 22.6), home, work), Leg(rng.uniform(28.2, 29.3), work, home)]
    if role == "commuter" and not weekend:
        shop, hour = rng.choice(places["site"]), rng.uniform(16.3, 17.8)
        way_home = [Leg(hour, work, home)]
        if rng.random() < 0.3:
            way_home = [Leg(hour, work, shop), Leg(hour + 0.8, shop, home)]
        return [Leg(rng.uniform(7, 8.5), home, work), *way_home]
    goal, hour = rng.choice([*places["site"], *places["office"], *places["airport"]]), rng.uniform(9.5, 18)
    return [Leg(hour, home, goal), Leg(hour + rng.uniform(1, 3), goal, home)]


def _make_trip(trip_id: str, driver_id: str, profile: Profile, leg: Leg, start_second: int) -> dict[str, Any]:
    """Return the trip of a leg that starts at `start_second` (epoch), every figure measured on its trail."""
    rng, route = _rng(trip_id), _route(leg.origin, leg.destination)
    fixes = _sample(route, _drive(route, profile, rng), (rng.gauss(0, 2.5), rng.gauss(0, 2.5)))
    steps = list(itertools.pairwise(fixes))
    seconds = [b.second - a.second for a, b in steps]
    miles = [_haversine_meters(a, b) / METERS_PER_MILE for a, b in steps]
    mph = [m / s * 3600 for m, s in zip(miles, seconds, strict=True)]
    night = [not 5 <= (start_second + SOLAR_OFFSET_SECONDS + a.second) / 3600 % 24 < 22 for a, _ in steps]
    trail: list[dict[str, float]] = []
    course = 0.0
    for a, b in [*steps, (fixes[-1], fixes[-1])]:
        course = _bearing(a, b) if a[1:3] != b[1:3] else course
        timestamp = (start_second + a.second) * 1000
        trail.append({"timestamp": timestamp, "latitude": a.latitude, "longitude": a.longitude, "course": course})
    events = _find_sharp_changes(seconds, mph) + _find_overspeeding(fixes, miles, mph)
    events += _make_phone_use(fixes, profile.phone, rng)
    events.sort(key=lambda event: event[1:3])
    summary = _summarize(events, fixes)
    duration_seconds, distance_miles = fixes[-1].second, round(math.fsum(miles), 6)
    return {
        "trip_id": trip_id,
        "tracking_id": leg.tracking_id,
        "driver_id": driver_id,
        "trip_start_time": trail[0]["timestamp"],
        "trip_end_time": trail[-1]["timestamp"],
        "duration_seconds": duration_seconds,
        "distance_miles": distance_miles,
        "insurance_period": leg.insurance_period,
        "start_latitude": fixes[0].latitude,
        "start_longitude": fixes[0].longitude,
        "end_latitude": fixes[-1].latitude,
        "end_longitude": fixes[-1].longitude,
        "night_driving_seconds": sum(itertools.compress(seconds, night)),
        "highway_miles": round(math.fsum(m for m, v in zip(miles, mph, strict=True) if v > HIGHWAY_MPH), 6),
        "night_driving_miles": round(math.fsum(itertools.compress(miles, night)), 6),
        "event_summary": summary,
        "trail_path": trail,
        "events": [
            {
                "event_type": event_type,
                "event_name": EVENT_TYPES[event_type][0],
                "event_start_timestamp": trail[i]["timestamp"],
                "event_end_timestamp": trail[j]["timestamp"],
                "event_start_latitude": trail[i]["latitude"],
                "event_start_longitude": trail[i]["longitude"],
                "event_end_latitude": trail[j]["latitude"],
                "event_end_longitude": trail[j]["longitude"],
                "event_data": data,
            }
            for event_type, i, j, data in events
        ],
    }


def _haversine_meters(a: Fix, b: Fix) -> float:
    lat_a, lat_b = math.radians(a.latitude), math.radians(b.latitude)
    half_lat, half_lon = (lat_b - lat_a) / 2, math.radians(b.longitude - a.longitude) / 2
    h = math.sin(half_lat) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(half_lon) ** 2
    return 2 * EARTH_RADIUS_METERS * math.asin(math.sqrt(h))


def _bearing(a: Fix, b: Fix) -> float:
    """Return the direction from a to b in degrees from North, [0, 360), to one decimal."""
    lat_a, lat_b, lon = math.radians(a.latitude), math.radians(b.latitude), math.radians(b.longitude - a.longitude)
    north = math.cos(lat_a) * math.sin(lat_b) - math.sin(lat_a) * math.cos(lat_b) * math.cos(lon)
    return round(math.degrees(math.atan2(math.sin(lon) * math.cos(lat_b), north)), 1) % 360


def _find_sharp_changes(seconds: list[int], mph: list[float]) -> list[Event]:
    """Return the runs of 1 s steps between which the speed falls, or rises, beyond the threshold."""
    events: list[Event] = []
    for i in range(1, len(mph)):
        if seconds[i - 1] != 1 or seconds[i] != 1:
            continue
        mps2 = (mph[i] - mph[i - 1]) * MPS_PER_MPH
        event_type = 2 if mps2 < HARD_BRAKE_MPS2 else 1 if mps2 > RAPID_ACCELERATION_MPS2 else 0
        if event_type and events and events[-1][0] == event_type and events[-1][2] >= i:
            events[-1] = (event_type, events[-1][1], i + 1, {})
        elif event_type:
            events.append((event_type, i - 1, i + 1, {}))
    return events


def _find_overspeeding(fixes: list[Fix], miles: list[float], mph: list[float]) -> list[Event]:
    """Return the runs of steps on roads of one limit that are all above it by the margin, with the trail's speeds."""
    events: list[Event] = []
    limits = [max(a.limit_mph, b.limit_mph) for a, b in itertools.pairwise(fixes)]
    keys = [(limit, speed > limit + OVERSPEEDING_MARGIN_MPH) for limit, speed in zip(limits, mph, strict=True)]
    end = 0
    for (limit, is_over), run in itertools.groupby(keys):
        begin, end = end, end + len(list(run))
        seconds = fixes[end].second - fixes[begin].second
        if is_over and seconds >= OVERSPEEDING_MIN_SECONDS:
            data = {
                "user_speed_mph": round(sum(miles[begin:end]) / seconds * 3600, 1),  # the mean
                "speed_limit_mph": limit,
                "max_user_speed_mph": round(max(mph[begin:end]), 1),
            }
            events.append((9, begin, end, data))
    return events


def _make_phone_use(fixes: list[Fix], share: float, rng: random.Random) -> list[Event]:
    """Return stretches without overlap that take about this share of the trip's time."""
    events: list[Event] = []
    wanted = share * fixes[-1].second * rng.uniform(0.4, 1.6)
    while wanted > 0:
        length = rng.uniform(8, 50)
        if rng.random() > wanted / length:
            break  # what is left is shorter than the stretch: take it at times only, so that the mean is right
        wanted -= length
        begin = rng.randrange(len(fixes))
        end = next((i for i, fix in enumerate(fixes) if fix.second >= fixes[begin].second + length), begin)
        if begin < end and all(end <= i or j <= begin for _, i, j, _ in events):
            events.append((7, begin, end, {}))
    return events


def _summarize(events: list[Event], fixes: list[Fix]) -> dict[str, int]:
    """Return the EventSummary of a trip's events."""
    counts, seconds = collections.Counter[int](), collections.Counter[int]()
    for event_type, i, j, _ in events:
        counts[event_type] += 1
        seconds[event_type] += fixes[j].second - fixes[i].second
    return {
        "phone_use_count": counts[7],
        "rapid_acceleration_count": counts[1],
        "hard_brake_count": counts[2],
        "overspeeding_count": counts[9],
        "phone_use_time_seconds": seconds[7],
        "overspeeding_time_seconds": seconds[9],
    }


@dataclasses.dataclass(slots=True)
class Knot:
    """A point of a drive; between two of them the acceleration is constant. Times in seconds from the start."""

    meters: float
    limit_mph: int  # from here on
    mps: float
    plain: bool = False  # neither stop nor turn
    dwell_seconds: float = 0
    braking_mps2: float = 1.9  # towards the next knot, at most
    acceleration_mps2: float = 1.5
    arrival: float = 0
    departure: float = 0


class Fix(NamedTuple):
    """A sample of a drive: seconds from its start, rounded degrees, and the road's limit there."""

    second: int
    latitude: float
    longitude: float
    limit_mph: int


def _drive(route: Route, profile: Profile, rng: random.Random) -> list[Knot]:
    """Return how a driver drives the route: speeds that keep to limits, turns, stops and comfortable accelerations."""
    pace, wander, limit = profile.pace * rng.uniform(0.96, 1.04), 0.0, route.marks[0].limit_mph
    knots = []
    for mark in route.marks:
        wander = 0.9 * wander + rng.gauss(0, 0.02)
        cruise_mph = min(min(limit, mark.limit_mph) * pace * (1 + wander), MAX_SPEED_MPH)
        limit = mark.limit_mph
        knot = Knot(mark.meters, limit, min(cruise_mph * MPS_PER_MPH, mark.turn_mps), mark.turn_mps == math.inf)
        if mark.stop_chance > rng.random():
            knot.mps, knot.plain = 0, False
            knot.dwell_seconds = rng.uniform(1, 4) if mark.stop_chance == 1 else rng.uniform(4, 50)
        knots.append(knot)
    for knot in (knots[0], knots[-1]):
        knot.mps, knot.plain = 0, False
    _add_incidents(knots, profile, rng)
    for here, ahead in reversed(list(itertools.pairwise(knots))):
        here.mps = min(here.mps, math.sqrt(ahead.mps**2 + 2 * here.braking_mps2 * (ahead.meters - here.meters)))
    for here, ahead in itertools.pairwise(knots):
        meters = ahead.meters - here.meters
        ahead.mps = min(ahead.mps, math.sqrt(here.mps**2 + 2 * here.acceleration_mps2 * meters))
        ahead.arrival = here.departure + 2 * meters / (here.mps + ahead.mps)
        ahead.departure = ahead.arrival + ahead.dwell_seconds
    return knots


def _add_incidents(knots: list[Knot], profile: Profile, rng: random.Random) -> None:
    """Put hard brakes into steady driving and rapid accelerations after stops, at the driver's rates."""
    hundred_miles = knots[-1].meters / METERS_PER_MILE / 100
    for _ in range(int(profile.brakes * hundred_miles + rng.random())):
        steady = [i for i in range(2, len(knots)) if knots[i].mps > 9 and all(k.plain for k in knots[i - 2 : i + 2])]
        if steady:
            i = rng.choice(steady)
            knots[i].braking_mps2 = rng.uniform(4.3, 5.6)
            _put_knot(knots, i, knots[i].mps * rng.uniform(0.25, 0.4), knots[i].braking_mps2)
    for _ in range(int(profile.accelerations * hundred_miles + rng.random())):
        starts = [i for i, (here, ahead) in enumerate(itertools.pairwise(knots)) if here.mps == 0 and ahead.mps > 8]
        if starts:
            i = rng.choice(starts)
            knots[i].acceleration_mps2 = rng.uniform(3.4, 4)
            _put_knot(knots, i, min(rng.uniform(8.5, 11), knots[i + 1].mps), knots[i].acceleration_mps2)


def _put_knot(knots: list[Knot], i: int, mps: float, mps2: float) -> None:
    """Put a knot of speed `mps` where the car gets to at `mps2` from knot i, if there is no turn or stop before."""
    meters = knots[i].meters + abs(mps**2 - knots[i].mps ** 2) / (2 * mps2)
    j = i + 1
    while knots[j].plain and knots[j].meters <= meters:
        j += 1
    if knots[j].meters > meters:
        knots[i + 1 : j] = [Knot(meters, knots[j - 1].limit_mph, mps)]


def _sample(route: Route, knots: list[Knot], shift: Point) -> list[Fix]:
    """Return the trail of a drive, moved by `shift` metres (a receiver is never quite right)."""
    last = math.ceil(knots[-1].arrival)
    seconds = {*range(0, last, SAMPLE_SECONDS), last}
    for here, ahead in itertools.pairwise(knots):
        if not here.plain:
            seconds.add(round(here.arrival))
        if abs(here.mps - ahead.mps) > 2.5 * (ahead.arrival - here.departure):
            seconds.update(range(max(0, int(here.departure) - 2), min(last, int(ahead.arrival) + 4)))
    north_degrees = math.degrees(1 / EARTH_RADIUS_METERS)  # a metre
    east_degrees = north_degrees / math.cos(math.radians(LATITUDE))
    fixes, k, p = [], 0, 0
    for second in sorted(seconds):
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
        latitude = LATITUDE + (y0 + (y1 - y0) * share + shift[1]) * north_degrees
        longitude = LONGITUDE + (x0 + (x1 - x0) * share + shift[0]) * east_degrees
        fixes.append(Fix(second, round(latitude, 6), round(longitude, 6), here.limit_mph))
    return fixes


class Mark(NamedTuple):
    """A point of a route where the speed may change: distance (m), limit from here on, speed of the turn there."""

    meters: float
    limit_mph: int
    turn_mps: float = math.inf
    stop_chance: float = 0


class Route(NamedTuple):
    """The line to drive, as (metres from the start, east, north), and its marks, about every 50 m."""

    line: list[tuple[float, float, float]]
    marks: list[Mark]


@functools.cache
def _route(origin: Node, destination: Node) -> Route:
    """Return the fastest route between two places, its corners rounded to arcs."""
    town, before = _town(), _ways_from(origin)
    nodes = [destination]
    while nodes[-1] != origin:
        nodes.append(before[nodes[-1]])
    nodes.reverse()
    points = [town.nodes[node] for node in nodes]
    limits = [town.roads[a][b][0] for a, b in itertools.pairwise(nodes)]
    line, marks = [(0.0, *points[0])], [Mark(0, limits[0])]

    def go_to(x: float, y: float) -> float:
        meters = line[-1][0] + math.dist(line[-1][1:], (x, y))
        line.append((meters, x, y))
        return meters

    def go_straight(x: float, y: float, limit_mph: int) -> float:
        begin = line[-1][0]
        meters = go_to(x, y) - begin
        pieces = max(3, round(meters / 50))  # three, so that the car moves between two stops
        marks.extend(Mark(begin + meters * piece / pieces, limit_mph) for piece in range(1, pieces))
        return begin + meters

    for k, (a, b, c) in enumerate(zip(points, points[1:], points[2:], strict=False)):
        length, next_length, fastest = math.dist(a, b), math.dist(b, c), max(limits[k : k + 2])
        along = ((b[0] - a[0]) / length, (b[1] - a[1]) / length)
        onward = ((c[0] - b[0]) / next_length, (c[1] - b[1]) / next_length)
        cross, dot = along[0] * onward[1] - along[1] * onward[0], along[0] * onward[0] + along[1] * onward[1]
        angle = abs(math.atan2(cross, dot))
        if is_turn := angle > SHARP_TURN:
            radius = 120 if fastest == 65 else 12
        else:
            radius = 1_500 if fastest == 65 else 300 if fastest > 25 else 60
        cut = min(radius * math.tan(angle / 2), 0.45 * length, 0.45 * next_length)
        end = go_straight(b[0] - along[0] * cut, b[1] - along[1] * cut, limits[k])
        if stop_chance := _stop_chance(town.roads, nodes[k + 1], limits[k], limits[k + 1]):
            marks[-1] = Mark(max(end - 8, marks[-1].meters), limits[k], stop_chance=stop_chance)
        turn_mps = math.sqrt(TURN_MPS2 * cut / math.tan(angle / 2)) if is_turn else math.inf
        if is_turn:
            marks.append(Mark(end, limits[k], turn_mps))
        for share in (0.25, 0.5, 0.75, 1) if cut > 0.5 else ():
            back, ahead = cut * (1 - share) ** 2, cut * share**2  # a quadratic Bezier curve around the node
            end = go_to(b[0] - along[0] * back + onward[0] * ahead, b[1] - along[1] * back + onward[1] * ahead)
        marks.append(Mark(end, limits[k + 1], turn_mps))
    marks.append(Mark(go_straight(*points[-1], limits[-1]), limits[-1]))
    return Route(line, marks)


def _stop_chance(roads: Roads, node: Node, limit_in: int, limit_out: int) -> float:
    """Return the chance of a stop before a junction: traffic lights where arterials meet, stop signs at their sides."""
    if node[0] != "ring" and sum(limit in (35, 45) for limit, _ in roads[node].values()) >= 3:
        return 0.45
    return 1 if limit_in == 25 < limit_out else 0


def _came_from(roads: Roads, origin: Node) -> dict[Node, Node]:
    """Return for each node that can be reached the node before it on the fastest way from `origin` (Dijkstra)."""
    before, costs, queue = {origin: origin}, {origin: 0.0}, [(0.0, origin)]
    while queue:
        cost, node = heapq.heappop(queue)
        if cost > costs[node]:
            continue
        for other, (_, seconds) in roads[node].items():
            if cost + seconds < costs.get(other, math.inf):
                costs[other], before[other] = cost + seconds, node
                heapq.heappush(queue, (cost + seconds, other))
    return before


@functools.cache
def _ways_from(origin: Node) -> dict[Node, Node]:
    return _came_from(_town().roads, origin)


class Town(NamedTuple):
    """The road network: where each node is, the roads, and the places that people drive to."""

    nodes: dict[Node, Point]
    roads: Roads
    places: dict[str, list[Node]]

    def add_road(self, a: Node, b: Node, limit_mph: int, dislike: float = 1) -> None:
        """Join two nodes in both directions; drivers avoid a road of a high `dislike`."""
        seconds = math.dist(self.nodes[a], self.nodes[b]) / (limit_mph * MPS_PER_MPH)
        cost = seconds * dislike + (4 if limit_mph == 25 else 0)  # junctions slow the small streets
        self.roads.setdefault(a, {})[b] = self.roads.setdefault(b, {})[a] = (limit_mph, cost)

    def add_curve(self, start: Node, end: Node, limit_mph: int) -> None:
        """Join two nodes by an S-shaped road with a node about every 280 m."""
        (x0, y0), (x1, y1) = self.nodes[start], self.nodes[end]
        steps = round(abs(x1 - x0) / 280)
        chain = [start, *((f"to {end[0]}", step, 0) for step in range(1, steps)), end]
        for step in range(1, steps):
            share = step / steps
            self.nodes[chain[step]] = (x0 + (x1 - x0) * share, y0 + (y1 - y0) * (1 - math.cos(math.pi * share)) / 2)
        for a, b in itertools.pairwise(chain):
            self.add_road(a, b, limit_mph)

    def add_grid(self, kind: str, center: Point, half: int, block: float, rng: random.Random) -> None:
        """Add a slightly irregular grid of streets of `block` metres; every fifth line is an arterial."""
        lines = range(-half, half + 1)
        dislike = {(axis, line): rng.uniform(0.9, 1.2) for axis in "xy" for line in lines}  # equal streets: zigzag
        for i, j in itertools.product(lines, lines):
            x, y = center[0] + i * block, center[1] + j * block
            is_street, in_lake = i % 5 and j % 5, math.hypot(x + 1_500, y - 2_450) < 480
            if abs(i) + abs(j) > 1.6 * half or (is_street and (in_lake or math.hypot(i, j) > 1.05 * half)):
                continue
            x += 90 * math.sin(y / 1_150 + 0.6) + rng.gauss(0, 11 if is_street else 0)
            y += 70 * math.sin(x / 950 - 0.4) + rng.gauss(0, 11 if is_street else 0)
            self.nodes[kind, i, j] = (x, y)
        for i, j in itertools.product(lines, lines):
            for other, axis, line in (((kind, i + 1, j), "y", j), ((kind, i, j + 1), "x", i)):
                if (kind, i, j) not in self.nodes or other not in self.nodes:
                    continue
                if line % 5 == 0:
                    self.add_road((kind, i, j), other, 35 if max(abs(i), abs(j)) <= 10 else 45)
                elif rng.random() < 0.8:
                    self.add_road((kind, i, j), other, 25, dislike[axis, line])

    def add_places(self, kind: str, count: int, center: Point, reach_meters: float, rng: random.Random) -> None:
        """Put `count` places around `center`, each in the middle of a block of a street of its own."""
        reached = _came_from(self.roads, ("grid", 0, 0))
        streets = [
            (a, b)
            for a in reached
            for b, (limit, _) in self.roads[a].items()
            if limit == 25 and a[0] == b[0] and a < b and math.dist(self.nodes[a], center) < reach_meters
        ]
        for number, (a, b) in enumerate(rng.sample(streets, count)):
            place, share = (f"{kind} place", number, 0), rng.uniform(0.35, 0.65)
            (ax, ay), (bx, by) = self.nodes[a], self.nodes[b]
            self.nodes[place] = (ax + (bx - ax) * share, ay + (by - ay) * share)
            del self.roads[a][b], self.roads[b][a]
            self.add_road(a, place, 25)
            self.add_road(place, b, 25)
            self.places.setdefault(kind, []).append(place)


@functools.cache
def _town() -> Town:
    """Return the town, always the same one."""
    town, rng = Town({}, {}, {}), _rng("town")
    town.add_grid("grid", (0, 0), 20, 200, rng)
    town.add_grid("village", (14_300, 2_600), 4, 180, rng)
    ring: list[Node] = [("ring", degree, 0) for degree in range(0, 360, 3)]
    for node in ring:
        angle = math.radians(node[1])
        radius = 5_200 * (abs(math.cos(angle)) ** 3 + abs(math.sin(angle)) ** 3) ** (-1 / 3)  # a rounded square
        radius *= 1 + 0.04 * math.sin(3 * angle + 1)
        town.nodes[node] = (radius * math.cos(angle), radius * math.sin(angle))
    for a, b in itertools.pairwise([*ring, ring[0]]):
        town.add_road(a, b, 65)
    for i, j in itertools.product((-20, -10, 0, 10, 20), repeat=2):
        if (abs(i) == 20) != (abs(j) == 20):  # where an arterial leaves the town
            gate = town.nodes["grid", i, j]
            town.add_road(("grid", i, j), min(ring, key=lambda node: math.dist(town.nodes[node], gate)), 45)
    town.add_curve(("ring", 9, 0), ("village", -4, 0), 65)
    town.nodes["airport", 0, 0] = (-9_300, -2_900)
    town.add_curve(("ring", 195, 0), ("airport", 0, 0), 45)
    town.places["airport"] = [("airport", 0, 0)]
    town.add_places("town", len(PROFILES), (0, 0), 4_500, rng)
    town.add_places("suburb", len(PROFILES), (14_300, 2_600), 1_000, rng)
    town.add_places("office", 8, (0, 0), 1_800, rng)
    town.add_places("site", 26, (0, 0), 4_500, rng)
    town.add_places("depot", 1, (3_000, -2_500), 500, rng)
    return town
