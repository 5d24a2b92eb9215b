"""X-Fields: the fields that a mask returns, at every endpoint."""

import itertools
import json

import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import parse

from schemas.driver import Driver
from schemas.summary import DailySummary, WeeklySummary
from schemas.trip import TripDetail, TripSummary
from tests.conftest import NOW, Service
from tests.factories import make_driver, make_event, make_event_summary, make_trip
from tests.store_contents import load as load_documents
from tests.store_contents import put_canaries

HIDDEN = ("tracking_id", "trail_path", "events")
START = 1_773_129_600_000  # 2026-03-10T08:00
SPEEDS = {"user_speed_mph": 50.5, "speed_limit_mph": 35, "max_user_speed_mph": 61.0}
OVERSPEEDING = make_event(START, event_type=9, event_name="OVERSPEEDING", event_data=SPEEDS)
STORED = make_trip(
    "2026-03-10T08:00",
    trip_id="t1",
    tracking_id="k1",
    event_summary=make_event_summary(hard_brake_count=1, overspeeding_count=1),
    events=[make_event(START), OVERSPEEDING],
)
TRIP = {name: value for name, value in STORED.items() if name not in HIDDEN}
WHOLE = {"count": 1, "current_page": 1, "next_page": None, "limit": 50, "trips": [TRIP]}
TRIPS, TRIP_IN_FULL, DRIVERS = "/driver/d1/trips?start_date=2026-03-01", "/trip/trip_id/t1", "/drivers"
DAILY = "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1"
WEEKLY = "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1"
MONTHLY = "/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1"
SCORE = "/driver/d1/score?start_date=2026-03-09"
ENDPOINTS = (DRIVERS, TRIPS, TRIP_IN_FULL, DAILY, WEEKLY, MONTHLY, SCORE)
CANNOT_BE_READ, DOES_NOT_FIT = "count,,limit", "count{x},data{x{x}},data{driver_info{driver_id{x}}},start_date{x}"
COMMA, CLOSING, OPENING = "Unexpected comma", "Unexpected closing bracket", "Unexpected opening bracket"
MISSING = "Missing closing bracket"


def text(body):
    return json.dumps(body, separators=(",", ":"))


def masked(service, path, mask, **options):
    return service.get(path, headers={"X-Fields": mask}, **options)


def refusal(response):
    return response.status_code, response.json["error"], response.json["message"]


NO_LIMIT = parse("1000000000 per minute")


@pytest.fixture(scope="module")
def fleet(shared_db):
    """A service with one driver who drove one trip, which tests only read."""
    with time_machine.travel(NOW, tick=False):
        load_documents(shared_db, STORED, drivers=[make_driver("d1", first_name="Ada", alias="A.")])
        yield Service(shared_db, rate_limit=NO_LIMIT)


@pytest.fixture
def loaded(fleet, clock):
    """That service, at the time of the tests."""
    return fleet


def test_a_response_without_a_mask_is_complete(loaded):
    assert loaded.get(TRIPS).text == text(WHOLE)


@pytest.mark.parametrize("mask", ["", " ", "   ", "\t", " \xa0\t", "*", "{*}", " { * } ", "**,*", "*{count}"])
def test_a_mask_that_selects_everything_keeps_the_response_complete(loaded, mask):
    response = masked(loaded, TRIPS, mask)
    assert (response.status_code, response.text) == (200, text(WHOLE))


