"""Dates, the weeks and months that contain them, and the time.

A date is a string such as "2026-03-16". It is local to a time zone, which is that of a fleet.
"""

import calendar
import contextlib
import datetime
import re
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

PeriodName = Literal["day", "week", "month"]
# The periods that are built from their days, and ranked.
LongPeriodName = Literal["week", "month"]
DAY: Final = "day"
WEEK: Final = "week"
MONTH: Final = "month"
PERIODS: tuple[PeriodName, ...] = (DAY, WEEK, MONTH)
LONG_PERIODS: tuple[LongPeriodName, ...] = (WEEK, MONTH)
# What a driver's profile has in place of a period.
PROFILE: Final = "profile"

MS_PER_SECOND, MS_PER_HOUR, MS_PER_DAY = 1_000, 3_600_000, 86_400_000
DAYS_A_WEEK = 7
# The time zone of a fleet that was given no other one.
UTC: Final = ZoneInfo("UTC")
# Files of the database that are no zones: a placeholder, the host's own zone, rules, and copies of all zones.
NO_ZONE = re.compile("Factory|localtime|posixrules|(posix|right)/.*", re.DOTALL)
MONTHS_A_YEAR = 12
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()


def now_ms() -> int:
    """Return the time in epoch milliseconds."""
    return int(time.time() * MS_PER_SECOND)


def get_zone(name: Any) -> ZoneInfo | None:
    """Return the time zone with a name of the IANA database, or None if the name is none that this host knows."""
    # An OSError is a folder, such as America, or a name that is too long for a file.
    with contextlib.suppress(ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        if not NO_ZONE.fullmatch(name):
            return ZoneInfo(name)
    return None


def get_today(zone: ZoneInfo) -> datetime.date:
    """Return the date in a time zone."""
    return datetime.datetime.now(zone).date()


def date_of(epoch_ms: int, zone: ZoneInfo) -> str:
    """Return the date in a time zone of a time in epoch milliseconds.

    Raises ValueError if it is not in the years 1 to 9999.
    """
    return datetime.date.fromordinal(_get_day_number(epoch_ms, zone) + EPOCH_ORDINAL).isoformat()


def midnight(date: str, zone: ZoneInfo) -> int:
    """Return the first time (epoch ms) of a date in a time zone, or of the next date if the zone skipped it."""
    number = datetime.date.fromisoformat(date).toordinal() - EPOCH_ORDINAL
    midnight_utc = number * MS_PER_DAY
    if zone is UTC:
        return midnight_utc
    # A change of the clock may skip 00:00, and the date then begins later. No zone is a whole day from UTC.
    around = range(midnight_utc - MS_PER_DAY, midnight_utc + MS_PER_DAY)
    return around[bisect_left(around, number, key=lambda epoch_ms: _get_day_number(epoch_ms, zone))]


def _get_day_number(epoch_ms: int, zone: ZoneInfo) -> int:
    """Return the number of days from 1970-01-01 to the date in a time zone."""
    if zone is UTC:
        return epoch_ms // MS_PER_DAY
    try:
        return datetime.datetime.fromtimestamp(epoch_ms // MS_PER_SECOND, zone).toordinal() - EPOCH_ORDINAL
    except (OverflowError, ValueError):
        # The local time is before or after the calendar. The time in UTC is within it, or less than a day outside.
        return epoch_ms // MS_PER_DAY + (1 if epoch_ms > 0 else -1)


def is_date(text: str) -> bool:
    """Return whether a text is a date such as 2026-03-16."""
    try:
        return str(datetime.date.fromisoformat(text)) == text
    except ValueError:
        return False


def dates_from(first: str, count: int) -> list[str]:
    """Return `count` consecutive dates, beginning with `first`. Raises OverflowError after the year 9999."""
    date = datetime.date.fromisoformat(first)
    return [str(date + datetime.timedelta(days)) for days in range(count)]


def dates_between(first: str, last: str) -> list[str]:
    """Return the dates from `first` to `last`."""
    return dates_from(first, (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days + 1)


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
    first_of, last_of = FIRST_AND_LAST_DATE[period]
    return dates_between(first_of(date), last_of(date))


def months_of(first: str, last: str) -> list[str]:
    """Return the first dates of the months that contain the dates from `first` to `last`."""
    low, high = (int(date[:4]) * MONTHS_A_YEAR + int(date[5:7]) - 1 for date in (first, last))
    return [f"{month // MONTHS_A_YEAR:04}-{month % MONTHS_A_YEAR + 1:02}-01" for month in range(low, high + 1)]
