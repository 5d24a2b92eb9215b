"""Totals, as MongoDB expressions: the sums of trips, or of days.

MongoDB's $sum compensates rounding, so sums of the same values in the same order always have the same bits.
"""

import sys
from typing import Any

from schemas.fields import MAX_INT
from schemas.summary import AMOUNTS, EVENT_TOTALS

Expression = dict[str, Any]


def sum_totals(*, trip_count: int | str | Expression, amounts: str, events: str) -> Expression:
    """Return the accumulators of a $group that add up totals, which `saturate_totals` completes.

    `trip_count` is the number of trips of a document; `amounts` and `events` are the paths before the fields.
    """
    return {
        "trip_count": {"$sum": trip_count},
        **{name: {"$sum": amounts + name} for name in AMOUNTS},
        **{name: {"$sum": events + name} for name in EVENT_TOTALS},
    }


def sum_days() -> Expression:
    """Return the accumulators of a $group that add up the days of `driver_periods`."""
    return sum_totals(trip_count="$summary.trip_count", amounts="$summary.", events="$summary.events_summary.")


def saturate_totals() -> Expression:
    """Return the expressions that make totals of the sums: the fields of a DrivingSummary that are added up."""
    return {
        "trip_count": "$trip_count",
        **{name: _saturate(f"${name}", whole=False) for name in AMOUNTS},
        "events_summary": {name: _saturate(f"${name}", whole=name.endswith("_count")) for name in EVENT_TOTALS},
    }


def _saturate(total: str, *, whole: bool) -> Expression:
    """Return an expression that limits a sum to the largest number that a document can have.

    That is the largest 64-bit integer for `whole` numbers, otherwise the largest double.
    """
    return {"$min": [total, MAX_INT if whole else sys.float_info.max]}
