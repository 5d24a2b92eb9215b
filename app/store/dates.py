"""UTC dates, and the weeks and months that contain them. A date is a string such as "2026-03-16"."""

import calendar
import datetime

DAYS_A_WEEK = 7


def dates_from(first: str, count: int) -> list[str]:
    """Return `count` consecutive dates, beginning with `first`. Raises OverflowError after the year 9999."""
    date = datetime.date.fromisoformat(first)
    return [str(date + datetime.timedelta(days)) for days in range(count)]


def monday_of(date: str) -> str:
    """Return the Monday of the week that contains a date. It always exists: 0001-01-01 is a Monday."""
    day = datetime.date.fromisoformat(date)
    return str(day - datetime.timedelta(day.weekday()))


def week_dates(monday: str) -> list[str]:
    """Return the dates of the week that starts on a Monday. Raises OverflowError if it ends after the year 9999."""
    return dates_from(monday, DAYS_A_WEEK)


def first_of_month(date: str) -> str:
    """Return the first date of the month that contains a date."""
    return f"{date[:7]}-01"


def month_dates(first: str) -> list[str]:
    """Return the dates of the month that starts on a date."""
    year, month, _ = map(int, first.split("-"))
    return dates_from(first, calendar.monthrange(year, month)[1])
