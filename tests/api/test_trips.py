"""GET /trip/{filter_param}/{filter_value}."""

from urllib.parse import quote

import pytest

from tests.factories import NOT_RETURNED, make_event, make_point, make_speeding, make_trip

START = 1_773_129_600_000  # 2026-03-10T08:00


def ids(response):
    return [trip["trip_id"] for trip in response.json["trips"]]


def test_a_trip_is_served_in_detail_form_with_exactly_the_fields_of_the_contract_in_order(service, load):
    focus_area = dict.fromkeys(("is_phone_use", "is_rapid_acceleration", "is_hard_brake", "is_overspeeding"), False)
    trip = make_trip(trip_id="t1", events=[make_speeding(START), make_event(START)])
    load({**trip, "focus_area": focus_area})
    response = service.get("/trip/trip_id/t1").json
    returned = response["trips"][0]
    trail_path, events = trip.pop("trail_path"), trip.pop("events")
    for name in NOT_RETURNED:
        del trip[name]
    expected = {**trip, "focus_area": focus_area, "trail_path": trail_path, "events": events}
    assert list(returned.items()) == list(expected.items())
    assert [list(point) for point in returned["trail_path"]] == [list(point) for point in trail_path]
    assert [list(event) for event in returned["events"]] == [list(event) for event in events]
    assert {**response, "trips": []} == {"count": 1, "current_page": 1, "next_page": None, "limit": 5, "trips": []}


def test_numbers_come_back_as_they_were(service, load):
    trip = make_trip(trip_id="t1", duration_seconds=1800, distance_miles=7, night_driving_miles=0.1 + 0.2)
    load({**trip, "trail_path": [make_point(START, course=2**53 + 1)]})
    text = service.get("/trip/trip_id/t1").text
    assert '"duration_seconds":1800,"distance_miles":7,' in text
    assert '"night_driving_miles":0.30000000000000004,' in text
    assert '"course":9007199254740993}' in text


def test_a_trip_that_ended_less_than_four_hours_ago_is_not_there_yet(service, load, clock):
    load(make_trip("2026-03-18T08:00", trip_id="t1", tracking_id="k", trip_end_time=1_773_820_800_001))
    empty = {"count": 0, "current_page": 1, "next_page": None, "limit": 5, "trips": []}
    assert service.get("/trip/trip_id/t1").json == service.get("/trip/tracking_id/k").json == empty
    clock.shift(0.001)
    assert ids(service.get("/trip/trip_id/t1")) == ids(service.get("/trip/tracking_id/k")) == ["t1"]


def test_trips_without_a_tracking_id_are_not_found_by_its_name(service, load):
    load(make_trip(tracking_id=None))
    assert service.get("/trip/tracking_id/null").json["count"] == 0


@pytest.mark.parametrize("param", ["driver_id", "Trip_id", "$where"])
def test_another_filter_param_is_no_path(service, param):
    response = service.get(f"/trip/{param}/x")
    assert (response.status_code, response.json["error"]) == (404, "NotFound")


@pytest.mark.parametrize("value", ["a/b/c", "a%2Fb", "{'$gt': ''}", " ", "ü"])
def test_the_value_is_opaque(service, load, value):
    load(make_trip(trip_id=value, tracking_id=value))
    encoded = quote(value, safe="")
    assert ids(service.get(f"/trip/trip_id/{encoded}")) == ids(service.get(f"/trip/tracking_id/{encoded}")) == [value]


def test_several_trips_share_a_tracking_id_five_a_page_oldest_first_then_by_trip_id(service, load):
    dates = [10, 9, 8, 7, 6, 5, 5]
    load(*(make_trip(f"2026-03-{date:02}T08:00", trip_id=f"t{n}", tracking_id="k") for n, date in enumerate(dates)))
    first, second = (service.get("/trip/tracking_id/k", page=page) for page in (1, 2))
    assert (ids(first), ids(second)) == (["t5", "t6", "t4", "t3", "t2"], ["t1", "t0"])
    assert [(response.json["count"], response.json["next_page"]) for response in (first, second)] == [(7, 2), (7, None)]


def test_another_fleets_trip_gets_the_response_of_an_unknown_trip(service, load):
    load(make_trip(trip_id="t1", tracking_id="k"), fleet="f2")
    for param, value in (("trip_id", "t1"), ("tracking_id", "k")):
        response = service.get(f"/trip/{param}/{value}")
        assert (response.status_code, response.json["count"], response.json["trips"]) == (200, 0, [])
        assert response.data == service.get(f"/trip/{param}/nothing").data
