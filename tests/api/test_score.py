"""GET /driver/{driver_id}/score."""

from urllib.parse import quote

import pytest

from tests.factories import make_driver, make_event_summary, make_trip

PATH = "/driver/d1/score"
EXPLANATION = ["fm_score", "fm_grade", "trip_count", "distance_miles", "duration_seconds", "behaviours"]
BEHAVIOUR = ["behaviour", "count", "seconds", "rate", "cap", "weight", "points_lost", "is_focus_area"]


def dates(response):
    return [(part["start_date"], part["end_date"]) for part in response.json["series"]]


def test_a_response_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), drivers=[make_driver("d1", alias="Ada")])
    body = service.get(PATH, start_date="2026-03-09").json
    assert list(body) == ["driver_info", "start_date", "end_date", "total", "series"]
    assert body["driver_info"] == service.get("/drivers").json["drivers"][0]
    assert list(body["series"][0]) == ["start_date", "end_date", "explanation"]
    for explanation in (body["total"], body["series"][0]["explanation"]):
        assert list(explanation) == EXPLANATION
        assert [list(behaviour) for behaviour in explanation["behaviours"]] == [BEHAVIOUR] * 4


def test_every_behaviour_is_explained_in_the_order_of_the_contract(service, load):
    # Per 1,000 s and 100 miles: half the cap of phone use, past that of overspeeding, a quarter, 0.
    events = {"phone_use_time_seconds": 75, "overspeeding_time_seconds": 300, "hard_brake_count": 5}
    load(make_trip(duration_seconds=1000, distance_miles=100, event_summary=make_event_summary(**events)))
    total = service.get(PATH, start_date="2026-03-10").json["total"]
    assert (total["fm_score"], total["fm_grade"]) == (100 - 17.5 - 30 - 5, "poor")
    assert [list(behaviour.values()) for behaviour in total["behaviours"]] == [
        ["phone_use", 0, 75, 0.075, 0.15, 35, 17.5, True],
        ["overspeeding", 0, 300, 0.3, 0.2, 30, 30, True],
        ["hard_brake", 5, None, 5, 20, 20, 5, False],
        ["rapid_acceleration", 0, None, 0, 20, 15, 0, False],
    ]


def test_of_behaviours_that_cost_time_both_count_and_seconds_are_given(service, load):
    load(make_trip(event_summary=make_event_summary(phone_use_count=2, phone_use_time_seconds=1.5)))
    phone_use = service.get(PATH, start_date="2026-03-10").json["total"]["behaviours"][0]
    assert (phone_use["count"], phone_use["seconds"]) == (2, 1.5)


def test_zero_distance_and_duration_cost_nothing(service, load):
    load(make_trip(distance_miles=0, duration_seconds=0, event_summary=dict.fromkeys(make_event_summary(), 9)))
    total = service.get(PATH, start_date="2026-03-10").json["total"]
    assert total["fm_score"] == 100
    assert {(one["rate"], one["points_lost"], one["is_focus_area"]) for one in total["behaviours"]} == {(0, 0, False)}


@pytest.mark.parametrize(("start", "end"), [("2026-03-10", "2026-03-17"), ("2026-03-17", "2026-03-17")])
def test_a_window_ends_yesterday_by_default(service, load, start, end):
    load(make_trip("2026-03-17T08:00"), make_trip("2026-03-18T08:00"))
    body = service.get(PATH, start_date=start).json
    assert (body["start_date"], body["end_date"], body["total"]["trip_count"]) == (start, end, 1)


def test_a_window_that_starts_today_ends_today(service, load):
    load(make_trip("2026-03-17T08:00"), make_trip("2026-03-18T11:59"))
    response = service.get(PATH, start_date="2026-03-18")
    assert dates(response) == [("2026-03-18", "2026-03-18")]
    assert response.json["total"]["trip_count"] == 1


def test_a_window_may_end_today_and_counts_trips_that_are_not_visible_yet(service, load):
    load(make_trip("2026-03-18T11:00"))
    assert service.get("/driver/d1/trips", start_date="2026-03-18").json["count"] == 0
    assert service.get(PATH, start_date="2026-03-01", end_date="2026-03-18").json["total"]["trip_count"] == 1


