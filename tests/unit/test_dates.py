"""Dates in a time zone, their weeks and months, and days grouped by driver and date."""

import datetime
import itertools
from zoneinfo import ZoneInfo

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import ValidationError

from schemas.periods import (
    MS_PER_DAY,
    UTC,
    date_of,
    dates_from,
    dates_of_period,
    last_of_month,
    midnight,
    monday_of,
    months_of,
    sunday_of,
)
from scripts.command_line.options import TimeZone
from scripts.materialize.days import Day, group_by_dates
from tests.factories import epoch_ms

DATES = [f"2026-03-{day}" for day in range(10, 15)]
# The last second of a date in a time zone, and the first one of the next date.
CHANGES = [
    ("UTC", "2026-03-10T23:59:59Z", "2026-03-11T00:00:00Z"),
    ("UTC", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
    ("America/Denver", "2026-03-10T05:59:59Z", "2026-03-10T06:00:00Z"),
    # Days of 23 and of 25 hours.
    ("America/Denver", "2026-03-08T06:59:59Z", "2026-03-08T07:00:00Z"),
    ("America/Denver", "2026-03-09T05:59:59Z", "2026-03-09T06:00:00Z"),
    ("America/Denver", "2026-11-02T06:59:59Z", "2026-11-02T07:00:00Z"),
    ("Asia/Kolkata", "2026-03-10T18:29:59Z", "2026-03-10T18:30:00Z"),
    # 00:00 is skipped, and so is the time from half an hour before it.
    ("America/Sao_Paulo", "2018-11-04T02:59:59Z", "2018-11-04T03:00:00Z"),
    ("America/Toronto", "1919-03-31T04:29:59Z", "1919-03-31T04:30:00Z"),
    # At 00:00 it is 23:00 again; at 01:00 it is 00:00 again.
    ("America/Sao_Paulo", "2019-02-17T02:59:59Z", "2019-02-17T03:00:00Z"),
    ("America/Havana", "2025-11-02T03:59:59Z", "2025-11-02T04:00:00Z"),
    # A date is skipped.
    ("Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-30T10:00:00Z"),
    ("America/Denver", "9999-12-31T06:59:59Z", "9999-12-31T07:00:00Z"),
    ("Asia/Kolkata", "0001-01-01T18:06:31Z", "0001-01-01T18:06:32Z"),
]


@pytest.mark.parametrize(("zone", "last", "first"), CHANGES)
def test_a_date_begins_with_the_first_time_of_it_in_its_zone(zone, last, first):
    zone, last, first = ZoneInfo(zone), *(epoch_ms(time.removesuffix("Z")) for time in (last, first))
    assert date_of(last, zone) < date_of(first, zone)
    assert date_of(first - 1, zone) == date_of(last, zone)
    assert midnight(date_of(first, zone), zone) == first


@pytest.mark.parametrize("date", ["0001-01-01", "0001-01-02", "9999-12-31"])
@pytest.mark.parametrize("zone", ["UTC", "America/Denver", "Asia/Kolkata"])
def test_dates_at_the_ends_of_the_calendar_begin_about_when_they_do_in_utc(date, zone):
    assert abs(midnight(date, ZoneInfo(zone)) - midnight(date, UTC)) < MS_PER_DAY


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("America/Dever", "There is no time zone America/Dever; did you mean America/Denver?"),
        ("america/denver", "There is no time zone america/denver; did you mean America/Denver?"),
        ("Denver", "There is no time zone Denver; did you mean America/Denver?"),
        ("sao paulo", "There is no time zone sao paulo; did you mean America/Sao_Paulo?"),
        ("Mars", "There is no time zone Mars. Give a name of the IANA database, such as America/Denver."),
        *(
            (name, f"There is no time zone {name}. Give a name of the IANA database, such as America/Denver.")
            for name in ("Factory", "localtime", "posixrules", "right/UTC", "Etc", "a" * 300, "..", "\0")
        ),
        ("posix/America/Denver", "There is no time zone posix/America/Denver; did you mean America/Denver?"),
        ("+02:00", "+02:00 is an offset, which knows no summer time. Give the name of a zone, such as Europe/Berlin."),
        ("UTC-7", "UTC-7 is an offset, which knows no summer time. Give the name of a zone, such as Europe/Berlin."),
    ],
)
def test_a_name_that_is_no_time_zone_is_refused_with_what_to_give(name, reason):
    with pytest.raises(ValidationError) as error:
        TimeZone().deserialize(name)
    assert error.value.messages == [reason]


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


@given(st.lists(st.builds(Day, st.sampled_from("abcde"), st.sampled_from(DATES))))
def test_the_groups_hold_every_day_once_and_no_other(days):
    groups = list(group_by_dates(days))
    covered = [Day(*pair) for drivers, dates in groups for pair in itertools.product(drivers, dates)]
    assert sorted(covered) == sorted(set(days))
    assert len({tuple(sorted(dates)) for _, dates in groups}) == len(groups)
    assert all(dates == sorted(dates) for _, dates in groups)


@pytest.mark.parametrize("host", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_a_date_does_not_depend_on_the_time_zone_of_the_host(host):
    # time-machine sets the time zone of the process to that of the time.
    with time_machine.travel(datetime.datetime(2026, 3, 10, tzinfo=ZoneInfo(host))):
        assert date_of(epoch_ms("2026-03-10T05:00"), UTC) == "2026-03-10"
        assert date_of(epoch_ms("2026-03-10T05:00"), ZoneInfo("America/Denver")) == "2026-03-09"


def test_a_skipped_date_begins_with_the_next_one():
    assert midnight("2011-12-30", ZoneInfo("Pacific/Apia")) == midnight("2011-12-31", ZoneInfo("Pacific/Apia"))


@pytest.mark.parametrize(
    ("time", "zone"), [("0001-01-01T06:00", "America/Denver"), ("9999-12-31T18:30", "Asia/Kolkata")]
)
def test_a_time_may_have_no_date_in_a_zone(time, zone):
    with pytest.raises(ValueError, match=r"out of range|ordinal"):
        date_of(epoch_ms(time), ZoneInfo(zone))


def test_the_months_of_a_window_are_all_that_it_touches():
    assert months_of("2025-11-30", "2026-02-01") == ["2025-11-01", "2025-12-01", "2026-01-01", "2026-02-01"]
    assert months_of("0999-03-31", "0999-03-31") == ["0999-03-01"]


def test_the_last_week_of_the_calendar_has_no_sunday():
    assert monday_of("9999-12-31") == "9999-12-27"
    with pytest.raises(OverflowError):
        dates_of_period("week", "9999-12-27")
