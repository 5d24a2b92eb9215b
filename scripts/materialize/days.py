"""The days of drivers: a driver and a date."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from app.store import Document


class Day(NamedTuple):
    """A driver and a date."""

    driver_id: str
    date: str


def days_of(details: Iterable[Document]) -> set[Day]:
    """Return the days of trips. `details` are StoredTripDetails with at least `driver_id` and `date`."""
    return {Day(detail["driver_id"], detail["date"]) for detail in details}


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
