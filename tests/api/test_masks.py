"""X-Fields: the outcomes of the contract's table, and what Flask-RESTX cannot say (test_masks_reference.py)."""

import json

import pytest

from tests.factories import NOT_RETURNED, make_driver, make_event, make_event_summary, make_speeding, make_trip
from tests.store_contents import load as load_documents

START = 1_773_129_600_000  # 2026-03-10T08:00
STORED = make_trip(
    "2026-03-10T08:00",
    trip_id="t1",
    event_summary=make_event_summary(hard_brake_count=1, overspeeding_count=1),
    events=[make_speeding(START), make_event(START)],
)
TRIP = {name: value for name, value in STORED.items() if name not in ("trail_path", "events", *NOT_RETURNED)}
PAGE = {"count": 1, "current_page": 1, "next_page": None, "limit": 50}
WHOLE = {**PAGE, "trips": [TRIP]}
TRIPS, TRIP_IN_FULL = "/driver/d1/trips?start_date=2026-03-01", "/trip/trip_id/t1"
DAILY = "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1"
SCORE = "/driver/d1/score?start_date=2026-03-09"
CANNOT_BE_READ, DOES_NOT_FIT = "count,,limit", "count{x},data{driver_info{driver_id{x}}}"
COMMA, CLOSING, OPENING = "Unexpected comma", "Unexpected closing bracket", "Unexpected opening bracket"
MISSING = "Missing closing bracket"


def text(body):
    return json.dumps(body, separators=(",", ":"))


def masked(service, path, mask, **options):
    return service.get(path, headers={"X-Fields": mask}, **options)


def refusal(response):
    return response.status_code, response.json["error"], response.json["message"]


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with one driver who drove one trip."""
    load_documents(shared_service.db, STORED, drivers=[make_driver("d1")])
    return shared_service


COUNT, BOTH, NOTHING = {"count": 1}, {"count": 1, "limit": 50}, {}
BRAKES, TRIP_ID = {"hard_brake_count": 1}, {"trip_id": "t1"}
OUTCOMES = {
    **dict.fromkeys(["", "   ", "\t\xa0", "*", "{*}"], WHOLE),
    **dict.fromkeys(["count", "{count}", " { count } ", "count,"], COUNT),
    **dict.fromkeys(["count,limit", "count limit", "count;limit", "count.limit", "count\xa0limit"], BOTH),
    **dict.fromkeys(["{}", "count:limit", "nope", "COUNT", "$where"], NOTHING),
    "limit,count": {"limit": 50, "count": 1},
    "{count,trips{trip_id,event_summary{hard_brake_count}}}": {
        **COUNT,
        "trips": [{**TRIP_ID, "event_summary": BRAKES}],
    },
    "trips": {"trips": [TRIP]},
    "trips{}": {"trips": [TRIP]},
    "trips{*}": {"trips": [TRIP]},
    "trips{trip_id},*": {"trips": [TRIP_ID], **PAGE},
    "trips{*,event_summary{hard_brake_count}}": {
        "trips": [{"event_summary": BRAKES, **{name: TRIP[name] for name in TRIP if name != "event_summary"}}]
    },
    "trips{nope}": {"trips": [{}]},
    "trips{trip_id,}": {"trips": [TRIP_ID]},
    "trips{trip_id}limit": {"trips": [TRIP_ID], "limit": 50},
}


@pytest.mark.parametrize("mask", OUTCOMES)
def test_a_mask_returns_the_fields_of_the_contract_in_its_order(loaded, mask):
    response = masked(loaded, TRIPS, mask)
    assert (response.status_code, response.text) == (200, text(OUTCOMES[mask]))


REASONS = {
    **dict.fromkeys(["count,,limit", ",count", "{,count}", ","], COMMA),
    **dict.fromkeys(["{count", "{", "trips{trip_id", "{count},"], MISSING),
    **dict.fromkeys(["count}", "{count}}", "{count},{limit}"], CLOSING),
    **dict.fromkeys(["{{count}}", "count,{limit}", "trips{a}{b}"], OPENING),
}


@pytest.mark.parametrize(("mask", "reason"), REASONS.items())
def test_a_mask_with_a_syntax_error_is_a_parse_error(loaded, mask, reason):
    assert refusal(masked(loaded, TRIPS, mask)) == (400, "ParseError", f"Mask parse error: {reason}")


INCONSISTENT = (400, "MaskError", "Mask error: Mask is inconsistent with model")


@pytest.mark.parametrize("mask", ["count{x}", "trips{trip_id{x}}"])
def test_a_mask_on_a_plain_value_is_a_mask_error(loaded, mask):
    assert refusal(masked(loaded, TRIPS, mask)) == INCONSISTENT


def test_a_mask_picks_among_the_keys_of_event_data_and_goes_no_deeper(loaded):
    response = masked(loaded, TRIP_IN_FULL, "trips{events{event_data{nope,user_speed_mph}}}")
    events = [{"event_data": {"user_speed_mph": 50.5}}, {"event_data": {}}]
    assert response.text == text({"trips": [{"events": events}]})
    for below in ("user_speed_mph{x}", "nope{}", "*{*}"):
        assert refusal(masked(loaded, TRIP_IN_FULL, f"trips{{events{{event_data{{{below}}}}}}}")) == INCONSISTENT


def test_two_headers_are_one_joined_by_a_comma(loaded):
    assert masked(loaded, TRIPS, ["limit", "count"]).text == text({"limit": 50, "count": 1})
    assert masked(loaded, TRIPS, ["trips{", "trip_id}"]).json["message"] == f"Mask parse error: {COMMA}"


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
    assert masked(loaded, TRIPS, f"{name}{{" * 20_000).json["message"] == f"Mask parse error: {MISSING}"
    response, small = (masked(loaded, TRIPS, f"{name}{{" * depth + "}" * depth) for depth in (20_000, 3))
    assert (response.status_code, response.data) == (200, small.data)
