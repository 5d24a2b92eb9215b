"""The fragments of `driver_periods`, and the documents of one driver in it, which several resources read."""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, Self

from pymongo import ASCENDING

from app.store import Document, Store, UnknownRecord
from schemas.periods import PROFILE
from schemas.query import repeat_hint

# The fragments of a week and of a month: the fields of a DrivingSummary, and the others.
SUMMARY_FRAGMENT, BREAKDOWN_FRAGMENT = "driving_summary", "breakdown"
# The order of the index, as all documents have the same fleet and driver.
BY_PERIOD = [("period", ASCENDING), ("start_date", ASCENDING)]
BY_DRIVER = [("driver_id", ASCENDING)]
# More than the days of six months, so that all arrive in the first batch.
MAX_DAYS = 200
# A day, week or month in which no trip is counted has no summary. A profile has no contribution.
HAS_SUMMARY: Document = {"contribution.driver_count": {"$ne": 0}}


def find_profiles(store: Store, drivers: Document, *fields: str, limit: int = 0) -> dict[str, Document]:
    """Return the profiles of drivers by driver_id, in this order: driver_id, version and these fields.

    `drivers` is the filter for the drivers: the fleet, and perhaps a driver_id. Every driver has a profile, also one
    who is only known from trips. `limit` is the largest number of profiles, 0 for all.
    Index: (fleet, period, driver_id, start_date).
    """
    match = {**drivers, "period": PROFILE}
    projection = {"_id": 0} | dict.fromkeys(("driver_id", "version", *fields), 1)
    options: Any = {"sort": BY_DRIVER, "limit": limit}
    return {profile["driver_id"]: profile for profile in store.driver_periods.find(match, projection, **options)}


def check_known(driver_ids: Iterable[str], known: Container[str]) -> None:
    """Raise UnknownRecord if any of these drivers is not among the `known` ones."""
    if unknown := [driver_id for driver_id in driver_ids if driver_id not in known]:
        # Not for the identifier in a path, which cannot be repeated.
        hint = f". {repeat_hint('driver_id')}" if any("," in driver_id for driver_id in unknown) else ""
        raise UnknownRecord(f"Not in this fleet: {', '.join(unknown)}{hint}")


class Calendar(NamedTuple):
    """The days on which a driver drove, in order of date: the parallel arrays that a month has.

    `versions` has the version of the day's document, `last_trip_ends` the latest end (epoch ms) of its trips.
    """

    dates: list[str]
    trip_counts: list[int]
    last_trip_ends: list[int]
    versions: list[str]

    @classmethod
    def of(cls, months: Iterable[Document], start_date: str, end_date: str) -> Self:
        """Return the days from one date to another of the documents of months, which are in order of date."""
        calendars = [month["calendar"] for month in months]
        arrays: list[list[Any]] = [list(chain.from_iterable(map(itemgetter(name), calendars))) for name in cls._fields]
        days = slice(bisect_left(arrays[0], start_date), bisect_right(arrays[0], end_date))
        return cls(*(values[days] for values in arrays))


def find_periods(store: Store, match: Document, *fields: str) -> list[Document]:
    """Return these fields of documents of one driver, in order of period, then date.

    `match` has the filter for the driver that the scope made. Index: (fleet, period, driver_id, start_date).
    """
    projection = {"_id": 0} | dict.fromkeys(fields, 1)
    return list(store.driver_periods.find(match, projection, sort=BY_PERIOD, batch_size=MAX_DAYS))
