"""driver-analytics import: what it says of trips and files that are valid but not plausible."""

import pytest

from tests.factories import days_ago, epoch_ms, make_driver, make_event_summary, make_point, make_trip


def make_timed(start_ms, seconds=600, **fields):
    """Return a trip of so many seconds; its times and duration agree unless a field replaces one."""
    times = {"trip_start_time": start_ms, "trip_end_time": start_ms + int(1000 * seconds), "duration_seconds": seconds}
    return make_trip(days_ago(3), **{"distance_miles": 5.0} | times | fields)


LAST_WEEK = epoch_ms(days_ago(7))
KINDS = {
    "a trip_start_time before the year 2000": (
        make_timed(946_684_799_999),
        make_timed(946_684_800_000),
    ),
    "phone, overspeeding or night seconds longer than the trip": (
        make_timed(LAST_WEEK, event_summary=make_event_summary(phone_use_time_seconds=600.1)),
        make_timed(LAST_WEEK, event_summary=make_event_summary(phone_use_time_seconds=600)),
    ),
    "highway or night miles longer than the trip": (
        make_timed(LAST_WEEK, distance_miles=0.3, highway_miles=0.31),
        make_timed(LAST_WEEK, distance_miles=0.3, highway_miles=0.1 + 0.2),
    ),
    "trail points out of order of time": (
        make_timed(LAST_WEEK, trail_path=[make_point(LAST_WEEK + 1), make_point(LAST_WEEK)]),
        make_timed(LAST_WEEK, trail_path=[make_point(LAST_WEEK), make_point(LAST_WEEK)]),
    ),
    "a mean speed over 150 mph": (
        make_timed(LAST_WEEK, 3600, distance_miles=150.1),
        make_timed(LAST_WEEK, 3600, distance_miles=150.0),
    ),
    "a duration_seconds that differs": (
        make_timed(LAST_WEEK, duration_seconds=661),
        make_timed(LAST_WEEK, 100, duration_seconds=160),
    ),
}


@pytest.fixture
def import_trips(command, write_lines):
    """Import lines as trips; return what standard error says."""
    return lambda *lines: command("import", "--fleet", "f1", "--trips", str(write_lines("in.ndjson", *lines))).stderr


@pytest.mark.parametrize("kind", KINDS)
def test_trips_that_are_not_plausible_are_loaded_and_counted(import_trips, mongod, kind):
    doubtful, plausible = KINDS[kind]
    said = import_trips(*({**trip, "trip_id": str(n)} for n, trip in enumerate([plausible, doubtful, doubtful])))
    (line,) = [line for line in said.splitlines() if "loaded, but" in line]
    assert line.startswith(f"in.ndjson: 2 loaded, but with {kind}")
    assert line.endswith("The first: line 2")
    assert mongod.trips.count_documents({}) == 3


def test_a_distance_without_a_duration_is_too_fast(import_trips):
    assert "a mean speed over 150 mph" in import_trips(make_timed(LAST_WEEK, 0, distance_miles=500.0))


def test_a_long_trip_may_leave_out_a_tenth_in_stops(import_trips):
    assert "differs" not in import_trips(make_timed(LAST_WEEK, 7200, duration_seconds=6480))
    assert "a duration_seconds that differs" in import_trips(make_timed(LAST_WEEK, 7200, duration_seconds=6479))


@pytest.mark.parametrize("name", ["night_driving_seconds", "overspeeding_time_seconds", "night_driving_miles"])
def test_each_part_of_a_trip_is_compared_with_the_whole(import_trips, name):
    trip = make_timed(LAST_WEEK)
    within = trip if name in trip else trip["event_summary"]
    within[name] = 601
    assert f"{name.partition('_')[0]} " in import_trips(trip)


def test_drivers_given_as_trips_are_recognized(import_trips):
    assert "in.ndjson: these look like drivers. Give the file as --drivers." in import_trips(make_driver("d1"))


def test_a_new_fleet_is_named_once(import_trips):
    assert "f1: a new fleet\n" in import_trips(make_timed(LAST_WEEK))
    assert import_trips(make_timed(LAST_WEEK)) == ""


def test_a_fleet_of_which_nothing_was_loaded_is_not_named(import_trips):
    assert "a new fleet" not in import_trips("{}")
