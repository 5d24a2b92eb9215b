"""The totals of a period, as MongoDB expressions: the sums of its trips, or of its days.

MongoDB's $sum compensates rounding, so sums of the same values in the same order always have the same bits.
"""

from app.store.score import Expression, saturate
from schemas.fields import Int64
from schemas.trip import EventSummary

EVENTS = EventSummary().fields
AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")


def sum_totals(*, trip_count: int | str, amounts: str, events: str) -> Expression:
    """Return the accumulators of a $group that add up totals, which `saturate_totals` completes.

    `trip_count` is the number of trips of a document; `amounts` and `events` are the paths before the fields.
    """
    return {
        "trip_count": {"$sum": trip_count},
        **{name: {"$sum": amounts + name} for name in AMOUNTS},
        **{name: {"$sum": events + name} for name in EVENTS},
    }


def sum_days() -> Expression:
    """Return the accumulators of a $group that add up the days of `driver_periods`."""
    return sum_totals(trip_count="$summary.trip_count", amounts="$summary.", events="$summary.events_summary.")


def saturate_totals() -> Expression:
    """Return the $project that makes totals of the sums: a DrivingSummary without SCORE_FIELDS."""
    return {
        "trip_count": 1,
        **{name: saturate(f"${name}", whole=False) for name in AMOUNTS},
        "events_summary": {
            name: saturate(f"${name}", whole=isinstance(field, Int64)) for name, field in EVENTS.items()
        },
    }
