"""driver-analytics import: what it says of trips and files that are valid but not plausible."""

import pytest

from tests.factories import days_ago, epoch_ms, make_event, make_event_summary, make_point, make_trip

START = epoch_ms(days_ago(7))
MINUTE, DAY_MS = 60_000, 86_400_000
DECADE = 3_653 * DAY_MS


def make_timed(start_ms=START, seconds=600, **fields):
    """Return a trip of so many seconds; its times and duration agree unless a field replaces one."""
    end_ms = start_ms + 1000 * seconds
    times = {"trip_start_time": start_ms, "trip_end_time": end_ms, "duration_seconds": seconds}
    trail = [make_point(start_ms), make_point(end_ms)]
    return make_trip(**{"distance_miles": 5.0, "trail_path": trail} | times | fields)


def make_speeding(start_ms=START, **event_data):
    """Return a trip with an event of overspeeding."""
    speeds = {"user_speed_mph": 80.0, "speed_limit_mph": 65.0, "max_user_speed_mph": 82.0} | event_data
    event = make_event(
        start_ms, event_type=9, event_name="OVERSPEEDING", event_end_timestamp=start_ms, event_data=speeds
    )
    return make_timed(events=[event], event_summary=make_event_summary(overspeeding_count=1))


def make_counted(count, **fields):
    """Return a trip whose event summary counts so many hard brakes."""
    return make_timed(
        events=[make_event(START)] * count, event_summary=make_event_summary(hard_brake_count=count), **fields
    )


# For each kind, trips that are of this kind alone, and trips that are just plausible.
KINDS = {
    "a mean speed over 150 mph": (
        [make_timed(START, 3600, distance_miles=150.1), make_timed(START, 0, distance_miles=0.1)],
        [make_timed(START, 3600, distance_miles=150.0), make_timed(START, 0, distance_miles=0.0)],
    ),
    "phone, overspeeding, night or highway parts longer than the trip": (
        [
            make_timed(event_summary=make_event_summary(phone_use_time_seconds=600.1)),
            make_timed(event_summary=make_event_summary(overspeeding_time_seconds=601)),
            make_timed(night_driving_seconds=601),
            make_timed(distance_miles=0.3, highway_miles=0.31),
            make_timed(night_driving_miles=5.1),
        ],
        [
            make_timed(event_summary=make_event_summary(phone_use_time_seconds=600)),
            make_timed(distance_miles=0.3, highway_miles=0.1 + 0.2),
            make_timed(START, 1000, event_summary=make_event_summary(phone_use_time_seconds=1000.001)),
        ],
    ),
    "more than one event in 5 seconds": (
        [make_counted(3, seconds=14, distance_miles=0.1), make_counted(1, seconds=0, distance_miles=0.0)],
        [make_counted(3, seconds=15, distance_miles=0.1)],
    ),
    "a trip_start_time more than ten years ago": (
        [make_timed(START - DECADE)],
        [make_timed(START - DECADE + 30 * DAY_MS)],
    ),
    "trail points out of order of time": (
        [make_timed(trail_path=[make_point(START + 1), make_point(START)])],
        [make_timed(trail_path=[make_point(START), make_point(START)])],
    ),
    "trail points outside the time of the trip": (
        [make_timed(trail_path=[make_point(START - MINUTE - 1)])],
        [make_timed(trail_path=[make_point(START - MINUTE)])],
    ),
    "an event outside the time of the trip": (
        [make_speeding(START + 11 * MINUTE + 1)],
        [make_speeding(START + 11 * MINUTE)],
    ),
    "a position of exactly 0, 0": (
        [
            make_timed(trail_path=[{**make_point(START), "latitude": 0.0, "longitude": 0}]),
            make_timed(end_latitude=0, end_longitude=0.0),
        ],
        [make_timed(start_latitude=0.0)],
    ),
    "a speed limit of 0 or less or over 100 mph, or a speed over 200 mph": (
        [
            make_speeding(speed_limit_mph=0),
            make_speeding(speed_limit_mph=101),
            make_speeding(max_user_speed_mph=201),
        ],
        [make_speeding(speed_limit_mph=100, max_user_speed_mph=200)],
    ),
    "a max_user_speed_mph below user_speed_mph": (
        [make_speeding(max_user_speed_mph=79.9)],
        [make_speeding(max_user_speed_mph=80.0)],
    ),
    "counts of event_summary that differ from the events": (
        [make_timed(event_summary=make_event_summary(hard_brake_count=1)), make_speeding() | {"events": []}],
        [make_counted(2)],
    ),
    "times that overlap those of another trip": (
        [make_timed(START + 9 * MINUTE - 1)],
        [make_timed(START + 9 * MINUTE), make_timed(START + 5 * MINUTE, 59, distance_miles=0.5)],
    ),
    "a duration_seconds that differs": (
        [make_timed(duration_seconds=661), make_timed(START, 7200, duration_seconds=6479)],
        [make_timed(START, 100, duration_seconds=160), make_timed(START, 7200, duration_seconds=6480)],
    ),
}


@pytest.fixture
def import_trips(command, write_lines):
    """Import lines as trips; return what standard error says."""
    return lambda *lines: command("import", "--fleet", "f1", "--trips", str(write_lines("in.ndjson", *lines))).stderr


def of_drivers(trips):
    """Return the trips, each of another driver."""
    return [{**trip, "trip_id": f"t{n}", "driver_id": f"d{n}"} for n, trip in enumerate(trips)]


@pytest.mark.parametrize("kind", KINDS)
def test_trips_of_each_kind_are_loaded_and_counted_and_plausible_ones_only_loaded(import_trips, mongod, kind):
    doubtful, plausible = KINDS[kind]
    trips = of_drivers([*plausible, *doubtful])
    if "overlap" in kind:
        trips += [
            {**make_timed(), "trip_id": f"first {trip['driver_id']}", "driver_id": trip["driver_id"]} for trip in trips
        ]
    said = import_trips(*trips)
    (line,) = [line for line in said.splitlines() if "loaded, but" in line]
    assert line.startswith(f"in.ndjson: {len(doubtful)} loaded, but with {kind}")
    assert line.endswith(f"The first: line {len(plausible) + 1}")
    assert mongod.trips.count_documents({}) == len(trips)


def test_a_trip_after_midnight_overlaps_one_of_the_day_before_that_is_stored(import_trips):
    midnight = epoch_ms(days_ago(7, "00:00"))
    import_trips(make_timed(midnight - MINUTE, 1200))
    assert "overlap" in import_trips(make_timed(midnight + MINUTE))


def test_a_new_fleet_is_named_once(import_trips):
    assert "f1: a new fleet\n" in import_trips(make_timed())
    assert import_trips(make_timed(START + DAY_MS)) == ""


def test_a_fleet_of_which_nothing_was_loaded_is_not_named(import_trips):
    assert "a new fleet" not in import_trips("{}")
