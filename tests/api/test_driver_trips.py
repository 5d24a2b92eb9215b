"""GET /driver/{driver_id}/trips."""

from urllib.parse import quote

import pytest

from tests.factories import NOT_RETURNED, make_event, make_event_summary, make_trip

PATH = "/driver/d1/trips"
HOUR_MS = 3_600_000
NOON_MS = 1_773_835_200_000  # conftest.NOW


def ids(response):
    return [trip["trip_id"] for trip in response.json["trips"]]


def test_a_trip_is_served_in_summary_form_with_exactly_the_fields_of_the_contract_in_order(service, load):
    trip = make_trip(
        tracking_id="k1",
        insurance_period=2,
        event_summary=make_event_summary(hard_brake_count=1),
        events=[make_event(1_773_100_000_000)],
    )
    load(trip)
    response = service.get(PATH, start_date="2026-03-01")
    assert list(response.json) == ["count", "current_page", "next_page", "limit", "trips"]
    hidden = {"trail_path", "events", *NOT_RETURNED}
    assert list(response.json["trips"][0].items()) == [item for item in trip.items() if item[0] not in hidden]


@pytest.mark.parametrize(("end", "count"), [(NOON_MS - 4 * HOUR_MS, 1), (NOON_MS - 4 * HOUR_MS + 1, 0)])
def test_a_trip_is_visible_once_four_hours_have_passed_since_its_end(service, load, end, count):
    load(make_trip("2026-03-18T00:00", trip_end_time=end))
    response = service.get(PATH, start_date="2026-03-18").json
    assert (response["count"], len(response["trips"])) == (count, count)


def test_the_processing_delay_is_a_setting(make_service, load):
    load(make_trip("2026-03-18T00:00", trip_end_time=NOON_MS - HOUR_MS // 2))
    assert make_service(processing_delay_hours=0.5).get(PATH, start_date="2026-03-18").json["count"] == 1


@pytest.mark.parametrize("driver_id", ["a/b", "a b", "a+b", "%2F", "é", "a?b#c", "..a", "'$ne'", "𝄞" * 32])
def test_an_identifier_is_opaque(service, load, driver_id):
    load(make_trip(driver_id=driver_id))
    response = service.get(f"/driver/{quote(driver_id, safe='')}/trips", start_date="2026-03-01")
    assert response.json["trips"][0]["driver_id"] == driver_id


@pytest.mark.parametrize("segment", ["a" * 129, "%00", "%C2%85", "%FF", "%ED%A0%80", ".", "%2E%2e"])
def test_an_identifier_out_of_bounds_is_refused(service, segment):
    assert list(service.errors(f"/driver/{segment}/trips", start_date="2026-03-01")) == ["driver_id"]


def test_trips_come_oldest_first_and_by_id_at_the_same_time(service, load):
    load(
        make_trip("2026-03-11T08:00", trip_id="a"),
        make_trip("2026-03-10T08:00", trip_id="z"),
        make_trip("2026-03-10T08:00", trip_id="B"),
        make_trip("2026-03-10T08:00", trip_id="b"),
    )
    assert ids(service.get(PATH, start_date="2026-03-01")) == ["B", "b", "z", "a"]


def test_a_trip_on_or_after_the_start_date_is_listed_and_the_millisecond_before_is_not(service, load):
    load(make_trip("2026-03-09T23:59:59.999", trip_id="before"), make_trip("2026-03-10T00:00", trip_id="first"))
    assert ids(service.get(PATH, start_date="2026-03-10")) == ["first"]


@pytest.mark.parametrize(
    ("end_date", "expected"), [("2026-03-10", ["first", "last"]), ("2026-03-11", ["first", "last", "after"])]
)
def test_a_trip_on_or_before_the_end_date_is_listed_and_the_millisecond_after_is_not(service, load, end_date, expected):
    starts = {"first": "2026-03-10T00:00", "last": "2026-03-10T23:59:59.999", "after": "2026-03-11T00:00"}
    load(*(make_trip(start, trip_id=name) for name, start in starts.items()))
    response = service.get(PATH, start_date="2026-03-10", end_date=end_date)
    assert (ids(response), response.json["count"]) == (expected, len(expected))


def test_one_response_lists_all_faults(service):
    errors = service.errors("/driver/%00/trips?limit=0&page=0&page=1&start_date=x&driver_id=d1&foo=1")
    assert sorted(errors) == ["driver_id", "foo", "limit", "page", "start_date"]
