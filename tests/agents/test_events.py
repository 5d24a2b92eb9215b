"""What list_events returns: what happened, to whom, and where."""

import math

import pytest

from tests.factories import epoch_ms, make_event, make_speeding, make_trip

THERE = {"event_start_latitude": 60.0, "event_start_longitude": 179.9999}


def make_fast(time, mph, seconds):
    """Return the event of driving at `mph` over a limit of 40 for so many seconds."""
    event = make_speeding(epoch_ms(time), 40 + mph, 40, 40 + mph)
    return {**event, "event_end_timestamp": epoch_ms(time) + 1000 * seconds, **THERE}


@pytest.fixture
def events(fleet, load):
    """Four brakes at one place, with that of `fleet`, and two times of speeding at another."""
    brakes = [make_event(epoch_ms(f"2026-03-11T08:{minute}")) for minute in (40, 50)]
    load(
        make_trip("2026-03-11T08:30", "ann", trip_id="many", events=brakes),
        make_trip("2026-03-12T09:00", "bob", trip_id="two", events=[make_fast("2026-03-12T09:05", 31, 12)]),
        make_trip(
            "2026-03-13T09:00",
            "bob",
            trip_id="last",
            events=[make_event(epoch_ms("2026-03-13T09:01")), make_fast("2026-03-13T09:02", 10, 90)],
        ),
    )


CASES = [
    ({}, ["last", "last", "two", "many", "many", "brake"]),
    ({"order": "oldest", "limit": 4}, ["brake", "many", "many", "two"]),
    ({"driver_id": "bob"}, ["last", "last", "two"]),
    ({"start_date": "2026-03-12", "end_date": "2026-03-12"}, ["two"]),
    ({"behaviour": "hard_brake", "driver_id": "bob"}, ["last"]),
    ({"behaviour": "phone_use"}, []),
    ({"min_seconds": 12}, ["last", "two"]),
    ({"min_over_mph": 30.5}, ["two"]),
]


@pytest.mark.parametrize(("arguments", "trip_ids"), CASES)
def test_events_are_those_asked_for(call, events, arguments, trip_ids):
    data = call("list_events", **arguments)
    assert [event["trip_id"] for event in data["events"]] == trip_ids
    assert (data["left_out"], data["more"]) == (2 if "limit" in arguments else 0, False)


def test_an_event_says_who_drove_and_what_it_was(call, events):
    event = call("list_events", min_over_mph=30)["events"][0]
    assert (event["driver"]["last_name"], event["event_start_timestamp"]) == ("Dvořák", "2026-03-12T09:05:00Z")
    assert event["event_data"] == {"user_speed_mph": 71, "speed_limit_mph": 40, "max_user_speed_mph": 71}


def test_places_have_all_events_and_the_one_with_most_comes_first(call, events):
    data = call("list_events", limit=1)
    assert [(place["event_count"], place["driver_count"]) for place in data["places"]] == [(4, 2), (2, 1)]
    assert data["event_counts"] == {"HARD_BRAKE": 4, "OVERSPEEDING": 2}
    assert (len(data["events"]), data["left_out"], data["places_left_out"]) == (1, 5, 0)


def test_an_unknown_position_is_no_place(call, load):
    load(make_trip(events=[make_event(epoch_ms("2026-03-10T08:05"), event_start_latitude=0, event_start_longitude=0)]))
    data = call("list_events")
    assert (data["event_counts"], data["places"]) == ({"HARD_BRAKE": 1}, [])


@pytest.mark.parametrize(
    "position", [(41.25, -96.5), (0, 1e-5), (-33.9, 151.2), (60, 180), (71, -180), (90, 0), (-90, 7)]
)
def test_a_place_is_150_metres_high_and_wide_and_has_the_position(call, load, position):
    latitude, longitude = position
    event = make_event(epoch_ms("2026-03-11T08:05"), event_start_latitude=latitude, event_start_longitude=longitude)
    load(make_trip(events=[event]))
    (place,) = call("list_events")["places"]
    width = math.cos(math.radians(place["middle_latitude"])) * (place["middle_longitude"] - longitude)
    assert max(abs(width), abs(place["middle_latitude"] - latitude)) * 111_320 <= 75 + 1
    assert abs(place["middle_latitude"]) < 90
    assert abs(place["middle_longitude"]) <= 180


def test_speed_is_refused_for_events_without_one(fail):
    assert "Only overspeeding has it" in fail("list_events", behaviour="hard_brake", min_over_mph=0)
