"""GET /driver-aggregate/daily, /weekly and /monthly."""

import pytest

from tests.factories import make_driver, make_event_summary, make_trip

DAILY, WEEKLY, MONTHLY = (f"/driver-aggregate/{name}" for name in ("daily", "weekly", "monthly"))
# A start_date of each.
DATES = {DAILY: "2026-03-09", WEEKLY: "2026-03-09", MONTHLY: "2026-03-01"}
SUMMARY_FIELDS = [
    "fm_score",
    "fm_grade",
    "trip_count",
    "distance_miles",
    "duration_seconds",
    "night_driving_seconds",
    "highway_miles",
    "events_summary",
    "focus_area",
]
FLAGS = ["is_phone_use", "is_overspeeding", "is_hard_brake", "is_acceleration"]


def summary(response):
    return response.json["data"][0]["driving_summary"]


def test_a_daily_summary_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), drivers=[make_driver("d1", alias="Ada")])
    response = service.get(DAILY, start_date="2026-03-10", driver_id="d1")
    assert list(response.json) == ["data"]
    assert list(response.json["data"][0]) == ["driver_info", "driving_summary"]
    assert list(response.json["data"][0]["driver_info"]) == list(make_driver())
    assert list(summary(response)) == [*SUMMARY_FIELDS, "date"]
    assert list(summary(response)["events_summary"]) == list(make_event_summary())
    assert list(summary(response)["focus_area"]) == FLAGS


def test_a_weekly_summary_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), make_trip("2026-03-09T08:00"))
    response = service.get(WEEKLY, start_date="2026-03-09", driver_id="d1")
    assert list(summary(response)) == [*SUMMARY_FIELDS, "start_date", "end_date", "daily_summary_breakdown"]
    assert (summary(response)["start_date"], summary(response)["end_date"]) == ("2026-03-09", "2026-03-15")
    assert list(summary(response)["events_summary"]) == list(make_event_summary())
    assert list(summary(response)["focus_area"]) == FLAGS
    for day in summary(response)["daily_summary_breakdown"]:
        assert list(day) == [*SUMMARY_FIELDS, "date"]
        assert list(day["events_summary"]) == list(make_event_summary())
        assert list(day["focus_area"]) == FLAGS


def test_a_day_adds_up_its_trips_to_the_last_millisecond(service, load):
    load(
        make_trip("2026-03-09T23:59:59.999", distance_miles=100.0),
        make_trip("2026-03-10T00:00", distance_miles=0.1, duration_seconds=10, highway_miles=1.5),
        make_trip("2026-03-10T12:00", distance_miles=0.2, duration_seconds=20.5, night_driving_seconds=3),
        make_trip("2026-03-10T23:59:59.999", distance_miles=0.3, duration_seconds=30),
        make_trip("2026-03-11T00:00", distance_miles=100.0),
    )
    result = summary(service.get(DAILY, start_date="2026-03-10", driver_id="d1"))
    assert (result["trip_count"], result["duration_seconds"], result["date"]) == (3, 60.5, "2026-03-10")
    assert result["distance_miles"] == pytest.approx(0.6, rel=1e-12)
    assert (result["highway_miles"], result["night_driving_seconds"]) == (1.5, 3)


def test_aggregates_count_trips_that_are_not_visible_yet(service, load):
    load(make_trip("2026-03-17T23:00", trip_end_time=1_773_835_199_000))
    assert service.get("/driver/d1/trips", start_date="2026-03-17").json["count"] == 0
    assert summary(service.get(DAILY, start_date="2026-03-17", driver_id="d1"))["trip_count"] == 1


def test_the_score_follows_the_contract(service, load):
    # Per 1,000 s and 100 miles: phone 75 s = half its cap, speeding 300 s = past its cap, 5 brakes = a quarter, 0.
    events = make_event_summary(phone_use_time_seconds=75, overspeeding_time_seconds=300, hard_brake_count=5)
    load(make_trip("2026-03-10T08:00", duration_seconds=1000, distance_miles=100, event_summary=events))
    result = summary(service.get(DAILY, start_date="2026-03-10", driver_id="d1"))
    assert (result["fm_score"], result["fm_grade"]) == (100 - 17.5 - 30 - 5, "poor")
    assert list(result["focus_area"].values()) == [True, True, False, False]


