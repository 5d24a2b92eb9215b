"""The aggregation pipelines, pure data. Both rollups total and score through the same stages."""

from typing import Any

from marshmallow import Schema, fields

from app.store.score import Expression, saturated, score_stages
from schemas.fields import Whole
from schemas.summary import DailySummary, WeeklySummary
from schemas.trip import EventSummary

Pipeline = list[dict[str, Any]]
Days = list[dict[str, str]]

AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
EVENTS = EventSummary().fields


def daily_summaries(fleet: str, days: Days) -> Pipeline:
    """Over `trips`: one document a driver and date that has trips, `{"day": ..., "summary": Daily summary}`.

    Totals are summed in (trip_start_time, trip_id) order. Index: (fleet, day, trip_start_time, trip_id).
    """
    return [
        {"$match": {"fleet": fleet, "day": {"$in": days}}},
        {"$sort": {"day": 1, "trip_start_time": 1, "trip_id": 1}},
        _totals("$day", trip_count=1, amounts="$", events="$event_summary."),
        _reshaped({"date": "$_id.date"}),
        *score_stages(),
        {"$project": {"_id": 0, "day": "$_id", "summary": _in_order(DailySummary())}},
    ]


def weekly_summaries(fleet: str, days: Days, stale: Days, start_date: str, end_date: str) -> Pipeline:
    """Over `daily_summaries`: one document a driver who drove, `{"driver_id": ..., "summary": Weekly summary}`.

    The `stale` days are made from the trips. Index: (fleet, day), which also puts each breakdown in the order of its
    dates.
    """
    from_trips = [{"$unionWith": {"coll": "trips", "pipeline": daily_summaries(fleet, stale)}}] if stale else []
    return [
        {"$match": {"fleet": fleet, "day": {"$in": days}, "summary": {"$exists": True}}},
        *from_trips,
        {"$sort": {"day": 1}},
        _totals(
            "$day.driver_id",
            trip_count="$summary.trip_count",
            amounts="$summary.",
            events="$summary.events_summary.",
            daily_summary_breakdown={"$push": _in_order(DailySummary(), "$summary.")},
        ),
        _reshaped(
            {
                "start_date": {"$literal": start_date},
                "end_date": {"$literal": end_date},
                "daily_summary_breakdown": 1,
            }
        ),
        *score_stages(),
        {"$project": {"_id": 0, "driver_id": "$_id", "summary": _in_order(WeeklySummary())}},
    ]


def _totals(key: str, *, trip_count: int | str, amounts: str, events: str, **more: Expression) -> Expression:
    return {
        "$group": {
            "_id": key,
            "trip_count": {"$sum": trip_count},
            **{name: {"$sum": amounts + name} for name in AMOUNTS},
            **{name: {"$sum": events + name} for name in EVENTS},
            **more,
        }
    }


def _reshaped(more: Expression) -> Expression:
    return {
        "$project": {
            "trip_count": 1,
            **{name: saturated(f"${name}", whole=False) for name in AMOUNTS},
            "events_summary": {
                name: saturated(f"${name}", whole=isinstance(field, Whole)) for name, field in EVENTS.items()
            },
            **more,
        }
    }


def _in_order(schema: Schema, path: str = "$") -> Expression:
    # Written out field by field: MongoDB may hand on a document in another order than it lies in.
    return {
        name: _in_order(field.schema, f"{path}{name}.") if isinstance(field, fields.Nested) else path + name
        for name, field in schema.fields.items()
    }
