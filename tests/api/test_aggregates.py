"""GET /driver-aggregate/daily, /weekly and /monthly."""

import datetime

import pytest

from tests.factories import make_driver, make_event_summary, make_trip
from tests.score_reference import between, check_totals, make_trips

DAILY, WEEKLY, MONTHLY = (f"/driver-aggregate/{name}" for name in ("daily", "weekly", "monthly"))
DAY = datetime.timedelta(1)
# A start_date of each.
DATES = {DAILY: "2026-03-09", WEEKLY: "2026-03-09", MONTHLY: "2026-03-01"}
LAST_DAYS = {"2025-09": 30, "2025-10": 31, "2025-11": 30, "2025-12": 31, "2026-01": 31, "2026-02": 28, "2026-03": 31}
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


def summary(service, path, date, **options):
    """Return the summary of d1."""
    return service.get(path, start_date=date, driver_id="d1", **options).json["data"][0]["driving_summary"]


def days(summary):
    return [day["date"] for day in summary["daily_summary_breakdown"]]


@pytest.mark.parametrize("path", DATES)
def test_a_summary_has_exactly_the_fields_of_the_contract_in_order(service, load, path):
    load(make_trip("2026-03-09T08:00"), make_trip("2026-03-09T10:00"), drivers=[make_driver("d1", alias="Ada")])
    response = service.get(path, start_date=DATES[path], driver_id="d1")
    assert list(response.json) == ["data"]
    (row,) = response.json["data"]
    assert list(row) == ["driver_info", "driving_summary"]
    assert list(row["driver_info"]) == list(make_driver())
    of_period = ["date"] if path == DAILY else ["start_date", "end_date", "daily_summary_breakdown"]
    assert list(row["driving_summary"]) == [*SUMMARY_FIELDS, *of_period]
    breakdown = row["driving_summary"].get("daily_summary_breakdown", [])
    assert all(list(day) == [*SUMMARY_FIELDS, "date"] for day in breakdown)
    for one in (row["driving_summary"], *breakdown):
        assert (list(one["events_summary"]), list(one["focus_area"])) == (list(make_event_summary()), FLAGS)


@pytest.mark.parametrize("path", [DAILY, WEEKLY])
def test_aggregates_count_trips_that_are_not_visible_yet(service, load, path):
    load(make_trip("2026-03-17T23:00", trip_end_time=1_773_835_199_000))
    assert service.get("/driver/d1/trips", start_date="2026-03-17").json["count"] == 0
    assert summary(service, path, {DAILY: "2026-03-17", WEEKLY: "2026-03-16"}[path])["trip_count"] == 1


def test_the_figures_are_those_of_the_trips(service, load):
    trips = make_trips("2025-08-20", "2026-03-18")
    load(*trips)
    for month, last in LAST_DAYS.items():
        result = summary(service, MONTHLY, f"{month}-01")
        check_totals(result, between(trips, f"{month}-01", f"{month}-{last}"))
        for day in result["daily_summary_breakdown"]:
            check_totals(day, between(trips, day["date"], day["date"]))


@pytest.mark.parametrize(
    ("path", "date", "dates"),
    [
        (WEEKLY, "2026-03-09", ["2026-03-09", "2026-03-15"]),
        *((MONTHLY, f"{month}-01", [f"{month}-01", f"{month}-{last}"]) for month, last in LAST_DAYS.items()),
    ],
)
def test_a_period_has_all_trips_from_its_first_to_its_last_millisecond(service, load, path, date, dates):
    first, last = map(datetime.date.fromisoformat, dates)
    outside = [f"{first - DAY}T23:59:59.999", f"{last + DAY}T00:00"]
    load(*map(make_trip, [f"{first}T00:00", f"{last}T23:59:59.999", *outside]))
    result = summary(service, path, date)
    assert days(result) == dates == [result["start_date"], result["end_date"]]


@pytest.mark.parametrize(("path", "date"), [(WEEKLY, "2026-03-16"), (MONTHLY, "2026-03-01")])
def test_a_period_in_progress_has_today(service, load, path, date):
    load(make_trip("2026-03-16T08:00"), make_trip("2026-03-18T11:00"))
    assert days(summary(service, path, date)) == ["2026-03-16", "2026-03-18"]