@pytest.mark.parametrize(
    ("brakes", "score", "grade"),
    [(0, 100, "excellent"), (15, 85, "excellent"), (16, 84, "good"), (20, 80, "good"), (10_000, 80, "good")],
)
def test_grades_begin_at_their_scores(service, load, brakes, score, grade):
    load(make_trip(distance_miles=100, event_summary=make_event_summary(hard_brake_count=brakes)))
    result = summary(service.get(DAILY, start_date="2026-03-10", driver_id="d1"))
    assert (result["fm_score"], result["fm_grade"]) == (score, grade)


@pytest.mark.parametrize(("seconds", "score"), [(1, 99.8), (3, 99.3), (150, 65.0)])
def test_scores_are_rounded_half_up(service, load, seconds, score):
    # A second in a thousand costs 35 / 150 = 0.2333 points.
    events = make_event_summary(phone_use_time_seconds=seconds)
    load(make_trip(duration_seconds=1000, event_summary=events))
    assert summary(service.get(DAILY, start_date="2026-03-10", driver_id="d1"))["fm_score"] == score


def test_a_score_halfway_between_two_decimals_goes_up(service, load):
    # 20 weight × 1 brake / 80 miles × 100 / 20 = 1.25 points.
    load(make_trip(distance_miles=80, event_summary=make_event_summary(hard_brake_count=1)))
    assert summary(service.get(DAILY, start_date="2026-03-10", driver_id="d1"))["fm_score"] == 98.8


def test_zero_distance_and_duration_cost_nothing(service, load):
    events = make_event_summary(hard_brake_count=3, phone_use_time_seconds=9)
    load(make_trip(distance_miles=0, duration_seconds=0, event_summary=events))
    result = summary(service.get(DAILY, start_date="2026-03-10", driver_id="d1"))
    assert (result["fm_score"], any(result["focus_area"].values())) == (100, False)


def test_a_week_is_scored_from_its_totals_and_breaks_down_to_the_days_driven_oldest_first(service, load):
    load(
        make_trip("2026-03-15T23:59:59.999", distance_miles=90),
        make_trip("2026-03-09T00:00", distance_miles=10, event_summary=make_event_summary(hard_brake_count=10)),
        make_trip("2026-03-08T23:59:59.999"),
        make_trip("2026-03-16T00:00"),
    )
    result = summary(service.get(WEEKLY, start_date="2026-03-09", driver_id="d1"))
    assert [(day["date"], day["fm_score"]) for day in result["daily_summary_breakdown"]] == [
        ("2026-03-09", 80),
        ("2026-03-15", 100),
    ]
    assert (result["fm_score"], result["trip_count"], result["distance_miles"]) == (90, 2, 100)


def test_a_week_in_progress_holds_today(service, load):
    load(make_trip("2026-03-16T08:00"), make_trip("2026-03-18T11:00"))
    result = summary(service.get(WEEKLY, start_date="2026-03-16", driver_id="d1"))
    assert [day["date"] for day in result["daily_summary_breakdown"]] == ["2026-03-16", "2026-03-18"]


@pytest.mark.parametrize("path", DATES)
def test_the_element_of_a_driver_who_did_not_drive_has_no_summary(service, load, path):
    load(make_trip("2026-02-10T08:00", "idle"), make_trip("2026-03-09T08:00", "busy"))
    busy, idle = service.get(path, start_date=DATES[path], driver_id=["busy", "idle"]).json["data"]
    assert list(busy) == ["driver_info", "driving_summary"]
    assert list(idle) == ["driver_info"]
    assert idle["driver_info"]["driver_id"] == "idle"


@pytest.mark.parametrize("path", DATES)
def test_each_driver_is_returned_once_in_the_order_of_the_parameters(service, load, path):
    load(*(make_trip("2026-03-09T08:00", driver_id) for driver_id in "abc"))
    response = service.get(path, start_date=DATES[path], driver_id=["c", "a", "c", "b", "a"])
    assert [row["driver_info"]["driver_id"] for row in response.json["data"]] == ["c", "a", "b"]


@pytest.mark.parametrize("path", DATES)
def test_unknown_drivers_make_the_request_not_found_and_are_named(service, load, path):
    load(make_trip(driver_id="known"))
    load(make_trip(driver_id="theirs"), fleet="f2")
    response = service.get(path, start_date=DATES[path], driver_id=["known", "theirs", "nobody"])
    assert (response.status_code, response.json["error"]) == (404, "NotFound")
    assert ("theirs" in response.json["message"], "nobody" in response.json["message"]) == (True, True)
    assert "known" not in response.json["message"]