COUNT, BOTH = {"count": 1}, {"count": 1, "limit": 50}
BRAKES = {"hard_brake_count": 1}
PRUNED = {
    "{}": {},
    "{ }": {},
    "count": COUNT,
    "{count}": COUNT,
    " { count } ": COUNT,
    "count,limit": BOTH,
    "count limit": BOTH,
    "count;limit": BOTH,
    "count.limit": BOTH,
    "count\tlimit": BOTH,
    "count\xa0limit": BOTH,
    "count, ;limit": BOTH,
    "count:limit": {},
    "count-limit": {},
    "{count,trips{trip_id,event_summary{hard_brake_count}}}": {
        **COUNT,
        "trips": [{"trip_id": "t1", "event_summary": BRAKES}],
    },
    "trips{}": {"trips": [TRIP]},
    "trips{*}": {"trips": [TRIP]},
    "trips": {"trips": [TRIP]},
    "trips{event_summary{}}": {"trips": [{"event_summary": TRIP["event_summary"]}]},
    "trips{trip_id},*": {
        "trips": [{"trip_id": "t1"}],
        **{name: value for name, value in WHOLE.items() if name != "trips"},
    },
    "*,trips{trip_id}": {
        "trips": [{"trip_id": "t1"}],
        **{name: value for name, value in WHOLE.items() if name != "trips"},
    },
    "trips{*,event_summary{hard_brake_count}}": {
        "trips": [
            {
                "event_summary": BRAKES,
                **{name: value for name, value in TRIP.items() if name != "event_summary"},
            }
        ]
    },
    "nope": {},
    "COUNT": {},
    "$where": {},
    "_id": {},
    "nope{count{x}}": {},
    "count,nope{x},limit": BOTH,
    "trips{nope}": {"trips": [{}]},
    "trips{event_summary{nope}}": {"trips": [{"event_summary": {}}]},
    "count,": COUNT,
    "trips{trip_id,}": {"trips": [{"trip_id": "t1"}]},
    "trips{trip_id}limit": {"trips": [{"trip_id": "t1"}], "limit": 50},
    "trips;{trip_id}": {"trips": [{"trip_id": "t1"}]},
    "limit,count": {"limit": 50, "count": 1},
    "limit,count,limit": {"limit": 50, "count": 1},
    "trips{trip_id},limit,trips{driver_id}": {"trips": [{"driver_id": "d1"}], "limit": 50},
    "trips{trip_id},limit,trips": {"trips": [TRIP], "limit": 50},
    "trips{distance_miles,trip_id}": {"trips": [{"distance_miles": 10.0, "trip_id": "t1"}]},
}


@pytest.mark.parametrize("mask", PRUNED)
def test_a_mask_returns_the_fields_that_it_names_in_its_order(loaded, mask):
    response = masked(loaded, TRIPS, mask)
    assert (response.status_code, response.text) == (200, text(PRUNED[mask]))
    assert response.mimetype == "application/json"


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ("count,,limit", COMMA),
        (",count", COMMA),
        ("{,count}", COMMA),
        (",", COMMA),
        ("{count", MISSING),
        ("{", MISSING),
        ("trips{trip_id", MISSING),
        ("{count},limit", MISSING),
        ("count}", CLOSING),
        ("{count}}", CLOSING),
        ("{count},{limit}", CLOSING),
        ("{{count}}", OPENING),
        ("count,{limit}", OPENING),
        ("trips{trip_id}{limit}", OPENING),
        ("trips{a}{b}", OPENING),
        ("count{x},,", COMMA),
    ],
)
def test_a_mask_with_a_syntax_error_is_a_parse_error(loaded, mask, reason):
    assert refusal(masked(loaded, TRIPS, mask)) == (400, "ParseError", f"Mask parse error: {reason}")


INCONSISTENT = (400, "MaskError", "Mask error: Mask is inconsistent with model")


@pytest.mark.parametrize(
    "mask",
    [
        "count{x}",
        "count{}",
        "count{*}",
        "trips{trip_id{x}}",
        "*,limit{x}",
        "trips{event_summary{nope,hard_brake_count{}}}",
    ],
)
def test_a_mask_on_a_plain_value_is_a_mask_error(loaded, mask):
    assert refusal(masked(loaded, TRIPS, mask)) == INCONSISTENT


def test_the_body_of_a_mask_error_is_that_of_any_error(loaded):
    response = masked(loaded, TRIPS, "count{x}")
    assert list(response.json) == ["message", "error", "request_id"]
    problem = loaded.get(TRIPS, headers={"X-Fields": "{", "Accept": "application/problem+json"})
    assert (problem.mimetype, problem.json["detail"]) == ("application/problem+json", f"Mask parse error: {MISSING}")