def test_weeks_are_the_default_and_clipped_to_the_window(service, load):
    load(*(make_trip(f"2026-03-{day:02}T08:00") for day in (2, 8, 9, 15, 16, 17)))
    response = service.get(PATH, start_date="2026-03-03", end_date="2026-03-16")
    assert dates(response) == [("2026-03-03", "2026-03-08"), ("2026-03-09", "2026-03-15"), ("2026-03-16", "2026-03-16")]
    assert [part["explanation"]["trip_count"] for part in response.json["series"]] == [1, 2, 1]


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("day", [("2026-01-31", "2026-01-31"), ("2026-02-28", "2026-02-28")]),
        ("week", [("2026-01-30", "2026-02-01"), ("2026-02-23", "2026-02-28")]),
        ("month", [("2026-01-30", "2026-01-31"), ("2026-02-01", "2026-02-28")]),
    ],
)
def test_a_series_has_only_intervals_in_which_the_driver_drove(service, load, interval, expected):
    load(*(make_trip(f"2026-{date}T23:59:59.999") for date in ("01-29", "01-31", "02-28", "03-01")))
    window = {"start_date": "2026-01-30", "end_date": "2026-02-28"}
    assert dates(service.get(PATH, **window, interval=interval)) == expected


def test_a_february_of_a_leap_year_ends_on_the_29th(service, load, clock):
    clock.move_to("2024-03-18T12:00:00Z")
    load(make_trip("2024-02-29T23:59:59.999"), make_trip("2024-03-01T00:00"))
    response = service.get(PATH, start_date="2024-02-01", interval="month")
    assert dates(response) == [("2024-02-01", "2024-02-29"), ("2024-03-01", "2024-03-17")]
    assert [part["explanation"]["trip_count"] for part in response.json["series"]] == [1, 1]


def test_without_trips_in_the_window_there_is_no_total(service, load):
    load(make_trip("2026-03-08T23:59:59.999"), make_trip("2026-03-11T00:00"))
    body = service.get(PATH, start_date="2026-03-09", end_date="2026-03-10").json
    assert (body["total"], body["series"]) == (None, [])


def test_a_driver_who_never_drove_has_no_total(service, load):
    load(drivers=[make_driver("d1")])
    body = service.get(PATH, start_date="2026-03-09").json
    assert (body["driver_info"]["driver_id"], body["total"], body["series"]) == ("d1", None, [])


@pytest.mark.parametrize("driver_id", ["nobody", "theirs"])
def test_another_fleets_driver_is_not_found_like_one_that_does_not_exist(service, load, driver_id):
    load(make_trip(driver_id="d1"))
    load(make_trip(driver_id="theirs"), fleet="f2")
    response = service.get(f"/driver/{driver_id}/score", start_date="2026-03-09")
    assert (response.status_code, response.json["message"]) == (404, f"Not in this fleet: {driver_id}")


def test_a_driver_that_two_fleets_have_is_explained_from_the_own_trips(service, load):
    load(make_trip("2026-03-10T08:00", distance_miles=1))
    load(make_trip("2026-03-10T08:00", distance_miles=2), fleet="f2")
    miles = [
        service.get(PATH, start_date="2026-03-10", fleet=fleet).json["total"]["distance_miles"]
        for fleet in ("f1", "f2")
    ]
    assert miles == [1, 2]


@pytest.mark.parametrize("driver_id", ["a/b", "a/score", "../x", "\U0001d11e" * 32, "a b%2F"])
def test_any_identifier_can_be_explained(service, load, driver_id):
    load(make_trip("2026-03-10T08:00", driver_id))
    response = service.get(f"/driver/{quote(driver_id, safe='')}/score", start_date="2026-03-10")
    assert response.json["driver_info"]["driver_id"] == driver_id


def test_every_invalid_parameter_is_named(service):
    query = {"start_date": "2025-09-17", "end_date": "2026-03-19", "interval": "year", "limit": "5"}
    assert set(service.errors(PATH, **query)) == set(query)


def test_a_window_that_ends_before_it_starts_is_refused_along_with_what_else_is_wrong(service):
    errors = service.errors(PATH, start_date="2026-03-10", end_date="2026-03-09", interval="Day")
    assert errors == {
        "end_date": ["Must be from start_date to 2026-03-18."],
        "interval": ["Must be one of: day, week, month."],
    }


