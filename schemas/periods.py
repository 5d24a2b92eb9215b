"""Dates, the weeks and months that contain them, and the time. A date is a string such as "2026-03-16", in UTC."""

import calendar
import datetime
import time
from collections.abc import Callable
from typing import Final, Literal

PeriodName = Literal["day", "week", "month"]
# The periods that are built from their days, and ranked.
LongPeriodName = Literal["week", "month"]
DAY: Final = "day"
WEEK: Final = "week"
MONTH: Final = "month"
PERIODS: tuple[PeriodName, ...] = (DAY, WEEK, MONTH)
LONG_PERIODS: tuple[LongPeriodName, ...] = (WEEK, MONTH)
# What a driver's profile has in place of a period and its first date.
PROFILE, NO_DATE = "profile", ""

MS_PER_SECOND, MS_PER_HOUR, MS_PER_DAY = 1_000, 3_600_000, 86_400_000
DAYS_A_WEEK = 7
# The name of the time zone of all dates.
TIME_ZONE = "UTC"
MONTHS_A_YEAR = 12
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()


def now_ms() -> int:
    """Return the time in epoch milliseconds."""
    return int(time.time() * MS_PER_SECOND)


def get_today() -> datetime.date:
    """Return the UTC date."""
    return datetime.datetime.now(datetime.UTC).date()


def utc_date(epoch_ms: int) -> str:
    """Return the UTC date of a time in epoch milliseconds."""
    return datetime.date.fromordinal(epoch_ms // MS_PER_DAY + EPOCH_ORDINAL).isoformat()


def midnight(date: str) -> int:
    """Return the time (epoch ms) at which a UTC date starts."""
    return (datetime.date.fromisoformat(date).toordinal() - EPOCH_ORDINAL) * MS_PER_DAY


def dates_from(first: str, count: int) -> list[str]:
    """Return `count` consecutive dates, beginning with `first`. Raises OverflowError after the year 9999."""
    date = datetime.date.fromisoformat(first)
    return [str(date + datetime.timedelta(days)) for days in range(count)]


def dates_of_report(report_date: str) -> list[str]:
    """Return the seven dates that the report of a date covers: those before it."""
    return dates_from(str(datetime.date.fromisoformat(report_date) - datetime.timedelta(DAYS_A_WEEK)), DAYS_A_WEEK)


def monday_of(date: str) -> str:
    """Return the Monday of the week that contains a date. It always exists: 0001-01-01 is a Monday."""
    day = datetime.date.fromisoformat(date)
    return str(day - datetime.timedelta(day.weekday()))


def sunday_of(date: str) -> str:
    """Return the Sunday of the week that contains a date. Raises OverflowError after the year 9999."""
    day = datetime.date.fromisoformat(date)
    return str(day + datetime.timedelta(DAYS_A_WEEK - 1 - day.weekday()))


def first_of_month(date: str) -> str:
    """Return the first date of the month that contains a date."""
    return f"{date[:7]}-01"


def last_of_month(date: str) -> str:
    """Return the last date of the month that contains a date."""
    return f"{date[:7]}-{calendar.monthrange(int(date[:4]), int(date[5:7]))[1]}"


# For each type of period, functions that return the first and the last date of the period that contains a date.
FIRST_AND_LAST_DATE: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    DAY: (str, str),
    WEEK: (monday_of, sunday_of),
    MONTH: (first_of_month, last_of_month),
}


def dates_of_period(period: str, date: str) -> list[str]:
    """Return the dates of the period that contains a date. Raises OverflowError for a week after the year 9999."""
    first, last = (bound(date) for bound in FIRST_AND_LAST_DATE[period])
    count = datetime.date.fromisoformat(last).toordinal() - datetime.date.fromisoformat(first).toordinal() + 1
    return dates_from(first, count)


def months_of(first: str, last: str) -> list[str]:
    """Return the first dates of the months that contain the dates from `first` to `last`."""
    low, high = (int(date[:4]) * MONTHS_A_YEAR + int(date[5:7]) - 1 for date in (first, last))
    return [f"{month // MONTHS_A_YEAR:04}-{month % MONTHS_A_YEAR + 1:02}-01" for month in range(low, high + 1)]
