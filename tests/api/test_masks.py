"""X-Fields: what test_masks_reference.py cannot say."""

import json

import pytest

from tests.factories import make_driver, make_event, make_speeding, make_trip
from tests.store_contents import load as load_documents

START = 1_773_129_600_000  # 2026-03-10T08:00
TRIPS, TRIP_IN_FULL = "/driver/d1/trips?start_date=2026-03-01", "/trip/trip_id/t1"
DAILY = "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1"
SCORE = "/driver/d1/score?start_date=2026-03-09"
CANNOT_BE_READ, DOES_NOT_FIT = "count,,limit", "count{x},data{driver_info{driver_id{x}}}"
INCONSISTENT = (400, "MaskError", "Mask error: Mask is inconsistent with model")


def text(body):
    return json.dumps(body, separators=(",", ":"))


def masked(service, path, mask, **options):
    return service.get(path, headers={"X-Fields": mask}, **options)


def refusal(response):
    return response.status_code, response.json["error"], response.json["message"]


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with one driver who drove one trip."""
    trip = make_trip("2026-03-10T08:00", trip_id="t1", events=[make_speeding(START), make_event(START)])
    load_documents(shared_service.db, trip, drivers=[make_driver("d1")])
    return shared_service


def test_a_mask_picks_among_the_keys_of_event_data_and_goes_no_deeper(loaded):
    response = masked(loaded, TRIP_IN_FULL, "trips{events{event_data{nope,user_speed_mph}}}")
    events = [{"event_data": {"user_speed_mph": 50.5}}, {"event_data": {}}]
    assert response.text == text({"trips": [{"events": events}]})
    for below in ("user_speed_mph{x}", "nope{}", "*{*}"):
        assert refusal(masked(loaded, TRIP_IN_FULL, f"trips{{events{{event_data{{{below}}}}}}}")) == INCONSISTENT


def test_two_headers_are_one_joined_by_a_comma(loaded):
    assert masked(loaded, TRIPS, ["limit", "count"]).text == text({"limit": 50, "count": 1})
    assert masked(loaded, TRIPS, ["trips{", "trip_id}"]).json["message"] == "Mask parse error: Unexpected comma"


def test_the_health_check_ignores_masks(loaded):
    for mask in ("{}", CANNOT_BE_READ, "status{x}"):
        assert masked(loaded, "/healthz", mask).json == {"status": "ok"}


@pytest.mark.parametrize("mask", [CANNOT_BE_READ, DOES_NOT_FIT])
def test_a_mask_is_decided_after_key_path_and_parameters_and_before_the_record(service, mask):
    path = DAILY.replace("d1", "nobody")
    assert masked(service, path, mask, fleet=None).status_code == 401
    assert masked(service, path, mask, method="POST").status_code == 405
    assert masked(service, "/trip/driver_id/d1", mask).status_code == 404
    assert masked(service, f"{path}&x=1", mask).json["error"] == "ValidationError"
    assert masked(service, path, mask).json["error"] in ("ParseError", "MaskError")


@pytest.mark.parametrize("mask", ["{}", "data{}", "data{driving_summary}", "count", "*"])
@pytest.mark.parametrize("path", [TRIPS, DAILY, SCORE])
def test_an_unknown_driver_is_not_found_with_any_mask(loaded, path, mask):
    assert masked(loaded, path.replace("d1", "nobody"), mask).json["message"] == "Not in this fleet: nobody"


# Far deeper than Python's stack. No request line or header is that long.
@pytest.mark.parametrize("name", ["trips", "nope", "*"])
def test_a_huge_mask_gets_the_response_of_a_small_one(loaded, long_timeout, name):
    assert masked(loaded, TRIPS, f"{name}{{" * 20_000).json["message"] == "Mask parse error: Missing closing bracket"
    response, small = (masked(loaded, TRIPS, f"{name}{{" * depth + "}" * depth) for depth in (20_000, 3))
    assert (response.status_code, response.data) == (200, small.data)