@pytest.mark.parametrize("path", DATES)
def test_the_element_of_a_driver_who_did_not_drive_has_no_summary(service, load, path):
    load(make_trip("2026-02-10T08:00", "idle"), make_trip("2026-03-09T08:00", "busy"))
    busy, idle = service.get(path, start_date=DATES[path], driver_id=["busy", "idle"]).json["data"]
    assert (list(busy), list(idle)) == (["driver_info", "driving_summary"], ["driver_info"])
    assert idle["driver_info"]["driver_id"] == "idle"


@pytest.mark.parametrize("path", DATES)
def test_each_driver_is_returned_once_in_the_order_of_the_parameters(service, load, path):
    load(*(make_trip("2026-03-09T08:00", driver_id) for driver_id in ("a", "b", "a,b")))
    response = service.get(path, start_date=DATES[path], driver_id=["b", "a", "b", "a,b", "a"])
    assert [row["driver_info"]["driver_id"] for row in response.json["data"]] == ["b", "a", "a,b"]


@pytest.mark.parametrize("path", DATES)
def test_unknown_drivers_make_the_request_not_found_and_are_named(service, load, path):
    load(make_trip(driver_id="known"))
    load(make_trip(driver_id="theirs"), fleet="f2")
    response = service.get(path, start_date=DATES[path], driver_id=["known", "theirs", "nobody"])
    assert (response.status_code, response.json["error"]) == (404, "NotFound")
    assert response.json["message"] == "Not in this fleet: theirs, nobody"


def test_an_unknown_driver_with_commas_hints_at_repeating_the_parameter(service):
    message = service.get(DAILY, start_date="2026-03-10", driver_id="a,b").json["message"]
    assert message == "Not in this fleet: a,b. Repeat driver_id for several values: driver_id=a&driver_id=b."


def test_sums_past_what_a_document_can_hold_saturate(service, load):
    events = make_event_summary(hard_brake_count=2**63 - 1, phone_use_time_seconds=1.7e308)
    starts = [f"2026-03-{day}T0{hour}:00" for day in ("09", "10") for hour in range(2)]
    load(*(make_trip(start, distance_miles=1.7e308, event_summary=events) for start in starts))
    for path, date in {**DATES, "/driver-aggregate/window": "2026-03-09"}.items():
        result = summary(service, path, date)
        assert result["distance_miles"] == result["events_summary"]["phone_use_time_seconds"] == 1.7976931348623157e308
        assert result["events_summary"]["hard_brake_count"] == 2**63 - 1


def test_a_day_adds_up_its_trips_to_the_last_millisecond(service, load):
    load(
        make_trip("2026-03-09T23:59:59.999", distance_miles=100.0),
        make_trip("2026-03-10T00:00", distance_miles=0.1, duration_seconds=10, highway_miles=1.5),
        make_trip("2026-03-10T12:00", distance_miles=0.2, duration_seconds=20.5, night_driving_seconds=3),
        make_trip("2026-03-10T23:59:59.999", distance_miles=0.3, duration_seconds=30),
        make_trip("2026-03-11T00:00", distance_miles=100.0),
    )
    result = summary(service, DAILY, "2026-03-10")
    assert (result["trip_count"], result["duration_seconds"], result["date"]) == (3, 60.5, "2026-03-10")
    assert result["distance_miles"] == pytest.approx(0.6, rel=1e-12)
    assert (result["highway_miles"], result["night_driving_seconds"]) == (1.5, 3)


def test_a_trip_that_moves_to_another_month_leaves_the_first(service, load):
    load(make_trip("2026-01-31T08:00", trip_id="t1"), drivers=[make_driver("d1")])
    load(make_trip("2026-02-01T08:00", trip_id="t1"))
    (january,) = service.get(MONTHLY, start_date="2026-01-01", driver_id="d1").json["data"]
    assert "driving_summary" not in january
    assert days(summary(service, MONTHLY, "2026-02-01")) == ["2026-02-01"]
