"""Reports: the links to a report, the rows of its CSV file, and the units of its page."""

import functools
import operator
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from marshmallow import Schema

from schemas.csv_rows import find_columns
from schemas.driver import Driver
from schemas.fields import EpochMs, Text
from schemas.score import COUNTED_BEHAVIOURS, compute_points_lost
from schemas.summary import DrivingSummary


class ReportLinks(Schema):
    """Links to a report. They need no key, and expire."""

    report_link = Text(
        "URL of the report as a CSV file with one row for each driver.",
        example="https://api.example.com/api/v1/report/WyJhY21lIl0.c2lnbmVk",
    )
    report_page = Text(
        "URL of the report as a web page.", example="https://api.example.com/api/v1/report/WyJwYWdlIl0.c2lnbmVk"
    )
    expires_at = EpochMs("Time at which both links expire, in epoch milliseconds.", example=1_773_044_100_000)


SECONDS, HOURS = "_seconds", "_hours"
SECONDS_PER_HOUR = 3600


def _with_hours(name: str) -> tuple[str, ...]:
    """Return the columns of a total: its name, and for an amount in seconds that of the same in hours."""
    return (name, f"{name.removesuffix(SECONDS)}{HOURS}") if name.endswith(SECONDS) else (name,)


# The decimals of an amount, by the last word of its name. A sum of doubles has more, which mean nothing.
UNIT_DECIMALS = {"miles": 2, "seconds": 1, "hours": 2, "lost": 2}
# A row has the fields of the Driver, the groups, totals of the summary, a rate and the points lost for each behaviour,
# and the score.
SCORE = ("fm_score", "fm_grade")
DRIVER_COLUMNS = tuple(Driver().fields)
TOTAL_PATHS = tuple(path for path in find_columns(DrivingSummary()) if path[0] not in SCORE)
HEADER = (
    *DRIVER_COLUMNS,
    "groups",
    *(name for *_, total in TOTAL_PATHS for name in _with_hours(total)),
    *(f"{name}_per_100_miles" for name in COUNTED_BEHAVIOURS),
    *(f"{name}_points_lost" for name in COUNTED_BEHAVIOURS),
    *SCORE,
)


def rate(count: float, base: float) -> float:
    """Return 100 × count ÷ base: a percentage, or a rate per 100 miles.

    The result is at most the largest double. It is 0 if `base` is 0.
    """
    return min(100 * count / base, sys.float_info.max) if base > 0 else 0.0


class Units(NamedTuple):
    """A unit of distance: its name in a sentence and at the head of a column, and how many of it are a mile."""

    name: str
    heading: str
    per_mile: float

    def distance(self, miles: float) -> float:
        """Return a distance in miles in this unit, at most the largest double."""
        return min(miles * self.per_mile, sys.float_info.max)

    def rate(self, count: float, miles: float) -> float:
        """Return how often something happened per 100 of this unit."""
        return rate(count, self.distance(miles))


# The units in which a report page may show distances. The CSV file has miles, as the API.
MILES = "miles"
UNITS = {MILES: Units("miles", "Miles", 1.0), "km": Units("km", "km", 1.609344)}


def row(driver: dict[str, Any], groups: Sequence[str], summary: dict[str, Any] | None) -> list[Any]:
    """Return the row of a driver: the values in the order of HEADER, amounts rounded to their UNIT_DECIMALS.

    Without a summary, because the driver did not drive, the values after the groups are None.
    """
    driver_values = [*(driver[name] for name in DRIVER_COLUMNS), "; ".join(groups) or None]
    if summary is None:
        return driver_values + [None] * (len(HEADER) - len(driver_values))
    totals: list[Any] = []
    for path in TOTAL_PATHS:
        total: Any = functools.reduce(operator.getitem, path, summary)
        totals += [total, total / SECONDS_PER_HOUR] if path[-1].endswith(SECONDS) else [total]
    events, miles = summary["events_summary"], summary["distance_miles"]
    rates = [rate(events[f"{name}_count"], miles) for name in COUNTED_BEHAVIOURS]
    points_lost = compute_points_lost(summary)
    points = [points_lost[name] for name in COUNTED_BEHAVIOURS]
    values = [*driver_values, *totals, *rates, *points, *(summary[name] for name in SCORE)]
    return [_round(name, value) for name, value in zip(HEADER, values, strict=True)]


def _round(name: str, value: Any) -> Any:
    decimals = UNIT_DECIMALS.get(name.rpartition("_")[2])
    return value if decimals is None else round(value, decimals)
