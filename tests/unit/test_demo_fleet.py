"""The demonstration fleet: what its trips say of themselves is what a reader measures on their trails."""

import collections
import datetime as dt
import itertools
import math

import pytest

from schemas.trip import ImportedTrip
from scripts.demo.fleet import make_drivers, make_trips

# It takes seconds to make the trips of a fleet.
pytestmark = pytest.mark.large

# A trip is under way: it began at 21:23.
NOW = dt.datetime(2026, 11, 18, 21, 25, tzinfo=dt.UTC)
NOW_MS, DAY_MS = int(NOW.timestamp() * 1000), 86_400_000


def measure(trail):
    """Return the length of a trail in miles."""
    miles = 0.0
    for a, b in itertools.pairwise(trail):
        north, east = b["latitude"] - a["latitude"], b["longitude"] - a["longitude"]
        miles += math.hypot(north, east * math.cos(math.radians(a["latitude"]))) * 69.09
    return miles


@pytest.fixture(scope="module")
def trips():
    return make_trips(NOW)


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


def test_a_trip_can_be_imported_and_its_totals_are_those_of_its_trail_and_events(trips):
    schema = ImportedTrip()
    for trip in trips:
        assert schema.validate(trip) == {}
        assert trip["distance_miles"] == pytest.approx(measure(trip["trail_path"]), rel=0.002)
        assert trip["duration_seconds"] == round((trip["trip_end_time"] - trip["trip_start_time"]) / 1000)
        assert (trip["night_driving_miles"] > 0) == (trip["night_driving_seconds"] > 0)
        totals = collections.Counter()
        for event in trip["events"]:
            name, ms = event["event_name"].lower(), event["event_end_timestamp"] - event["event_start_timestamp"]
            totals.update({f"{name}_count": 1, f"{name}_time_seconds": round(ms / 1000)})
        assert trip["event_summary"] == {name: totals[name] for name in trip["event_summary"]}
