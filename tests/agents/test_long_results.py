"""Results that would be too long: they are cut, and say what was left out."""

import pytest

from scripts.mongodb.memory_store import memory_client
from tests.agents.conftest import call_tool
from tests.factories import make_driver, make_event, make_event_summary, make_trip
from tests.store_contents import load

pytestmark = pytest.mark.large

MAX_CHARACTERS = 20_000
COUNT = 60
# 126 bytes that JSON without invisible characters spells with 378 characters.
LONG = "\u00ad" * 63
NAME = '"' * 60
DRIVERS = [make_driver(f"{number:02}{LONG}", first_name=NAME, last_name=NAME, alias=NAME) for number in range(COUNT)]
IDS = [driver["driver_id"] for driver in DRIVERS]
TRIP = f"10{LONG}"
SCORED = make_event_summary(
    phone_use_count=12345,
    phone_use_time_seconds=123.45,
    overspeeding_count=12345,
    overspeeding_time_seconds=123.45,
    hard_brake_count=12345,
    rapid_acceleration_count=12345,
)
REQUESTS = [
    ("find_drivers", {"page": 2}, {"count": COUNT, "next_page": 3}),
    ("find_drivers", {"search": "\u00ad", "page": 3}, {"count": COUNT, "next_page": None}),
    ("driver_summary", {"driver_id": IDS[0], "period": "month"}, {}),
    ("compare_drivers", {"driver_ids": IDS[:10], "start_date": "2026-03-02"}, {}),
    ("explain_score", {"driver_id": IDS[0], "start_date": "2025-09-18"}, {}),
    ("who_needs_coaching", {"limit": 10}, {"driver_count": COUNT, "left_out": COUNT - 10}),
    ("who_needs_coaching", {"order": "got_worse", "limit": 10}, {"compared_driver_count": COUNT, "left_out": 49}),
    ("list_trips", {"driver_id": IDS[0], "limit": 20}, {"left_out": 39}),
    ("describe_trip", {"trip_id": TRIP}, {"left_out": 150}),
]


@pytest.fixture(scope="module")
def db():
    """Sixty drivers with the longest identifiers and names. The first drove on most days, all others got worse."""
    db = memory_client()["long"]
    each = [
        make_trip(f"2026-03-{day:02}T08:00", driver_id, event_summary=events)
        for driver_id in IDS[1:]
        for day, events in ((2, make_event_summary()), (9, SCORED))
    ]
    days = [
        make_trip(f"{year}-{month:02}-{day:02}T08:00", IDS[0], event_summary=SCORED)
        for year, month in ((2025, 10), (2025, 11), (2025, 12), (2026, 1), (2026, 2), (2026, 3))
        for day in range(1, 18 if month == 3 else 29)
    ]
    minutes = [
        make_trip(f"2026-03-10T09:{minute}", IDS[0], trip_id=f"{minute}{LONG}", event_summary=SCORED)
        for minute in range(10, 60)
    ]
    speeds = {"user_speed_mph": 123.45, "speed_limit_mph": 123.45, "max_user_speed_mph": 123.45}
    minutes[0]["events"] = [
        make_event(1_773_100_000_000 + number, event_type=9, event_name="OVERSPEEDING", event_data=speeds)
        for number in range(200)
    ]
    load(db, *each, *days, *minutes, drivers=DRIVERS)
    return db


@pytest.mark.parametrize(("tool", "arguments", "left_out"), REQUESTS)
def test_a_result_is_shorter_than_its_limit_and_says_what_is_left_out(url, service, tool, arguments, left_out):
    data, text = call_tool(url, service.key("f1"), tool, arguments)
    assert data, text
    assert len(text) < MAX_CHARACTERS
    assert left_out.items() <= data.items()


def test_the_pages_of_a_list_have_every_driver_once(call):
    pages = [call("find_drivers", page=page)["drivers"] for page in (1, 2, 3)]
    assert [driver["driver_id"] for page in pages for driver in page] == IDS
