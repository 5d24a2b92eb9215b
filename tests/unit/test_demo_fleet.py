"""The demonstration fleet: what its trips say of themselves is what a reader measures on their trails."""

import collections
import datetime as dt
import itertools
import json
import math
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from schemas.trip import ImportedTrip
from scripts.demo.fleet import make_drivers, make_trips

# It takes seconds to make the trips of a fleet.
pytestmark = pytest.mark.large

# A trip is under way: it began at 21:23.
NOW = dt.datetime(2026, 11, 18, 21, 25, tzinfo=dt.UTC)
NOW_MS, DAY_MS = int(NOW.timestamp() * 1000), 86_400_000


class Step(NamedTuple):
    """From one trail point to the next."""

    start: int
    end: int
    miles: float
    mph: float


def measure(trip):
    """Return the steps of a trail."""
    steps = []
    for a, b in itertools.pairwise(trip["trail_path"]):
        north, east = b["latitude"] - a["latitude"], b["longitude"] - a["longitude"]
        miles = math.hypot(north, east * math.cos(math.radians(a["latitude"]))) * 69.09
        ms = b["timestamp"] - a["timestamp"]
        steps.append(Step(a["timestamp"], b["timestamp"], miles, miles / ms * 3_600_000))
    return steps


@pytest.fixture(scope="module")
def trips():
    return make_trips(NOW)


@pytest.fixture(scope="module")
def steps(trips):
    """The steps of each trip's trail, by trip_id."""
    return {trip["trip_id"]: measure(trip) for trip in trips}


def test_one_of_twenty_drivers_has_no_name_and_another_one_no_trips(trips):
    drivers = make_drivers(NOW.date())
    ids = [driver["driver_id"] for driver in drivers]
    assert ids == [f"demo-{number:02}" for number in range(1, 21)]
    assert [driver["driver_id"] for driver in drivers if driver["first_name"] is driver["email"] is None] == ["demo-06"]
    assert set(ids) - {trip["driver_id"] for trip in trips} == {"demo-20"}


def test_trips_fill_eight_weeks_up_to_now_and_no_driver_drives_two_at_once(trips):
    assert 900 <= len({trip["trip_id"] for trip in trips}) == len(trips) <= 1300
    starts, ends = [trip["trip_start_time"] for trip in trips], {}
    assert starts == sorted(starts)
    assert (NOW_MS // DAY_MS - starts[0] // DAY_MS, NOW_MS // DAY_MS - starts[-1] // DAY_MS) == (55, 0)
    for trip in trips:
        assert ends.get(trip["driver_id"], 0) < trip["trip_start_time"] < trip["trip_end_time"] <= NOW_MS
        ends[trip["driver_id"]] = trip["trip_end_time"]


def test_a_trip_can_be_imported_and_its_totals_are_those_of_its_trail_and_events(trips, steps):
    schema = ImportedTrip()
    for trip in trips:
        assert schema.validate(trip) == {}
        miles = sum(step.miles for step in steps[trip["trip_id"]])
        assert trip["distance_miles"] == pytest.approx(miles, rel=0.002)
        assert trip["duration_seconds"] == round((trip["trip_end_time"] - trip["trip_start_time"]) / 1000)
        assert (trip["night_driving_miles"] > 0) == (trip["night_driving_seconds"] > 0)
        totals = collections.Counter()
        for event in trip["events"]:
            name, ms = event["event_name"].lower(), event["event_end_timestamp"] - event["event_start_timestamp"]
            totals.update({f"{name}_count": 1, f"{name}_time_seconds": round(ms / 1000)})
        assert trip["event_summary"] == {name: totals[name] for name in trip["event_summary"]}


def test_highway_miles_are_those_on_fast_roads(trips, steps):
    fast = sum(step.miles for own in steps.values() for step in own if step.mph > 55)
    # On a motorway, traffic slows some cars down.
    assert sum(trip["highway_miles"] for trip in trips) == pytest.approx(fast, rel=0.05)


def test_speeds_and_their_changes_are_those_of_a_car(trips, steps):
    for own in steps.values():
        assert max(step.mph for step in own) < 90
        for a, b in itertools.pairwise(own):
            assert -7 < (b.mph - a.mph) * 894 / (b.end - a.start) < 5  # m/s2
    speeds = sorted(trip["distance_miles"] / trip["duration_seconds"] * 3600 for trip in trips)
    assert 20 < speeds[len(speeds) // 2] < 40
    assert sum(trip["highway_miles"] for trip in trips) > 500
    assert sum(trip["night_driving_seconds"] > 0 for trip in trips) > 50


def is_shown(event, steps):
    """Return whether a trail has the speeds of an event: over the limit, or that change by more than 8 mph."""
    begin, end = event["event_start_timestamp"], event["event_end_timestamp"]
    if event["event_name"] == "OVERSPEEDING":
        within = [step.mph for step in steps if begin <= step.start and step.end <= end]
        return event["event_data"]["speed_limit_mph"] + 4.5 < min(within)
    touching = [step.mph for step in steps if begin <= step.end and step.start <= end]
    sign = -1 if event["event_name"] == "HARD_BRAKE" else 1
    return max(sign * (b - a) for a, b in itertools.combinations(touching, 2)) > 8


@pytest.mark.parametrize("name", ["HARD_BRAKE", "RAPID_ACCELERATION", "OVERSPEEDING", "PHONE_USE"])
def test_the_trail_shows_each_event_from_one_of_its_points_to_another(trips, steps, name):
    found = [(trip, event) for trip in trips for event in trip["events"] if event["event_name"] == name]
    assert len(found) > 100
    for trip, event in found:
        start, end = tuple(event.values())[2:5], tuple(event.values())[5:8]
        assert {start, end} <= {tuple(point.values())[:3] for point in trip["trail_path"]}
        assert name == "PHONE_USE" or is_shown(event, steps[trip["trip_id"]]), event


def test_on_the_next_day_another_process_repeats_the_days_still_in_the_window(trips):
    code = "import datetime, json, sys; from scripts.demo.fleet import make_trips; "
    code += "print(json.dumps(make_trips(datetime.datetime.fromisoformat(sys.argv[1]))))"
    command = [sys.executable, "-c", code, (NOW + dt.timedelta(days=1)).isoformat()]
    made = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True, check=True)
    by_id = {trip["trip_id"]: trip for trip in trips}
    repeated = [trip for trip in json.loads(made.stdout) if trip == by_id.get(trip["trip_id"])]
    assert len(repeated) > 0.95 * len(trips)