DRIVER = {"driver_id": "d1", "first_name": "Ada"}
RESPONSES = {
    (DRIVERS, "drivers{driver_id,first_name},count"): {"drivers": [DRIVER], "count": 1},
    (DRIVERS, "next_page,drivers{alias,driver_id}"): {
        "next_page": None,
        "drivers": [{"alias": "A.", "driver_id": "d1"}],
    },
    (TRIPS, "trips{trip_start_time}"): {"trips": [{"trip_start_time": START}]},
    (TRIP_IN_FULL, "trips{trail_path{course},trip_id}"): {
        "trips": [{"trail_path": [{"course": 90.0}, {"course": 90.0}], "trip_id": "t1"}]
    },
    (TRIP_IN_FULL, "trips{focus_area{is_overspeeding},events{event_name}}"): {
        "trips": [
            {
                "focus_area": {"is_overspeeding": False},
                "events": [{"event_name": "HARD_BRAKE"}, {"event_name": "OVERSPEEDING"}],
            }
        ]
    },
    ("/trip/tracking_id/k1", "count,trips{trip_id}"): {"count": 1, "trips": [{"trip_id": "t1"}]},
    ("/trip/tracking_id/nothing", "trips{trip_id},next_page"): {"trips": [], "next_page": None},
    (DAILY, "data{driving_summary{date,trip_count},driver_info{driver_id,first_name}}"): {
        "data": [{"driving_summary": {"date": "2026-03-10", "trip_count": 1}, "driver_info": DRIVER}]
    },
    (DAILY, "data{driving_summary{focus_area{is_hard_brake},events_summary{overspeeding_count,hard_brake_count}}}"): {
        "data": [
            {
                "driving_summary": {
                    "focus_area": {"is_hard_brake": True},
                    "events_summary": {"overspeeding_count": 1, "hard_brake_count": 1},
                }
            }
        ]
    },
    (WEEKLY, "data{driving_summary{end_date,start_date,fm_grade,fm_score}}"): {
        "data": [
            {
                "driving_summary": {
                    "end_date": "2026-03-15",
                    "start_date": "2026-03-09",
                    "fm_grade": "excellent",
                    "fm_score": 90.0,
                }
            }
        ]
    },
    (WEEKLY, "data{driving_summary{daily_summary_breakdown{date,events_summary{hard_brake_count}},trip_count}}"): {
        "data": [
            {
                "driving_summary": {
                    "daily_summary_breakdown": [{"date": "2026-03-10", "events_summary": BRAKES}],
                    "trip_count": 1,
                }
            }
        ]
    },
    (WEEKLY, "data{driving_summary{daily_summary_breakdown{nope}}}"): {
        "data": [{"driving_summary": {"daily_summary_breakdown": [{}]}}]
    },
    (DAILY, "data{nope}"): {"data": [{}]},
    (WEEKLY, "{}"): {},
}


@pytest.mark.parametrize(("path", "mask"), RESPONSES, ids=range(len(RESPONSES)))
def test_every_endpoint_returns_the_fields_of_the_mask(loaded, path, mask):
    response = masked(loaded, path, mask)
    assert (response.status_code, response.text) == (200, text(RESPONSES[path, mask]))


RECORDS = {
    DRIVERS: ("drivers{{{}}}", Driver),
    TRIPS: ("trips{{{}}}", TripSummary),
    TRIP_IN_FULL: ("trips{{{}}}", TripDetail),
    "/trip/tracking_id/k1": ("trips{{{}}}", TripDetail),
    DAILY: ("data{{driving_summary{{{}}}}}", DailySummary),
    WEEKLY: ("data{{driving_summary{{{}}}}}", WeeklySummary),
}


