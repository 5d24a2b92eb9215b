"""UTC dates, their weeks and months, and days grouped by driver and date."""

import datetime
import itertools
from zoneinfo import ZoneInfo

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from schemas.periods import (
    dates_from,
    dates_of_period,
    last_of_month,
    midnight,
    monday_of,
    months_of,
    sunday_of,
    utc_date,
)
from scripts.materialize.days import Day, group_by_dates
from tests.factories import epoch_ms

DATES = dates_from("2026-03-01", 6)


@given(st.lists(st.builds(Day, st.sampled_from("abcde"), st.sampled_from(DATES))))
def test_the_groups_hold_every_day_once_and_no_other(days):
    groups = list(group_by_dates(days))
    covered = [Day(*pair) for drivers, dates in groups for pair in itertools.product(drivers, dates)]
    assert sorted(covered) == sorted(set(days))
    assert len({tuple(sorted(dates)) for _, dates in groups}) == len(groups)
    assert all(dates == sorted(dates) for _, dates in groups)


@pytest.mark.parametrize(
    ("time", "date"),
    [
        ("2026-03-10T00:00", "2026-03-10"),
        ("1969-12-31T23:59", "1969-12-31"),
        ("0001-01-01T00:00", "0001-01-01"),
        ("9999-12-31T23:59", "9999-12-31"),
    ],
)
def test_a_time_belongs_to_its_utc_date_in_any_time_zone_of_the_host(time, date):
    assert utc_date(epoch_ms(time)) == date
    for zone in ("Pacific/Kiritimati", "Pacific/Niue"):
        # time-machine sets the time zone of the process to that of the time.
        with time_machine.travel(datetime.datetime(2026, 3, 10, tzinfo=ZoneInfo(zone))):
            assert utc_date(epoch_ms(time)) == date
    assert midnight(date) == epoch_ms(f"{date}T00:00")


@pytest.mark.parametrize(
    ("date", "monday", "sunday", "last"),
    [
        ("2026-03-09", "2026-03-09", "2026-03-15", "2026-03-31"),
        ("2026-03-15", "2026-03-09", "2026-03-15", "2026-03-31"),
        ("2025-12-31", "2025-12-29", "2026-01-04", "2025-12-31"),
        ("2026-02-01", "2026-01-26", "2026-02-01", "2026-02-28"),
        ("2024-02-29", "2024-02-26", "2024-03-03", "2024-02-29"),
        ("0001-01-03", "0001-01-01", "0001-01-07", "0001-01-31"),
    ],
)
def test_a_week_is_monday_to_sunday_and_a_month_ends_with_its_last_day(date, monday, sunday, last):
    assert (monday_of(date), sunday_of(date), last_of_month(date)) == (monday, sunday, last)
    assert dates_of_period("week", date)[::6] == [monday, sunday]
    assert dates_of_period("month", date) == dates_from(f"{date[:7]}-01", int(last[8:]))


def test_the_months_of_a_window_are_all_that_it_touches():
    assert months_of("2025-11-30", "2026-02-01") == ["2025-11-01", "2025-12-01", "2026-01-01", "2026-02-01"]
    assert months_of("0999-03-31", "0999-03-31") == ["0999-03-01"]


def test_the_last_week_of_the_calendar_has_no_sunday():
    assert monday_of("9999-12-31") == "9999-12-27"
    with pytest.raises(OverflowError):
        dates_of_period("week", "9999-12-27")
