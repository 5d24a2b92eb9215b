"""The demonstration fleet: what a trip says about itself can be measured again on its trail."""

import collections
import datetime as dt
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from scripts.demo import fleet as demo_fleet
from scripts.demo.geometry import LONGITUDE

NOW = dt.datetime(2026, 11, 18, 21, 30, tzinfo=dt.UTC)
DAY_MS = 86_400_000
METERS_PER_SECOND_TO_MPH = 3600 / 1609.344

Trip = dict[str, Any]


class Step(NamedTuple):
    """From one trail point to the next."""

    start: int
    end: int
    miles: float
    mph: float


def steps_of(trip: Trip) -> list[Step]:
    steps = []
    for a, b in itertools.pairwise(trip["trail_path"]):
        miles, seconds = haversine_miles(a, b), (b["timestamp"] - a["timestamp"]) / 1000
        steps.append(Step(a["timestamp"], b["timestamp"], miles, miles / seconds * 3600))
    return steps


def haversine_miles(a: Trip, b: Trip) -> float:
    lat_a, lat_b = math.radians(a["latitude"]), math.radians(b["latitude"])
    lon = math.radians(b["longitude"] - a["longitude"])
    h = math.sin((lat_b - lat_a) / 2) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(lon / 2) ** 2
    return 2 * 6_371_008.8 / 1609.344 * math.asin(math.sqrt(h))


def bearing(a: Trip, b: Trip) -> float:
    lat_a, lat_b = math.radians(a["latitude"]), math.radians(b["latitude"])
    lon = math.radians(b["longitude"] - a["longitude"])
    north = math.cos(lat_a) * math.sin(lat_b) - math.sin(lat_a) * math.cos(lat_b) * math.cos(lon)
    return math.degrees(math.atan2(math.sin(lon) * math.cos(lat_b), north)) % 360


def events_of(trips: list[Trip], event_type: int) -> list[tuple[Trip, list[Step]]]:
    """Return each event of a type with the steps of the trail from its start to its end."""
    return [
        (event, [s for s in steps if event["event_start_timestamp"] <= s.start < event["event_end_timestamp"]])
        for trip in trips
        if (steps := steps_of(trip))
        for event in trip["events"]
        if event["event_type"] == event_type
    ]


def is_night(timestamp: int) -> bool:
    return not 5 <= (timestamp / 3_600_000 + LONGITUDE / 15) % 24 < 22


@pytest.fixture(scope="module")
def trips() -> list[Trip]:
    return list(demo_fleet.make_trips(NOW))


@pytest.fixture(scope="module")
def next_trips() -> list[Trip]:
    return list(demo_fleet.make_trips(NOW + dt.timedelta(days=1)))


@pytest.fixture(scope="module")
def drivers() -> list[dict[str, Any]]:
    return demo_fleet.make_drivers(NOW.date())


def test_the_fleet_is_large_enough_to_look_at_and_small_enough_to_load(trips: list[Trip]) -> None:
    assert 900 <= len(trips) <= 1300
    assert 80_000 < sum(len(trip["trail_path"]) for trip in trips) < 150_000
    assert sum(len(json.dumps(trip)) for trip in trips) < 25_000_000


def test_trips_come_oldest_first_and_none_ends_after_now(trips: list[Trip]) -> None:
    starts = [trip["trip_start_time"] for trip in trips]
    assert starts == sorted(starts)
    assert max(trip["trip_end_time"] for trip in trips) <= NOW.timestamp() * 1000