@pytest.mark.parametrize("path", RECORDS)
def test_any_two_fields_of_a_record_come_in_the_order_of_the_mask(loaded, path):
    # An index that covers all fields of the mask returns them in its own order.
    mask, schema = RECORDS[path]
    for first, second in itertools.permutations(schema().fields, 2):
        (records,) = masked(loaded, path, mask.format(f"{first},{second}")).json.values()
        (record,) = (part.get("driving_summary", part) for part in records)
        assert list(record) == [first, second]


@pytest.mark.parametrize("path", [TRIPS, "/trip/tracking_id/k1"])
def test_fields_that_an_index_covers_come_in_the_order_of_the_mask(loaded, path):
    for names in itertools.permutations(("trip_id", "driver_id", "trip_start_time", "trip_end_time")):
        record = {name: TRIP[name] for name in names}
        assert masked(loaded, path, f"trips{{{','.join(names)}}}").text == text({"trips": [record]})


@pytest.mark.parametrize("path", ENDPOINTS)
def test_every_endpoint_is_pruned_to_nothing_by_empty_brackets(loaded, path):
    assert masked(loaded, path, "{}").text == "{}"


@pytest.mark.parametrize("path", ENDPOINTS)
def test_vary_includes_the_mask_header(loaded, path):
    assert "X-Fields" in loaded.get(path).vary
    assert "X-Fields" in masked(loaded, path, "*").vary


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_star_returns_every_field_at_every_endpoint(loaded, path):
    assert masked(loaded, path, "*").data == loaded.get(path).data


@pytest.mark.parametrize("path", ENDPOINTS)
def test_every_endpoint_refuses_an_invalid_mask(loaded, path):
    assert refusal(masked(loaded, path, CANNOT_BE_READ))[:2] == (400, "ParseError")
    assert refusal(masked(loaded, path, DOES_NOT_FIT)) == INCONSISTENT


EVENT_DATA = {
    "event_data": SPEEDS,
    "event_data{}": SPEEDS,
    "event_data{*}": SPEEDS,
    "event_data{user_speed_mph}": {"user_speed_mph": 50.5},
    "event_data{max_user_speed_mph,user_speed_mph}": {"max_user_speed_mph": 61.0, "user_speed_mph": 50.5},
    "event_data{max_user_speed_mph,*}": {"max_user_speed_mph": 61.0, "user_speed_mph": 50.5, "speed_limit_mph": 35},
    "event_data{nope,USER_SPEED_MPH}": {},
}


@pytest.mark.parametrize("part", EVENT_DATA)
def test_a_mask_picks_among_the_keys_of_event_data(loaded, part):
    response = masked(loaded, TRIP_IN_FULL, f"trips{{events{{{part}}}}}")
    assert response.text == text({"trips": [{"events": [{"event_data": {}}, {"event_data": EVENT_DATA[part]}]}]})


@pytest.mark.parametrize("key", ["user_speed_mph", "nope", "*", "user_speed_mph,*"])
@pytest.mark.parametrize("inner", ["{x}", "{}", "{*}"])
def test_a_mask_goes_no_deeper_than_the_keys_of_event_data(loaded, key, inner):
    response = masked(loaded, TRIP_IN_FULL, f"trips{{events{{event_data{{{key}{inner}}}}}}}")
    assert refusal(response) == INCONSISTENT


def test_an_inconsistent_mask_is_refused_for_an_empty_response(loaded):
    response = masked(loaded, "/trip/trip_id/nothing", "trips{events{event_data{x{}}}}")
    assert refusal(response) == INCONSISTENT


def test_two_headers_are_one_joined_by_a_comma(loaded):
    assert masked(loaded, TRIPS, ["limit", "count"]).text == text({"limit": 50, "count": 1})
    assert masked(loaded, TRIPS, ["trips{", "trip_id}"]).json["message"] == f"Mask parse error: {COMMA}"
    assert masked(loaded, TRIPS, ["{count}", "{limit}"]).json["message"] == f"Mask parse error: {CLOSING}"
    assert masked(loaded, TRIPS, ["", ""]).json["message"] == f"Mask parse error: {COMMA}"


def test_the_header_is_named_in_any_case(loaded):
    assert loaded.get(TRIPS, headers={"x-fields": "count"}).json == COUNT