@pytest.mark.parametrize("name", ["start_date", "end_date", "interval"])
def test_a_parameter_given_twice_is_refused(service, name):
    values = {"start_date": "2026-03-01", "end_date": "2026-03-02", "interval": "day"}
    query = "&".join(f"{key}={value}" for key, value in [*values.items(), (name, values[name])])
    assert service.errors(f"{PATH}?{query}") == {name: ["Must be given once; it is given 2 times."]}


def test_the_start_is_required(service):
    assert service.errors(PATH, end_date="2026-03-10") == {"start_date": ["Must be given."]}


@pytest.mark.parametrize(("start", "status"), [("2025-09-17", 400), ("2025-09-18", 200), ("2026-03-18", 200)])
def test_a_window_starts_within_six_months(service, load, start, status):
    load(make_trip("2025-09-17T08:00"))
    assert service.get(PATH, start_date=start).status_code == status


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("{total{fm_score}}", '{"total":{"fm_score":80.0}}'),
        ("total{behaviours{points_lost,behaviour},trip_count},end_date", None),
        (
            "series{explanation{fm_grade},start_date}",
            '{"series":[{"explanation":{"fm_grade":"good"},"start_date":"2026-03-10"}]}',
        ),
        ("series{nope}", '{"series":[{}]}'),
        ("driver_info{driver_id}", '{"driver_info":{"driver_id":"d1"}}'),
        ("end_date,start_date", '{"end_date":"2026-03-12","start_date":"2026-03-10"}'),
        ("{}", "{}"),
    ],
)
def test_a_mask_selects_fields_in_its_order(service, load, mask, expected):
    load(make_trip("2026-03-10T08:00", distance_miles=100, event_summary=make_event_summary(hard_brake_count=99)))
    window = {"start_date": "2026-03-10", "end_date": "2026-03-12"}
    response = service.get(PATH, **window, headers={"X-Fields": mask})
    if expected is None:
        points = [{"points_lost": lost, "behaviour": name} for name, lost in zip(NAMES, (0, 0, 20, 0), strict=True)]
        assert response.json == {"total": {"behaviours": points, "trip_count": 1}, "end_date": "2026-03-12"}
    else:
        assert response.text == expected


@pytest.mark.parametrize(("mask", "body"), [("total", {"total": None}), ("total{fm_score},series{start_date}", None)])
def test_a_mask_leaves_a_missing_total_null(service, load, mask, body):
    load(drivers=[make_driver("d1")])
    response = service.get(PATH, start_date="2026-03-09", headers={"X-Fields": mask})
    assert response.json == (body or {"total": None, "series": []})


def test_an_etag_changes_with_the_default_end_of_the_window(service, load, clock):
    load(make_trip("2026-03-10T08:00"))
    etag = service.get(PATH, start_date="2026-03-09").headers["ETag"]
    clock.move_to("2026-03-19T00:00:00Z")
    response = service.get(PATH, start_date="2026-03-09", headers={"If-None-Match": etag})
    assert (response.status_code, response.json["end_date"]) == (200, "2026-03-18")


@pytest.mark.parametrize(
    ("date", "status"), [("2026-03-08", 304), ("2026-03-09", 200), ("2026-03-16", 200), ("2026-03-17", 304)]
)
def test_only_trips_in_the_window_change_an_etag(service, load, date, status):
    load(make_trip("2026-03-01T08:00"), make_trip("2026-03-10T08:00"), make_trip("2026-03-31T08:00"))
    query = {"start_date": "2026-03-09", "end_date": "2026-03-16"}
    etag = service.get(PATH, **query).headers["ETag"]
    load(make_trip(f"{date}T08:00"))
    assert service.get(PATH, **query, headers={"If-None-Match": etag}).status_code == status


def test_sums_past_what_a_document_can_hold_saturate(service, load):
    events = make_event_summary(hard_brake_count=2**63 - 1, phone_use_time_seconds=1.7e308)
    load(*(make_trip(f"2026-03-0{n}T08:00", distance_miles=5e-324, event_summary=events) for n in (7, 8, 9)))
    total = service.get(PATH, start_date="2026-03-01").json["total"]
    phone_use, _, hard_brake, _ = total["behaviours"]
    assert phone_use["seconds"] == hard_brake["rate"] == 1.7976931348623157e308
    assert (hard_brake["count"], hard_brake["points_lost"], total["fm_score"]) == (2**63 - 1, 20, 45.0)


NAMES = ("phone_use", "overspeeding", "hard_brake", "rapid_acceleration")