def test_trips_cover_eight_weeks_up_to_today(trips: list[Trip]) -> None:
    today = int(NOW.timestamp() * 1000) // DAY_MS
    days = {trip["trip_start_time"] // DAY_MS for trip in trips}
    assert today in days
    assert today - 55 <= min(days) <= today - 53


def test_nobody_drives_two_trips_at_once(trips: list[Trip]) -> None:
    ends: dict[str, int] = {}
    for trip in trips:
        assert trip["trip_start_time"] > ends.get(trip["driver_id"], 0)
        ends[trip["driver_id"]] = trip["trip_end_time"]


def test_trip_ids_are_unique(trips: list[Trip]) -> None:
    assert len({trip["trip_id"] for trip in trips}) == len(trips)


def test_another_process_makes_the_same_trips(trips: list[Trip]) -> None:
    code = (
        "import datetime as dt, itertools, json; from scripts.demo.fleet import make_trips; "
        f"print(json.dumps(list(itertools.islice(make_trips(dt.datetime.fromisoformat('{NOW.isoformat()}')), 20))))"
    )
    env, root = {**os.environ, "PYTHONHASHSEED": "7"}, pathlib.Path(__file__).parents[2]
    response = subprocess.run([sys.executable, "-c", code], env=env, cwd=root, capture_output=True, check=True)
    assert json.loads(response.stdout) == trips[:20]


@pytest.mark.large
def test_the_next_day_repeats_the_days_still_in_the_window(trips: list[Trip], next_trips: list[Trip]) -> None:
    by_id = {trip["trip_id"]: trip for trip in trips}
    existing = [trip for trip in next_trips if trip["trip_id"] in by_id]
    repeated = [trip for trip in existing if trip == by_id[trip["trip_id"]]]
    assert len(repeated) > 0.95 * len(trips)
    moved = {trip["trip_start_time"] - by_id[trip["trip_id"]]["trip_start_time"] for trip in existing}
    assert moved <= {0, 56 * DAY_MS}


@pytest.mark.large
def test_the_next_day_adds_only_trips_that_were_cut_by_now(trips: list[Trip], next_trips: list[Trip]) -> None:
    existing = {trip["trip_id"] for trip in trips}
    added = [trip for trip in next_trips if trip["trip_id"] not in existing]
    assert all(trip["trip_end_time"] > NOW.timestamp() * 1000 for trip in added)
    assert all(trip["trip_start_time"] < (NOW + dt.timedelta(hours=9)).timestamp() * 1000 for trip in added)


def test_every_trip_is_of_a_known_driver_and_one_driver_has_none(trips: list[Trip], drivers: list[Trip]) -> None:
    ids = {driver["driver_id"] for driver in drivers}
    assert len(ids) == len(drivers) == 20
    assert len(ids - {trip["driver_id"] for trip in trips}) == 1
    assert {trip["driver_id"] for trip in trips} < ids


def test_a_driver_has_the_fields_of_the_contract_in_order(drivers: list[Trip]) -> None:
    fields = ["driver_id", "first_name", "last_name", "email", "alias", "first_travel_date", "last_travel_date"]
    assert all(list(driver) == fields for driver in drivers)
    assert [driver["driver_id"] for driver in drivers] == sorted(driver["driver_id"] for driver in drivers)


def test_one_driver_has_null_names_and_still_drives(trips: list[Trip], drivers: list[Trip]) -> None:
    fields = ("first_name", "last_name", "email", "alias")
    (nameless,) = [driver for driver in drivers if all(driver[field] is None for field in fields)]
    assert any(trip["driver_id"] == nameless["driver_id"] for trip in trips)


def test_first_travel_dates_are_dates_before_all_trips(trips: list[Trip], drivers: list[Trip]) -> None:
    given = [driver["first_travel_date"] for driver in drivers if driver["first_travel_date"]]
    oldest = dt.datetime.fromtimestamp(trips[0]["trip_start_time"] / 1000, dt.UTC).date()
    assert given
    assert all(dt.date.fromisoformat(date) < oldest for date in given)


def test_start_and_end_are_those_of_the_trail(trips: list[Trip]) -> None:
    for trip in trips:
        first, last = trip["trail_path"][0], trip["trail_path"][-1]
        assert (trip["trip_start_time"], trip["start_latitude"], trip["start_longitude"]) == tuple(first.values())[:3]
        assert (trip["trip_end_time"], trip["end_latitude"], trip["end_longitude"]) == tuple(last.values())[:3]
        assert trip["duration_seconds"] == (last["timestamp"] - first["timestamp"]) / 1000


def test_trail_times_increase_by_at_most_the_sampling_interval(trips: list[Trip]) -> None:
    for trip in trips:
        assert all(0 < step.end - step.start <= 5000 for step in steps_of(trip))


def test_distance_is_the_length_of_the_trail(trips: list[Trip]) -> None:
    for trip in trips:
        assert trip["distance_miles"] == pytest.approx(sum(step.miles for step in steps_of(trip)), abs=1e-6)


def test_highway_miles_are_those_above_55_mph(trips: list[Trip]) -> None:
    for trip in trips:
        fast = sum(step.miles for step in steps_of(trip) if step.mph > 55)
        assert trip["highway_miles"] == pytest.approx(fast, abs=1e-6)
    assert sum(trip["highway_miles"] for trip in trips) > 500


def test_night_driving_is_that_from_22_to_5_in_local_solar_time(trips: list[Trip]) -> None:
    for trip in trips:
        night = [step for step in steps_of(trip) if is_night(step.start)]
        assert trip["night_driving_seconds"] == sum(step.end - step.start for step in night) / 1000
        assert trip["night_driving_miles"] == pytest.approx(sum(step.miles for step in night), abs=1e-6)
        assert trip["night_driving_miles"] <= trip["distance_miles"]
    assert sum(trip["night_driving_seconds"] > 0 for trip in trips) > 50


def test_each_course_points_to_the_next_trail_point(trips: list[Trip]) -> None:
    for trip in trips:
        for a, b in itertools.pairwise(trip["trail_path"]):
            assert 0 <= a["course"] < 360
            if (a["latitude"], a["longitude"]) != (b["latitude"], b["longitude"]):
                assert abs((a["course"] - bearing(a, b) + 180) % 360 - 180) <= 0.051


def test_a_standing_car_keeps_its_course(trips: list[Trip]) -> None:
    for trip in trips:
        trail = trip["trail_path"]
        for a, b, c in zip(trail, trail[1:], trail[2:], strict=False):
            if (b["latitude"], b["longitude"]) == (c["latitude"], c["longitude"]):
                assert b["course"] == a["course"]
        assert trail[-1]["course"] == trail[-2]["course"]


def test_speeds_and_accelerations_are_those_of_a_car(trips: list[Trip]) -> None:
    for trip in trips:
        steps = steps_of(trip)
        assert max(step.mph for step in steps) < 90
        for a, b in itertools.pairwise(steps):
            mps2 = (b.mph - a.mph) / METERS_PER_SECOND_TO_MPH / ((b.end - a.start) / 2000)
            assert -7 < mps2 < 5


def test_mean_speeds_are_those_of_a_town(trips: list[Trip]) -> None:
    speeds = sorted(trip["distance_miles"] / trip["duration_seconds"] * 3600 for trip in trips)
    assert 20 < speeds[len(speeds) // 2] < 40


def test_all_four_event_types_occur_with_their_names(trips: list[Trip]) -> None:
    kinds = {(event["event_type"], event["event_name"]) for trip in trips for event in trip["events"]}
    assert kinds == {(1, "RAPID_ACCELERATION"), (2, "HARD_BRAKE"), (7, "PHONE_USE"), (9, "OVERSPEEDING")}


def test_events_start_and_end_on_the_trail(trips: list[Trip]) -> None:
    for trip in trips:
        points = {(p["timestamp"], p["latitude"], p["longitude"]) for p in trip["trail_path"]}
        for event in trip["events"]:
            start, end = (
                [event[f"event_{edge}_{x}"] for x in ("timestamp", "latitude", "longitude")]
                for edge in ("start", "end")
            )
            assert {tuple(start), tuple(end)} <= points
            assert start[0] < end[0]


def test_the_summary_counts_the_events(trips: list[Trip]) -> None:
    names = {1: "rapid_acceleration", 2: "hard_brake", 7: "phone_use", 9: "overspeeding"}
    for trip in trips:
        summary = dict.fromkeys(trip["event_summary"], 0.0)
        for event in trip["events"]:
            name = names[event["event_type"]]
            summary[f"{name}_count"] += 1
            if f"{name}_time_seconds" in summary:
                seconds = (event["event_end_timestamp"] - event["event_start_timestamp"]) / 1000
                summary[f"{name}_time_seconds"] += seconds
        assert trip["event_summary"] == summary


@pytest.mark.parametrize(("event_type", "sign", "threshold"), [(1, 1, 3.0), (2, -1, 3.5)])
def test_the_speed_changes_sharply_all_through_a_sharp_event(
    trips: list[Trip], event_type: int, sign: int, threshold: float
) -> None:
    for event, steps in events_of(trips, event_type):
        assert len(steps) >= 2
        assert event["event_end_timestamp"] - event["event_start_timestamp"] <= 6000
        changes = [(b.mph - a.mph) / METERS_PER_SECOND_TO_MPH for a, b in itertools.pairwise(steps)]
        assert all(sign * change > threshold for change in changes)


def test_overspeeding_is_above_the_limit_all_through(trips: list[Trip]) -> None:
    for event, steps in events_of(trips, 9):
        data = event["event_data"]
        hours = (event["event_end_timestamp"] - event["event_start_timestamp"]) / 3_600_000
        assert data["speed_limit_mph"] in (25, 35, 45, 65)
        assert min(step.mph for step in steps) > data["speed_limit_mph"] + 5
        assert data["user_speed_mph"] == pytest.approx(sum(step.miles for step in steps) / hours, abs=0.051)
        assert data["max_user_speed_mph"] == pytest.approx(max(step.mph for step in steps), abs=0.051)


@pytest.mark.parametrize("event_type", [7, 9])
def test_stretches_of_one_type_do_not_overlap(trips: list[Trip], event_type: int) -> None:
    for trip in trips:
        events = [event for event in trip["events"] if event["event_type"] == event_type]
        for a, b in itertools.pairwise(events):
            assert a["event_end_timestamp"] <= b["event_start_timestamp"]


def test_some_trips_share_a_tracking_id_over_two_pages(trips: list[Trip]) -> None:
    shared = collections.Counter(trip["tracking_id"] for trip in trips)
    assert max(count for tracking_id, count in shared.items() if tracking_id) > 5
    assert 1 in shared.values()
    assert shared[None] > 100


def test_the_client_page_names_a_trip_and_a_tracking_id_of_the_fleet(trips: list[Trip]) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    for name in ("trip_id", "tracking_id"):
        named = set(re.findall(rf"/trip/{name}/([\w-]+)", page))
        assert named
        assert named <= {trip[name] for trip in trips}


def test_insurance_periods_are_those_of_ride_hailing_drivers_only(trips: list[Trip]) -> None:
    periods = collections.defaultdict(set)
    for trip in trips:
        periods[trip["driver_id"]].add(trip["insurance_period"])
    assert {frozenset(values) for values in periods.values()} == {frozenset({None}), frozenset({1, 2, 3})}


def test_all_grades_occur_among_weekly_scores(trips: list[Trip]) -> None:
    weeks = collections.defaultdict(list)
    for trip in trips:
        monday = (trip["trip_start_time"] // DAY_MS + 3) // 7  # day 0 of the epoch was a Thursday
        weeks[trip["driver_id"], monday].append(trip)
    grades = collections.Counter(grade(week) for week in weeks.values())
    assert set(grades) == {"excellent", "good", "fair", "poor"}
    assert min(grades.values()) > 10


def grade(trips: list[Trip]) -> str:
    totals: collections.Counter[str] = collections.Counter()
    for trip in trips:
        totals.update({**trip["event_summary"], "miles": trip["distance_miles"], "seconds": trip["duration_seconds"]})
    lost = 35 * min(1, totals["phone_use_time_seconds"] / totals["seconds"] / 0.15)
    lost += 30 * min(1, totals["overspeeding_time_seconds"] / totals["seconds"] / 0.20)
    lost += 20 * min(1, totals["hard_brake_count"] / totals["miles"] * 100 / 20)
    lost += 15 * min(1, totals["rapid_acceleration_count"] / totals["miles"] * 100 / 20)
    return "excellent" if lost <= 15 else "good" if lost <= 30 else "fair" if lost <= 50 else "poor"
