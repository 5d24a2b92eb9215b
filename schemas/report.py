"""Reports: the links to one, and the rows of its file."""

import functools
import operator
import sys
from collections.abc import Iterator
from typing import Any

from marshmallow import Schema

from schemas.driver import Driver
from schemas.fields import EpochMs, Text
from schemas.introspection import Fields, fields_of
from schemas.summary import DrivingSummary
from schemas.trip import EventSummary


class ReportLinks(Schema):
    """Where a report can be had for a while, without a key."""

    report_link = Text(
        "URL of the report's file: CSV, a row a driver.",
        example="https://api.example.com/api/v1/report/WyJhY21lIl0.c2lnbmVk",
        required=True,
    )
    report_page = Text(
        "URL of the report as a page to read.",
        example="https://api.example.com/api/v1/report/WyJwYWdlIl0.c2lnbmVk",
        required=True,
    )
    expires_at = EpochMs("Until when both are good, in epoch milliseconds.", example=1_773_044_100_000, required=True)


def _leaves(fields: Fields, *path: str) -> Iterator[tuple[str, ...]]:
    for name, below in fields.items():
        if below is None:
            yield (*path, name)
        else:
            yield from _leaves(below, *path, name)


# A row has the Driver, the totals of the summary, a rate for each behaviour, and the score.
SCORE = ("fm_score", "fm_grade")
DRIVER = tuple(fields_of(Driver))
TOTALS = tuple(path for path in _leaves(fields_of(DrivingSummary)) if path[0] not in SCORE)
BEHAVIOURS = tuple(name.removesuffix("_count") for name in fields_of(EventSummary) if name.endswith("_count"))
HEADER = (*DRIVER, *(path[-1] for path in TOTALS), *(f"{name}_per_100_miles" for name in BEHAVIOURS), *SCORE)


def rate(count: float, base: float) -> float:
    """Return 100 × count ÷ base, within what a number may be; 0 where there is no base."""
    return min(100 * count / base, sys.float_info.max) if base > 0 else 0.0


def row(driver: dict[str, Any], summary: dict[str, Any] | None) -> list[Any]:
    """Return the values of a driver in the order of HEADER; all but the Driver's are None for one who did not drive."""
    known = [driver[name] for name in DRIVER]
    if summary is None:
        return known + [None] * (len(HEADER) - len(known))
    totals = [functools.reduce(operator.getitem, path, summary) for path in TOTALS]
    events, miles = summary["events_summary"], summary["distance_miles"]
    rates = [rate(events[f"{name}_count"], miles) for name in BEHAVIOURS]
    return [*known, *totals, *rates, *(summary[name] for name in SCORE)]
