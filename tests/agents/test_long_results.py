"""Results that would be too long: they are cut, and say what was left out."""

import datetime

import pytest

from tests.agents.conftest import call_tool
from tests.factories import make_driver, make_event, make_event_summary, make_speeding, make_trip
from tests.store_contents import load

pytestmark = pytest.mark.large

MAX_CHARACTERS = 20_000
COUNT = 60
# 126 bytes that JSON without invisible characters spells with 378 characters.
LONG = "\u00ad" * 63
NAME = '"' * 60
DRIVERS = [
    make_driver(f"{n:02}{LONG}", first_name=NAME, last_name=NAME, alias=NAME, groups=[f"{n:02}{LONG}"])
    for n in range(COUNT)
]
IDS = [driver["driver_id"] for driver in DRIVERS]
TRIP = f"10{LONG}"
SCORED = {name: 12345 if name.endswith("count") else 123.45 for name in make_event_summary()}
REQUESTS = [
    ("find_drivers", {"page": 2}, {"count": COUNT, "next_page": 3}),
    ("find_drivers", {"search": "\u00ad", "page": 3}, {"count": COUNT, "next_page": None}),
    ("driver_summary", {"driver_id": IDS[0], "period": "month"}, {}),
    ("compare_drivers", {"driver_ids": IDS[:10], "start_date": "2026-03-02"}, {}),
    ("explain_score", {"driver_id": IDS[0], "start_date": "2025-09-18"}, {}),
    ("who_needs_coaching", {"limit": 10}, {"driver_count": COUNT, "left_out": COUNT - 10}),
    ("who_needs_coaching", {"order": "got_worse", "limit": 10}, {"compared_driver_count": COUNT, "left_out": 49}),
    ("who_needs_coaching", {"behaviour": "phone_use", "limit": 10}, {"driver_count": COUNT, "left_out": COUNT - 10}),
    ("fleet_summary", {"count": 13}, {"not_known": 0}),
    ("fleet_summary", {"period": "month", "count": 13}, {"not_known": 0}),
    ("list_trips", {"driver_id": IDS[0], "limit": 20}, {"left_out": 39}),
    ("list_trips", {"limit": 20}, {"more": True}),
    ("describe_trip", {"trip_id": TRIP}, {"left_out": 150}),
    ("list_events", {"limit": 20}, {"more": True}),
    ("list_groups", {}, {"count": COUNT, "next_page": 2}),
]


@pytest.fixture(scope="module")
def db(shared_db):
    """Sixty drivers with the longest identifiers and names. The first drove on most days, all others got worse."""
    each = [
        make_trip(f"2026-03-{day:02}T08:00", driver_id, event_summary=events)
        for driver_id in IDS[1:]
        for day, events in ((2, make_event_summary()), (9, SCORED))
    ]
    dates = [datetime.date(2025, 10, 1) + datetime.timedelta(n) for n in range(168)]
    days = [make_trip(f"{date}T08:00", IDS[0], event_summary=SCORED) for date in dates]
    minutes = [
        make_trip(f"2026-03-10T09:{minute}", IDS[0], trip_id=f"{minute}{LONG}", event_summary=SCORED)
        for minute in range(10, 60)
    ]
    minutes[0]["events"] = [make_speeding(1_773_100_000_000 + number, *[123.45] * 3) for number in range(200)]
    brakes = [make_event(1_773_100_000_000 + number, event_start_latitude=number / 100) for number in range(5_000)]
    minutes[1]["events"] = brakes
    load(shared_db, *each, *days, *minutes, drivers=DRIVERS)
    return shared_db


@pytest.mark.parametrize(("tool", "arguments", "left_out"), REQUESTS)
def test_a_result_is_shorter_than_its_limit_and_says_what_is_left_out(url, service, tool, arguments, left_out):
    data, text = call_tool(url, service.key("f1"), tool, arguments)
    assert data, text
    assert len(text) < MAX_CHARACTERS
    assert left_out.items() <= data.items()
