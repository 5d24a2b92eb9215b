"""GET /driver-aggregate/window, against the summaries of whole periods, the explained score, and the trips."""

import datetime
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import make_driver, make_event_summary, make_trip
from tests.score_reference import add_up, between, check_totals, is_close, make_trips

PATH, SCORE = "/driver-aggregate/window", "/driver/{}/score"
TODAY, FIRST = datetime.date(2026, 3, 18), datetime.date(2025, 9, 18)
EXAMPLES = [25, pytest.param(300, marks=pytest.mark.large)]
# The fields of a DrivingSummary, and what it has in common with the explanation of a score.
SUMMARY = ["fm_score", "fm_grade", "trip_count", "distance_miles", "duration_seconds", "night_driving_seconds"]
SUMMARY += ["highway_miles", "events_summary", "focus_area"]
COMMON = SUMMARY[:5]
WEEK = {"start_date": "2026-03-09", "end_date": "2026-03-15"}


def get_ids(response):
    return [element["driver_info"]["driver_id"] for element in response.json["data"]]


def get_pages(service, **query):
    """Return the elements of all pages."""
    data, page = [], 1
    while page:
        response = service.get(PATH, **query, page=page).json
        data, page = data + response["data"], response["next_page"]
    return data


def test_a_response_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), drivers=[make_driver("d1", alias="Ada")])
    body = service.get(PATH, **WEEK, driver_id="d1").json
    names = ["count", "limit", "current_page", "next_page", "start_date", "end_date", "data"]
    assert list(body.items())[:-1] == list(zip(names, [1, 50, 1, None, *WEEK.values()], strict=False))
    (element,) = body["data"]
    assert list(element) == ["driver_info", "driving_summary"]
    assert element["driver_info"] == service.get("/drivers").json["drivers"][0]
    assert list(element["driving_summary"]) == SUMMARY


@pytest.fixture
def trips(load):
    """Trips of three drivers, on some days of the last months; a fourth never drove."""
    trips = {f"d{n}": make_trips("2025-08-20", "2026-03-18", f"d{n}", seed=n) for n in (1, 2, 3)}
    load(*(trip for of_driver in trips.values() for trip in of_driver), drivers=[make_driver("idle")])
    return {**trips, "idle": []}


@st.composite
def windows(draw):
    start = draw(st.dates(FIRST, TODAY))
    return {"start_date": str(start), "end_date": str(draw(st.dates(start, TODAY)))}


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_figures_of_any_window_are_those_of_the_trips_and_of_the_score(service, trips, examples):
    @settings(max_examples=examples, derandomize=True, deadline=None)
    @given(windows(), st.sampled_from([1, 2, 3, 100]))
    def check(window, limit):
        data = get_pages(service, **window, limit=limit)
        assert [element["driver_info"]["driver_id"] for element in data] == list(trips)
        for driver_id, element in zip(trips, data, strict=True):
            in_window, summary = between(trips[driver_id], *window.values()), element.get("driving_summary")
            total = service.get(SCORE.format(driver_id), **window).json["total"]
            assert (summary is None, total is None) == (not in_window, not in_window)
            if summary:
                check_totals(summary, in_window)
                assert [total[name] for name in COMMON] == [summary[name] for name in COMMON]
                for name, value in summary["events_summary"].items():
                    assert is_close(value, add_up(in_window, "event_summary", name))

    check()


@pytest.mark.parametrize(
    ("path", "window"),
    [
        ("daily", ["2026-03-11", "2026-03-11"]),
        ("daily", ["2026-02-28", "2026-02-28"]),
        ("weekly", ["2026-02-23", "2026-03-01"]),
        ("weekly", ["2025-12-29", "2026-01-04"]),
        ("weekly", ["2026-03-16", "2026-03-18"]),
        ("monthly", ["2026-01-01", "2026-01-31"]),
        ("monthly", ["2026-03-01", "2026-03-18"]),
    ],
)
def test_a_whole_day_week_or_month_has_the_bits_of_its_summary(service, load, path, window):
    rng = random.Random(path)
    for seed in range(3):
        trips = make_trips("2025-12-20", "2026-03-18", f"d{seed}", seed=seed)
        # Sums of such numbers depend on their order and on how rounding is compensated.
        load(*({**trip, "highway_miles": rng.choice([0, 7, 1e16, 1.0, 1e-9, rng.random()])} for trip in trips))
    window = dict(zip(WEEK, window, strict=True))
    ids = {"driver_id": ["d2", "d0", "d1"]}
    whole = service.get(f"/driver-aggregate/{path}", start_date=window["start_date"], **ids).json["data"]
    for element in whole:
        summary = element.get("driving_summary", {})
        for name in summary.keys() - {*SUMMARY}:
            del summary[name]
    assert json.dumps(service.get(PATH, **window, **ids).json["data"]) == json.dumps(whole)


def test_the_drivers_named_come_once_in_the_order_first_named(service, load):
    load(drivers=[make_driver("idle"), make_driver("d1"), make_driver("d2")])
    response = service.get(PATH, **WEEK, driver_id=["idle", "d2", "idle", "d1", "d2"])
    assert get_ids(response) == ["idle", "d2", "d1"]
    assert {name: response.json[name] for name in ("count", "limit", "current_page", "next_page")} == {
        "count": 3,
        "limit": 50,
        "current_page": 1,
        "next_page": None,
    }
    assert list(response.json["data"][0]) == ["driver_info"]