REPEAT = "Repeat driver_id for several values: driver_id=a&driver_id=b."


@pytest.mark.parametrize("path", DATES)
@pytest.mark.parametrize(("driver_id", "hint"), [("a,b", f"a,b. {REPEAT}"), ("nobody", "nobody")])
def test_an_unknown_driver_with_commas_hints_at_repeating_the_parameter(service, path, driver_id, hint):
    response = service.get(path, start_date=DATES[path], driver_id=driver_id)
    assert (response.status_code, response.json["message"]) == (404, f"Not in this fleet: {hint}")


def test_a_driver_whose_identifier_has_commas_is_found(service, load):
    load(make_trip(driver_id="a,b"))
    assert service.get(DAILY, start_date="2026-03-10", driver_id="a,b").status_code == 200


@pytest.mark.parametrize("path", DATES)
@pytest.mark.parametrize("name", ["driver_id[]", "driver_ids"])
@pytest.mark.parametrize("setting", ["reject", "ignore"])
def test_another_spelling_of_driver_id_hints_at_it_with_either_setting(make_service, path, name, setting):
    errors = make_service(unknown_parameters=setting).errors(f"{path}?start_date={DATES[path]}&{name}=a&{name}=b")
    assert list(errors) == (["driver_id", name] if setting == "reject" else ["driver_id"])
    assert REPEAT in str(errors)


@pytest.mark.parametrize("path", DATES)
def test_drivers_are_required_and_twenty_at_the_most_as_sent(service, load, path):
    load(make_trip(driver_id="d"))
    assert service.errors(path, start_date=DATES[path]) == {"driver_id": ["Must be given."]}
    assert list(service.errors(path, start_date=DATES[path], driver_id=["d"] * 21)) == ["driver_id"]
    assert len(service.get(path, start_date=DATES[path], driver_id=["d"] * 20).json["data"]) == 1


@pytest.mark.parametrize("path", DATES)
def test_a_driver_id_out_of_bounds_is_refused_and_numbered(service, path):
    errors = service.errors(
        f"{path}?start_date={DATES[path]}&driver_id=a&driver_id=&driver_id=%ff&driver_id={'x' * 129}"
    )
    assert [reason.split(":")[0] for reason in errors["driver_id"]] == ["Value 2", "Value 3", "Value 4"]


@pytest.mark.parametrize(
    ("path", "date"),
    [
        (DAILY, "2026-03-18"),
        (DAILY, "2026-03-19"),
        (DAILY, "2025-09-17"),
        (WEEKLY, "2026-03-10"),
        (WEEKLY, "2026-03-23"),
        (WEEKLY, "2025-09-15"),
    ],
)
def test_today_the_future_and_the_distant_past_are_refused(service, path, date):
    assert list(service.errors(path, start_date=date, driver_id="d1")) == ["start_date"]


def test_a_week_that_begins_today_is_refused(service, clock):
    clock.move_to("2026-03-16T12:00:00Z")
    assert list(service.errors(WEEKLY, start_date="2026-03-16", driver_id="d1")) == ["start_date"]


@pytest.mark.parametrize("path", DATES)
@pytest.mark.parametrize("query", [{"limit": "1"}, {"page": "1"}, {"driver_id[]": "d1"}, {"driver_id[$ne]": "d1"}])
def test_other_parameters_are_refused(service, path, query):
    assert list(service.errors(path, start_date=DATES[path], driver_id="d1", **query)) == list(query)


def test_twenty_of_the_longest_identifiers_are_served(service, load):
    names = [f"{number:02}" + "\U0001d11e" * 31 + "xx" for number in range(20)]
    load(*(make_trip("2026-03-09T08:00", name) for name in names))
    response = service.get(WEEKLY, start_date="2026-03-09", driver_id=names)
    assert [row["driver_info"]["driver_id"] for row in response.json["data"]] == names


def test_sums_past_what_a_document_can_hold_saturate(service, load):
    events = make_event_summary(hard_brake_count=2**63 - 1, phone_use_time_seconds=1.7e308)
    load(*(make_trip(f"2026-03-09T0{n}:00", distance_miles=1.7e308, event_summary=events) for n in range(3)))
    for path, date in DATES.items():
        result = summary(service.get(path, start_date=date, driver_id="d1"))
        assert result["distance_miles"] == result["events_summary"]["phone_use_time_seconds"] == 1.7976931348623157e308
        assert result["events_summary"]["hard_brake_count"] == 2**63 - 1