def test_a_head_request_is_masked_as_its_get(loaded):
    for mask in ("count", "trips{trip_id}", CANNOT_BE_READ):
        get, head = (masked(loaded, TRIPS, mask, method=method) for method in ("GET", "HEAD"))
        assert (head.status_code, head.data) == (get.status_code, b"")
        assert head.headers["Content-Length"] == get.headers["Content-Length"]


@pytest.mark.parametrize("mask", ["{}", "nope", CANNOT_BE_READ, "status{x}"])
def test_the_health_check_ignores_masks(service, mask):
    response = masked(service, "/healthz", mask, fleet=None)
    assert (response.status_code, response.json) == (200, {"status": "ok"})


@pytest.mark.parametrize("mask", [CANNOT_BE_READ, DOES_NOT_FIT])
@pytest.mark.parametrize("path", [*ENDPOINTS, "/nothing"])
def test_a_missing_key_comes_before_the_mask(service, path, mask):
    assert masked(service, path, mask, fleet=None).status_code == 401


def test_a_method_and_a_path_come_before_the_mask(service):
    assert masked(service, "/drivers", CANNOT_BE_READ, method="POST").status_code == 405
    assert masked(service, "/trip/driver_id/d1", CANNOT_BE_READ).status_code == 404


@pytest.mark.parametrize("mask", [CANNOT_BE_READ, DOES_NOT_FIT])
@pytest.mark.parametrize("path", ENDPOINTS)
def test_parameters_come_before_the_mask(service, path, mask):
    path += "&x=1" if "?" in path else "?x=1"
    assert masked(service, path, mask).json["errors"] == {"x": ["Unknown parameter."]}


@pytest.mark.parametrize(("mask", "kind"), [(CANNOT_BE_READ, "ParseError"), (DOES_NOT_FIT, "MaskError")])
@pytest.mark.parametrize("path", [TRIPS, DAILY, WEEKLY, MONTHLY, SCORE])
def test_the_mask_comes_before_the_record(service, path, mask, kind):
    assert service.get(path).json["error"] == "NotFound"
    assert masked(service, path, mask).json["error"] == kind


@pytest.mark.parametrize("mask", ["{}", "nope", "data{}", "data{driving_summary}", "data{nope}", "count", "*"])
@pytest.mark.parametrize("path", [TRIPS, DAILY, WEEKLY, MONTHLY, SCORE])
def test_an_unknown_driver_is_not_found_with_any_mask(service, path, mask):
    response = masked(service, path, mask)
    assert (response.status_code, response.json) == (
        404,
        {**service.get(path).json, "request_id": response.json["request_id"]},
    )


@pytest.fixture
def idle(service, load):
    """A service with a driver who drove, d1, and one who did not, d2."""
    load(STORED, drivers=[make_driver("d1"), make_driver("d2")])
    return service


@pytest.mark.parametrize(
    ("mask", "drove"),
    [
        ("data{driving_summary{trip_count}}", {"trip_count": 1}),
        ("data{driving_summary{nope}}", {}),
        ("data{driving_summary{events_summary{nope}}}", {"events_summary": {}}),
        ("data{driving_summary{focus_area{nope}}}", {"focus_area": {}}),
    ],
)
@pytest.mark.parametrize("path", [DAILY, WEEKLY, MONTHLY])
def test_a_driver_without_trips_has_no_summary_with_any_mask(idle, path, mask, drove):
    response = masked(idle, f"{path}&driver_id=d2", mask)
    assert response.text == text({"data": [{"driving_summary": drove}, {}]})


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        ("data{driving_summary}", []),
        ("data{nope}", []),
        ("data{driver_info}", ["driver_info"]),
        ("data{driving_summary,driver_info}", ["driver_info"]),
        ("data{driving_summary{trip_count},*}", ["driver_info"]),
        ("data{*}", ["driver_info"]),
        ("data", ["driver_info"]),
    ],
)
@pytest.mark.parametrize("path", [DAILY, WEEKLY, MONTHLY])
def test_a_masked_element_without_trips_has_only_the_driver(idle, path, mask, left):
    _, part = masked(idle, f"{path}&driver_id=d2", mask).json["data"]
    assert list(part) == left


