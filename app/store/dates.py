"""UTC dates, the weeks and months that contain them, and the time. A date is a string such as "2026-03-16"."""

import calendar
import datetime
import time
from collections.abc import Callable

from schemas.periods import DAY, MONTH, WEEK

MS_PER_SECOND, MS_PER_HOUR, MS_PER_DAY = 1_000, 3_600_000, 86_400_000
DAYS_A_WEEK = 7
MONTHS_A_YEAR = 12


def now_ms() -> int:
    """Return the time in epoch milliseconds."""
    return int(time.time() * 1000)


def dates_from(first: str, count: int) -> list[str]:
    """Return `count` consecutive dates, beginning with `first`. Raises OverflowError after the year 9999."""
    date = datetime.date.fromisoformat(first)
    return [str(date + datetime.timedelta(days)) for days in range(count)]


def monday_of(date: str) -> str:
    """Return the Monday of the week that contains a date. It always exists: 0001-01-01 is a Monday."""
    day = datetime.date.fromisoformat(date)
    return str(day - datetime.timedelta(day.weekday()))


def sunday_of(date: str) -> str:
    """Return the Sunday of the week that contains a date. Raises OverflowError after the year 9999."""
    day = datetime.date.fromisoformat(date)
    return str(day + datetime.timedelta(DAYS_A_WEEK - 1 - day.weekday()))


def week_dates(monday: str) -> list[str]:
    """Return the dates of the week that starts on a Monday. Raises OverflowError if it ends after the year 9999."""
    return dates_from(monday, DAYS_A_WEEK)


def first_of_month(date: str) -> str:
    """Return the first date of the month that contains a date."""
    return f"{date[:7]}-01"


def last_of_month(date: str) -> str:
    """Return the last date of the month that contains a date."""
    return f"{date[:7]}-{calendar.monthrange(int(date[:4]), int(date[5:7]))[1]}"


def months_of(first: str, last: str) -> list[str]:
    """Return the first dates of the months that contain the dates from `first` to `last`."""
    low, high = (int(date[:4]) * MONTHS_A_YEAR + int(date[5:7]) - 1 for date in (first, last))
    return [f"{month // MONTHS_A_YEAR:04}-{month % MONTHS_A_YEAR + 1:02}-01" for month in range(low, high + 1)]


def month_dates(first: str) -> list[str]:
    """Return the dates of the month that starts on a date."""
    return dates_from(first, int(last_of_month(first)[8:]))


# For each type of period, functions that return the first and the last date of the period that contains a date.
FIRST_AND_LAST_DATE: dict[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    DAY: (str, str),
    WEEK: (monday_of, sunday_of),
    MONTH: (first_of_month, last_of_month),
}
