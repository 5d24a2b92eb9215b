"""What list_trips returns of the fleet, and of implausible trips."""

import pytest

from schemas.plausibility import COUNTED, LEFT_OUT
from scripts.materialize.fleet_settings import set_settings
from tests.agents.conftest import call_tool
from tests.factories import make_event_summary, make_trip

pytestmark = pytest.mark.usefixtures("fleet")
WRONG = {"distance_miles": 16_093.0, "event_summary": make_event_summary(hard_brake_count=900)}


@pytest.mark.parametrize(
    ("arguments", "trip_ids", "left_out"),
    [
        ({"limit": 3}, ["call", "brake"], 3),
        ({"order": "newest", "limit": 1}, ["wrong"], 5),
        ({"min_distance_miles": 10.5}, ["wrong"], 0),
        ({"implausible": True}, ["wrong"], 0),
        ({"implausible": False, "driver_id": "ann", "order": "oldest"}, ["calm", "call", "brake"], 0),
        ({"at": "2026-03-09T07:10"}, ["calm"], 0),
        ({"at": "2026-03-09T08:10:00+01:00"}, ["calm"], 0),
        ({"at": "2026-03-09T08:10", "driver_id": "ann"}, ["call"], 0),
        ({"at": "2026-03-09T07:40"}, [], 0),
    ],
)
def test_trips_of_the_fleet_are_those_asked_for(call, load, arguments, trip_ids, left_out):
    load(make_trip("2026-03-12T08:00", "dee", trip_id="wrong", **WRONG))
    data = call("list_trips", **arguments)
    assert [trip["trip_id"] for trip in data["trips"] if trip["driver"]["driver_id"] != "cem"] == trip_ids
    assert (data["left_out"], data["more"]) == (left_out, False)


def test_a_trip_of_the_fleet_says_who_drove_and_how(call):
    (trip,) = call("list_trips", order="newest", limit=1)["trips"]
    assert (trip["trip_id"], trip["driver"]["last_name"]) == ("brake", "Ødegård")
    assert (trip["fm_score"], trip["implausible"], trip["points_lost"]) == (80, [], None)


def test_a_time_without_an_offset_is_in_the_time_zone_of_the_fleet(call, service):
    set_settings(service.store, "f1", time_zone="America/Denver")
    data = call("list_trips", at="2026-03-09T01:10")
    assert ([trip["trip_id"] for trip in data["trips"]], data["at"]) == (["calm"], "2026-03-09T01:10:00-06:00")


@pytest.mark.parametrize("policy", [COUNTED, LEFT_OUT])
def test_an_implausible_trip_costs_the_points_that_the_score_counts(call, load, service, policy):
    set_settings(service.store, "f1", implausible_trips=policy)
    load(make_trip("2026-03-12T08:00", "ann", trip_id="wrong", **WRONG))
    data = call("list_trips", driver_id="ann")
    lost = {trip["trip_id"]: trip["points_lost"] for trip in data["trips"]}
    assert sum(lost.values()) == pytest.approx(100 - data["score"]["fm_score"], abs=0.2)
    assert (lost["wrong"] > 0, data["not_listed_yet"]) == (policy == COUNTED, 0)
    assert [trip["trip_id"] for trip in data["trips"] if trip["implausible"]] == ["wrong"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"at": "2026-03-09T08:00", "start_date": "2026-03-09"}, "at: Must not be given together with start_date"),
        ({"at": "0001-01-01T00:00"}, "at: Must be a time"),
        ({"at": "soon"}, "Input should be a valid datetime"),
        ({"start_date": "2026-01-09"}, "order: Must not be worst in a window of more than 31 days"),
        ({"at": "2026-03-09T08:00", "driver_id": "nobody"}, "Not in this fleet: nobody"),
    ],
)
def test_wrong_arguments_are_named_with_the_reason(url, service, arguments, reason):
    data, text = call_tool(url, service.key("f1"), "list_trips", arguments)
    assert data is None
    assert reason in text
