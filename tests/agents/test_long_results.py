"""Results that would be too long: they are cut, and say what was left out."""

import json

import pytest

from scripts.mcp_server.results import MAX_CHARACTERS
from scripts.mongodb.memory_store import memory_client
from tests.factories import make_driver, make_event, make_event_summary, make_trip
from tests.store_contents import load

pytestmark = pytest.mark.large

COUNT = 60
LONG = "\U0001f600" * 29
DRIVERS = [
    make_driver(f"{number:03}{LONG}", first_name=LONG * 9, last_name=LONG, alias=LONG) for number in range(COUNT)
]
FIRST, FIRST_TRIP = DRIVERS[0]["driver_id"], f"010{LONG}"
SCORED = make_event_summary(
    phone_use_count=9,
    phone_use_time_seconds=99.5,
    overspeeding_count=9,
    overspeeding_time_seconds=99.5,
    hard_brake_count=3,
)
CUT = {"find_drivers", "who_needs_coaching", "list_trips", "describe_trip"}
REQUESTS = [
    ("find_drivers", {"limit": 50}),
    ("driver_summary", {"driver_id": FIRST}),
    ("compare_drivers", {"driver_ids": [FIRST]}),
    ("explain_score", {"driver_id": FIRST}),
    ("who_needs_coaching", {"limit": 50}),
    ("list_trips", {"driver_id": FIRST, "limit": 50}),
    ("describe_trip", {"trip_id": FIRST_TRIP}),
]


@pytest.fixture(scope="module")
def db():
    """Sixty drivers with the longest identifiers and names, and many trips of the first one."""
    db = memory_client()["long"]
    each = [
        make_trip(f"2026-03-0{day}T08:00", driver["driver_id"], event_summary=SCORED)
        for driver in DRIVERS
        for day in (2, 9)
    ]
    many = [
        make_trip(f"2026-03-10T{hour:02}:{minute}", FIRST, trip_id=f"{hour}{minute}{LONG}")
        for hour in range(9)
        for minute in range(10, 16)
    ]
    many[0]["events"] = [make_event(1_773_100_000_000)] * 200
    load(db, *each, *many, drivers=DRIVERS)
    return db


@pytest.mark.parametrize(("tool", "arguments"), REQUESTS)
def test_no_result_is_longer_than_its_limit(call, tool, arguments):
    data, text = call(tool, **arguments)
    assert max(len(text), len(json.dumps(data))) < MAX_CHARACTERS
    assert tool not in CUT or data["more"] > 0


@pytest.mark.parametrize("text", ["", "\U0001f600"])
def test_a_list_of_drivers_that_was_cut_goes_on_after_the_last_one_shown(call, text):
    skip, found = 0, []
    while skip is not None:
        data, _ = call("find_drivers", text=text, limit=50, skip=skip)
        assert len(found) + len(data["drivers"]) + data["more"] == COUNT
        found += [driver["driver_id"] for driver in data["drivers"]]
        skip = data["next_skip"]
    assert found == [driver["driver_id"] for driver in DRIVERS]


def test_rows_that_are_left_out_are_counted(call):
    data, _ = call("who_needs_coaching", limit=50)
    assert len(data["drivers"]) + data["more"] == data["ranked_driver_count"] == COUNT
