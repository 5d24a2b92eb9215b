"""UTC dates: days, and the weeks and months that contain them. A date is a string such as "2026-03-16"."""

import calendar
import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MS_PER_DAY = 86_400_000
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
DAYS_A_WEEK = 7


class Day(NamedTuple):
    """A driver and a UTC date."""

    driver_id: str
    date: str


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


def group_by_dates(days: Iterable[Day]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield groups of drivers and dates that together cover the days: each driver of a group has all of its dates.

    Successive lines of a file usually have few drivers or few dates, so there are few groups. Example: the days
    (d1, Monday), (d2, Monday), (d1, Tuesday) give the groups (d1; Monday, Tuesday) and (d2; Monday).
    """
    dates_by_driver: defaultdict[str, set[str]] = defaultdict(set)
    for driver_id, date in days:
        dates_by_driver[driver_id].add(date)
    drivers_by_dates: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for driver_id, dates in dates_by_driver.items():
        drivers_by_dates[tuple(sorted(dates))].append(driver_id)
    for group, drivers in drivers_by_dates.items():
        yield drivers, list(group)
