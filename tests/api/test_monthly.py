"""GET /driver-aggregate/monthly."""

import pytest

from tests.factories import make_driver, make_event_summary, make_trip
from tests.score_reference import between, check_totals, make_trips

PATH = "/driver-aggregate/monthly"
LAST_DAYS = {"2025-09": 30, "2025-10": 31, "2025-11": 30, "2025-12": 31, "2026-01": 31, "2026-02": 28, "2026-03": 31}


def get_summary(service, month, **options):
    response = service.get(PATH, start_date=f"{month}-01", driver_id="d1", **options)
    return response.json["data"][0].get("driving_summary")


def days(summary):
    return [day["date"] for day in summary["daily_summary_breakdown"]]


def test_a_monthly_summary_has_the_fields_of_a_weekly_one_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), make_trip("2026-03-09T08:00"), drivers=[make_driver("d1")])
    query = {"driver_id": "d1", "headers": {"X-Fields": "*"}}
    month, week = (
        service.get(f"/driver-aggregate/{kind}", start_date=date, **query).json["data"][0]
        for kind, date in (("monthly", "2026-03-01"), ("weekly", "2026-03-09"))
    )
    assert list(month) == list(week) == ["driver_info", "driving_summary"]
    assert list(month["driving_summary"]) == list(week["driving_summary"])
    assert month["driving_summary"] == week["driving_summary"] | {"start_date": "2026-03-01", "end_date": "2026-03-31"}


@pytest.mark.parametrize(("month", "last"), LAST_DAYS.items())
def test_a_month_has_all_trips_from_its_first_to_its_last_millisecond(service, load, month, last):
    dates = [f"{month}-01T00:00", f"{month}-{last}T23:59:59.999"]
    load(*map(make_trip, dates), make_trip("2025-08-31T23:59:59.999"), make_trip("2026-04-01T00:00"))
    summary = get_summary(service, month)
    assert days(summary) == [date[:10] for date in dates]
    assert (summary["start_date"], summary["end_date"]) == (dates[0][:10], dates[1][:10])


def test_a_february_of_a_leap_year_has_29_days(service, load, clock):
    clock.move_to("2024-03-18T12:00:00Z")
    load(make_trip("2024-02-29T23:59:59.999"), make_trip("2024-03-01T00:00"))
    summary = get_summary(service, "2024-02")
    assert (days(summary), summary["end_date"]) == (["2024-02-29"], "2024-02-29")


def test_the_first_month_of_the_six_is_whole(service, load):
    load(make_trip("2025-09-01T08:00"), make_trip("2025-09-17T08:00"), make_trip("2025-09-18T08:00"))
    assert days(get_summary(service, "2025-09")) == ["2025-09-01", "2025-09-17", "2025-09-18"]


def test_a_month_in_progress_has_today_and_trips_that_are_not_visible_yet(service, load):
    load(make_trip("2026-03-02T08:00"), make_trip("2026-03-18T11:00"))
    assert days(get_summary(service, "2026-03")) == ["2026-03-02", "2026-03-18"]


def test_a_month_is_scored_from_its_totals(service, load):
    events = make_event_summary(hard_brake_count=10)
    load(make_trip("2026-02-01T08:00", distance_miles=10, event_summary=events), make_trip(distance_miles=1))
    load(make_trip("2026-02-28T08:00", distance_miles=90))
    summary = get_summary(service, "2026-02")
    assert [day["fm_score"] for day in summary["daily_summary_breakdown"]] == [80, 100]
    assert (summary["fm_score"], summary["trip_count"], summary["distance_miles"]) == (90, 2, 100)


@pytest.mark.parametrize(
    ("date", "reason"),
    [
        ("2025-08-01", "Must be from 2025-09-01 to 2026-03-17."),
        ("2026-04-01", "Must be from 2025-09-01 to 2026-03-17."),
        ("2026-03-18", "Must be from 2025-09-01 to 2026-03-17."),
        ("2026-03-02", "Must be the first day of a month, such as 2026-03-01."),
        ("2025-09-18", "Must be the first day of a month, such as 2025-09-01."),
    ],
)
def test_only_the_first_day_of_a_month_of_the_six_is_accepted(service, date, reason):
    assert service.errors(PATH, start_date=date, driver_id="d1") == {"start_date": [reason]}


def test_a_month_that_starts_today_is_refused(service, clock):
    clock.move_to("2026-03-01T12:00:00Z")
    assert list(service.errors(PATH, start_date="2026-03-01", driver_id="d1")) == ["start_date"]


def test_a_trip_that_moves_to_another_month_leaves_the_first(service, load):
    load(make_trip("2026-01-31T08:00", trip_id="t1"), drivers=[make_driver("d1")])
    load(make_trip("2026-02-01T08:00", trip_id="t1"))
    assert (get_summary(service, "2026-01"), days(get_summary(service, "2026-02"))) == (None, ["2026-02-01"])


def test_the_figures_are_those_of_the_trips(service, load):
    trips = make_trips("2025-08-20", "2026-03-18")
    load(*trips)
    for month, last in LAST_DAYS.items():
        summary = get_summary(service, month)
        check_totals(summary, between(trips, f"{month}-01", f"{month}-{last}"))
        for day in summary["daily_summary_breakdown"]:
            check_totals(day, between(trips, day["date"], day["date"]))
