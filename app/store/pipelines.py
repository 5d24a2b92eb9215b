"""The aggregation pipelines, pure data. Both rollups total and score through the same stages."""

from typing import Any

from app.store.buckets import MS_PER_HOUR
from app.store.score import BEHAVIOURS, SCORED, Expression, saturated, score_stages
from schemas.derive import Fields, fields_of
from schemas.fields import Whole
from schemas.summary import DailySummary, DrivingSummary, WeeklySummary
from schemas.trip import EventSummary

Pipeline = list[dict[str, Any]]
Days = list[dict[str, str]]

DAILY = fields_of(DailySummary)
WEEKLY = fields_of(WeeklySummary)
TOTALS = {name: below for name, below in fields_of(DrivingSummary).items() if name not in SCORED}
EVENTS = EventSummary().fields
AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
BREAKDOWN = "daily_summary_breakdown"


def daily_summaries(fleet: str, days: Days, fields: Fields = DAILY) -> Pipeline:
    """Over `trips`: one document a driver and date that has trips, `{"day": ..., "summary": Daily summary}`.

    Of the summary, `fields`. Totals are summed in (trip_start_time, trip_id) order. Index: (fleet, day,
    trip_start_time, trip_id).
    """
    return [
        {"$match": {"fleet": fleet, "day": {"$in": days}}},
        {"$sort": {"day": 1, "trip_start_time": 1, "trip_id": 1}},
        *_summary(fields, "$day", trip_count=1, amounts="$", events="$event_summary.", dates={"date": "$_id.date"}),
        {"$project": {"_id": 0, "day": "$_id", "summary": _in_order(fields)}},
    ]


def weekly_summaries(
    fleet: str, days: Days, stale: Days, start_date: str, end_date: str, fields: Fields = WEEKLY
) -> Pipeline:
    """Over `daily_summaries`: one document a driver who drove, `{"driver_id": ..., "summary": Weekly summary}`.

    Of the summary, `fields`. The `stale` days are made from the trips, whole. Index: (fleet, day), which also puts each
    breakdown in the order of its dates.
    """
    from_trips = [{"$unionWith": {"coll": "trips", "pipeline": daily_summaries(fleet, stale)}}] if stale else []
    day_fields = fields.get(BREAKDOWN)
    breakdown = {} if day_fields is None else {BREAKDOWN: {"$push": _in_order(day_fields, "$summary.")}}
    return [
        {"$match": {"fleet": fleet, "day": {"$in": days}, "summary": {"$exists": True}}},
        *from_trips,
        {"$sort": {"day": 1}},
        *_summary(
            fields,
            "$day.driver_id",
            trip_count="$summary.trip_count",
            amounts="$summary.",
            events="$summary.events_summary.",
            dates={"start_date": {"$literal": start_date}, "end_date": {"$literal": end_date}},
            pushed=breakdown,
        ),
        # What was pushed is narrowed already.
        {"$project": {"_id": 0, "driver_id": "$_id", "summary": _in_order({**fields, **dict.fromkeys(breakdown)})}},
    ]


def fleet_totals(fleet: str, days: Days) -> Pipeline:
    """Over `daily_summaries`: one document a date that has any, `{"date": ..., "totals": ...}`.

    The totals are a DrivingSummary without what its score makes. Index: (fleet, day).
    """
    return [
        {"$match": {"fleet": fleet, "day": {"$in": days}, "summary": {"$exists": True}}},
        *_summary(
            TOTALS,
            "$day.date",
            trip_count="$summary.trip_count",
            amounts="$summary.",
            events="$summary.events_summary.",
            dates={},
        ),
        {"$project": {"_id": 0, "date": "$_id", "totals": _in_order(TOTALS)}},
    ]


def trips_by_hour(match: dict[str, Any]) -> Pipeline:
    """Over `trips`: one document a tracking id and hour that has matching trips, `{"_id": ..., "count", "end"}`.

    `end` is the latest of their ends (epoch ms). `_id` has `tracking_id` and `hour`, counted from the epoch.
    """
    hour = {"$floor": {"$divide": ["$trip_start_time", MS_PER_HOUR]}}
    return [
        {"$match": match},
        {
            "$group": {
                "_id": {"tracking_id": "$tracking_id", "hour": hour},
                "count": {"$sum": 1},
                "end": {"$max": "$trip_end_time"},
            }
        },
    ]


def trip_dates(fleet: str, driver_ids: list[str], direction: int) -> Pipeline:
    """Over `trips`: one document a driver who has any, `{"_id": driver_id, "date": ...}`: that of the first, or last.

    `direction` is pymongo's ASCENDING for the first. Index: (fleet, driver_id, trip_start_time, trip_id,
    trip_end_time), through which MongoDB seeks from driver to driver, whatever the number of their trips.
    """
    return [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}}},
        {"$sort": dict.fromkeys(("fleet", "driver_id", "trip_start_time", "trip_id", "trip_end_time"), direction)},
        {"$group": {"_id": "$driver_id", "date": {"$first": "$day.date"}}},
    ]


def _summary(
    fields: Fields,
    key: str,
    *,
    trip_count: int | str,
    amounts: str,
    events: str,
    dates: Expression,
    pushed: Expression | None = None,
) -> Pipeline:
    """Group by `key`, and total and score no more than the fields need."""
    pushed = pushed or {}
    scored = not SCORED.isdisjoint(fields)
    needed = {*fields, *(fields.get("events_summary") or ())}
    if scored:
        needed |= {name for behaviour in BEHAVIOURS for name in (behaviour.base, behaviour.count)}
    totals = {name: {"$sum": amounts + name} for name in AMOUNTS if name in needed}
    counts = {name: {"$sum": events + name} for name in EVENTS if name in needed}
    whole = {name: saturated(f"${name}", whole=isinstance(EVENTS[name], Whole)) for name in counts}
    return [
        {"$group": {"_id": key, "trip_count": {"$sum": trip_count}, **totals, **counts, **pushed}},
        {
            "$project": {
                "trip_count": 1,
                **{name: saturated(f"${name}", whole=False) for name in totals},
                **({"events_summary": whole} if whole else {}),
                **dates,
                **dict.fromkeys(pushed, 1),
            }
        },
        *(score_stages() if scored else []),
    ]


def _in_order(fields: Fields, path: str = "$") -> Expression:
    # Written out field by field: MongoDB may hand on a document in another order than it lies in.
    if not fields:
        return {"$literal": {}}
    return {
        name: path + name if below is None else _in_order(below, f"{path}{name}.") for name, below in fields.items()
    }