@pytest.mark.parametrize("path", [DAILY, WEEKLY, MONTHLY])
def test_a_masked_aggregate_keeps_the_order_of_its_drivers(idle, path):
    response = masked(idle, f"{path.replace('d1', 'd2')}&driver_id=d1", "data{driver_info{driver_id}}")
    assert response.text == text({"data": [{"driver_info": {"driver_id": name}} for name in ("d2", "d1")]})


# Far deeper than Python's stack. No request line or header is that long.
DEEP = [20_000, pytest.param(200_000, marks=pytest.mark.large)]


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("name", ["trips", "nope", "*", "data", "drivers"])
def test_a_huge_mask_gets_the_response_of_a_small_one(loaded, long_timeout, name, deep):
    assert masked(loaded, TRIPS, f"{name}{{" * deep).json["message"] == f"Mask parse error: {MISSING}"
    response, small = (masked(loaded, TRIPS, f"{name}{{" * depth + "}" * depth) for depth in (deep, 3))
    assert (response.status_code, response.data) == (200, small.data)


UNDECLARED = ["tracking_id", "version", "fleet", "_id", "json", "totals", "summary", "canary", "nope", "trail_path"]
DECLARED = ["data", "driver_info", "driver_id", "driving_summary", "daily_summary_breakdown", "date", "events_summary"]
DECLARED += ["total", "series", "explanation", "behaviours", "points_lost", "seconds", "start_date", "fm_score"]
DECLARED += ["drivers", "trips", "events", "event_data", "event_summary", "focus_area", "count", "next_page", "*"]
PLACES = ["{}", "drivers{{{}}}", "trips{{{}}}", "trips{{events{{{}}}}}", "data{{{}}}", "data{{driving_summary{{{}}}}}"]
PLACES += ["total{{{}}}", "series{{explanation{{{}}}}}"]
NAMES = st.sampled_from(UNDECLARED + DECLARED)
PARTS = st.recursive(
    NAMES,
    lambda parts: st.builds("{}{{{}}}".format, NAMES, parts) | st.builds("{},{}".format, parts, parts),
    max_leaves=8,
)
MASKS = st.builds(str.format, st.sampled_from(PLACES), PARTS)


def is_part_of(part, whole):
    """Return whether nothing is found that is not in its place in the whole."""
    if isinstance(part, dict):
        return all(name in whole and is_part_of(value, whole[name]) for name, value in part.items())
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(is_part_of, part, whole))
    return part == whole


@pytest.fixture
def canaries(db, service, load):
    """A store whose documents all contain undeclared fields, written past the validators."""
    load(STORED, drivers=[make_driver("d1", first_name="Ada", alias="A.")])
    put_canaries(db)
    return service


@pytest.mark.parametrize("path", ENDPOINTS)
def test_no_mask_returns_undeclared_fields(canaries, path):
    whole = canaries.get(path).json

    @settings(derandomize=True, deadline=None, max_examples=30)
    @given(MASKS)
    def check(mask):
        response = masked(canaries, path, mask)
        assert "canary" not in response.text
        assert response.status_code == 400 or is_part_of(response.json, whole)

    check()


@pytest.mark.parametrize("mask", ["{}", "drivers{{{}}}", "trips{{{}}}", "data{{driver_info{{{}}}}}", "data{{{}}}"])
def test_an_undeclared_field_named_in_a_mask_is_left_out(canaries, mask):
    path = DAILY if "data" in mask else DRIVERS if "drivers" in mask else TRIPS
    whole = canaries.get(path).json
    for name in (*UNDECLARED, "canary{canary}", "fleet{x}"):
        response = masked(canaries, path, mask.format(name))
        assert response.status_code == 200
        assert is_part_of(response.json, whole)
        assert name.partition("{")[0] not in response.text