def test_the_drivers_named_come_in_pages(service, load):
    load(make_trip("2026-03-10T08:00", "d2"), drivers=[make_driver(f"d{n}") for n in range(1, 6)])
    named = {"driver_id": ["d3", "d2", "d3", "d5"]}
    data = get_pages(service, **WEEK, **named, limit=2)
    assert data == service.get(PATH, **WEEK, **named).json["data"]
    assert ["driving_summary" in element for element in data] == [False, True, False]
    response = service.get(PATH, **WEEK, **named, limit=2, page=2)
    page = {"count": 3, "limit": 2, "current_page": 2, "next_page": None}
    assert (get_ids(response), {name: response.json[name] for name in page}) == (["d5"], page)
    assert 'driver_id=d3&driver_id=d5&limit=2&page=1>; rel="prev"' in response.headers["Link"]
    assert service.get(PATH, **WEEK, **named, page=9).json["data"] == []


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("limit=101", ["limit"]),
        ("limit=0&page=x&end_date=2026-03-01&nope=1", ["end_date", "limit", "nope", "page"]),
        ("&driver_id=d1" * 20, ["driver_id"]),
        ("driver_id=", ["driver_id"]),
    ],
)
def test_every_wrong_parameter_of_a_page_of_named_drivers_is_named(shared_service, query, wrong):
    assert sorted(shared_service.errors(f"{PATH}?start_date=2026-03-09&driver_id=d1&{query}")) == wrong


def test_unknown_drivers_are_named_and_another_fleets_are_unknown(service, load):
    load(make_trip(driver_id="known"))
    load(make_trip(driver_id="theirs"), fleet="f2")
    ids = ["nobody", "known", "theirs"]
    for page in ({}, {"limit": 1, "page": 2}, {"page": 9}):
        response = service.get(PATH, **WEEK, **page, driver_id=ids, headers={"X-Fields": "count"})
        assert (response.status_code, response.json["message"]) == (404, "Not in this fleet: nobody, theirs")
    assert get_ids(service.get(PATH, **WEEK)) == ["known"]


@pytest.mark.parametrize(("count", "page"), [(0, 1), (1, 2), (150, 4)])
def test_an_empty_fleet_and_a_page_past_the_end_have_no_drivers(service, load, count, page):
    load(drivers=[make_driver(f"d{n}") for n in range(count)])
    body = service.get(PATH, **WEEK, page=page).json
    assert (body["count"], body["current_page"], body["next_page"], body["data"]) == (count, page, None, [])


@pytest.mark.parametrize(
    ("start_date", "end_date", "trip_count"), [("2026-03-01", "2026-03-17", 1), ("2026-03-18", "2026-03-18", 1)]
)
def test_by_default_a_window_ends_yesterday_unless_it_starts_today(service, load, start_date, end_date, trip_count):
    load(make_trip("2026-03-17T23:59"), make_trip("2026-03-18T11:59"))
    body = service.get(PATH, start_date=start_date).json
    assert body["end_date"] == end_date
    assert body["data"][0]["driving_summary"]["trip_count"] == trip_count


def test_sums_past_what_a_document_can_hold_saturate(service, load):
    events = make_event_summary(hard_brake_count=2**63 - 1, phone_use_time_seconds=1.7e308)
    load(*(make_trip(f"2026-03-{n}T08:00", distance_miles=5e-324, event_summary=events) for n in (10, 11, 12)))
    (element,) = service.get(PATH, **WEEK).json["data"]
    events = element["driving_summary"]["events_summary"]
    assert (events["hard_brake_count"], events["phone_use_time_seconds"]) == (2**63 - 1, 1.7976931348623157e308)
    assert element["driving_summary"]["fm_score"] == 45.0


@pytest.mark.parametrize(
    ("date", "status"), [("2026-03-08", 304), ("2026-03-09", 200), ("2026-03-15", 200), ("2026-03-16", 304)]
)
@pytest.mark.parametrize("query", ["", "&driver_id=d1", "&driver_id=d2&driver_id=d1"])
def test_only_trips_in_the_window_change_an_etag(service, load, date, status, query):
    load(make_trip("2026-03-01T08:00"), make_trip("2026-03-31T08:00"), make_trip("2026-03-10T08:00", "d2"))
    path = f"{PATH}?start_date=2026-03-09&end_date=2026-03-15{query}"
    etag = service.get(path).headers["ETag"]
    load(make_trip(f"{date}T08:00"))
    assert service.get(path, headers={"If-None-Match": etag}).status_code == status


def test_an_etag_changes_with_the_default_end_of_the_window(service, load, clock):
    load(make_trip("2026-03-10T08:00"))
    etag = service.get(PATH, start_date="2026-03-09").headers["ETag"]
    clock.move_to("2026-03-19T00:00:00Z")
    response = service.get(PATH, start_date="2026-03-09", headers={"If-None-Match": etag})
    assert (response.status_code, response.json["end_date"]) == (200, "2026-03-18")
