"""UTC dates, their weeks, and days grouped by driver and date."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.dates import (
    dates_from,
    first_of_month,
    last_of_month,
    monday_of,
    month_dates,
    months_of,
    sunday_of,
    week_dates,
)
from scripts.materialize.dates import Day, group_by_dates, midnight, utc_date
from tests.factories import epoch_ms

DATES = [f"2026-03-{day:02}" for day in range(1, 31)]
days = st.sets(st.builds(Day, st.sampled_from("abcde"), st.sampled_from(DATES[:6])))


@given(days)
def test_the_groups_hold_every_day_once_and_no_other(result):
    groups = list(group_by_dates(result))
    covered = [Day(*pair) for drivers, dates in groups for pair in itertools.product(drivers, dates)]
    assert sorted(covered) == sorted(result)
    assert len({tuple(dates) for _, dates in groups}) == len(groups)


def test_drivers_with_the_same_dates_are_one_group():
    assert list(group_by_dates([Day(f"d{n}", date) for date in DATES[1::-1] for n in range(3)])) == [
        (["d0", "d1", "d2"], DATES[:2])
    ]


def test_a_day_that_comes_twice_is_in_one_group_once():
    assert list(group_by_dates([Day("d", DATES[0])] * 2)) == [(["d"], DATES[:1])]


@pytest.mark.parametrize(
    ("time", "date"),
    [
        ("2026-03-10T00:00", "2026-03-10"),
        ("2026-03-10T23:59", "2026-03-10"),
        ("1969-12-31T23:59", "1969-12-31"),
        ("0001-01-01T00:00", "0001-01-01"),
        ("9999-12-31T23:59", "9999-12-31"),
    ],
)
def test_a_time_belongs_to_its_utc_date(time, date):
    assert utc_date(epoch_ms(time)) == date
    assert midnight(date) == epoch_ms(f"{date}T00:00")


@pytest.mark.parametrize(
    ("date", "monday"),
    [("2026-03-09", "2026-03-09"), ("2026-03-15", "2026-03-09"), ("2026-01-01", "2025-12-29")]
    + [("0001-01-03", "0001-01-01"), ("9999-12-31", "9999-12-27")],
)
def test_a_week_begins_with_its_monday(date, monday):
    assert monday_of(date) == monday


@pytest.mark.parametrize(
    ("date", "sunday", "last"),
    [
        ("2026-03-09", "2026-03-15", "2026-03-31"),
        ("2026-03-15", "2026-03-15", "2026-03-31"),
        ("2025-12-31", "2026-01-04", "2025-12-31"),
        ("2026-02-01", "2026-02-01", "2026-02-28"),
        ("2024-02-29", "2024-03-03", "2024-02-29"),
    ],
)
def test_a_week_ends_with_its_sunday_and_a_month_with_its_last_day(date, sunday, last):
    assert (sunday_of(date), last_of_month(date)) == (sunday, last)
    assert (week_dates(monday_of(date))[-1], month_dates(first_of_month(date))[-1]) == (sunday, last)


@pytest.mark.parametrize(
    ("first", "last", "months"),
    [
        ("2026-03-31", "2026-03-31", ["2026-03-01"]),
        ("2025-11-30", "2026-02-01", ["2025-11-01", "2025-12-01", "2026-01-01", "2026-02-01"]),
    ],
)
def test_the_months_of_a_window_are_all_that_it_touches(first, last, months):
    assert months_of(first, last) == months


def test_dates_go_on_over_the_end_of_a_month_but_not_of_the_calendar():
    assert dates_from("2024-02-28", 3) == ["2024-02-28", "2024-02-29", "2024-03-01"]
    with pytest.raises(OverflowError):
        dates_from("9999-12-27", 7)
