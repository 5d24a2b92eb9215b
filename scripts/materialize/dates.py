"""UTC dates: a driver's day, and the week and the month that it lies in."""

import calendar
import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MS_PER_DAY = 86_400_000
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
DAYS_A_WEEK = 7


class Day(NamedTuple):
    """A driver's UTC date."""

    driver_id: str
    date: str


def utc_date(epoch_ms: int) -> str:
    """Return the UTC date of a time."""
    return datetime.date.fromordinal(epoch_ms // MS_PER_DAY + EPOCH_ORDINAL).isoformat()


def midnight(date: str) -> int:
    """Return the time (epoch ms) at which a UTC date begins."""
    return (datetime.date.fromisoformat(date).toordinal() - EPOCH_ORDINAL) * MS_PER_DAY


def dates_from(first: str, count: int) -> list[str]:
    """Return so many dates from the first on. Raises OverflowError past the year 9999."""
    date = datetime.date.fromisoformat(first)
    return [str(date + datetime.timedelta(days)) for days in range(count)]


def monday_of(date: str) -> str:
    """Return the Monday of the week that a date lies in. The calendar begins with a Monday."""
    day = datetime.date.fromisoformat(date)
    return str(day - datetime.timedelta(day.weekday()))


def week_dates(monday: str) -> list[str]:
    """Return the dates of the week that begins on a Monday. Raises OverflowError in the last week of the calendar."""
    return dates_from(monday, DAYS_A_WEEK)


def first_of_month(date: str) -> str:
    """Return the first date of the month that a date lies in."""
    return f"{date[:7]}-01"


def month_dates(first: str) -> list[str]:
    """Return the dates of the month that begins on a date."""
    year, month, _ = map(int, first.split("-"))
    return dates_from(first, calendar.monthrange(year, month)[1])


def by_dates(days: Iterable[Day]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield drivers and dates such that every driver has every one of the dates, until all days are covered.

    A file holds either few drivers or few dates in a row, so there are few such groups.
    """
    dates_of: defaultdict[str, set[str]] = defaultdict(set)
    for driver_id, date in days:
        dates_of[driver_id].add(date)
    drivers_of: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for driver_id, dates in dates_of.items():
        drivers_of[tuple(sorted(dates))].append(driver_id)
    for group, drivers in drivers_of.items():
        yield drivers, list(group)
