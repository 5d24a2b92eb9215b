"""The aggregation pipelines. All of them compute totals and scores with the same stages."""

from typing import Any

from app.store.score import SCORE_FIELDS, Expression, score_stages
from app.store.totals import saturate_totals, sum_days, sum_totals
from schemas.introspection import Fields, fields_of
from schemas.periods import DAY
from schemas.summary import DailySummary, DrivingSummary

Pipeline = list[dict[str, Any]]

DAILY = fields_of(DailySummary)
DRIVING_SUMMARY = fields_of(DrivingSummary)
TOTALS = {name: subfields for name, subfields in DRIVING_SUMMARY.items() if name not in SCORE_FIELDS}
# The arrays of a Calendar, each with the expression for one day.
CALENDAR = {
    "dates": "$start_date",
    "trip_counts": "$trip_count",
    "last_trip_ends": "$last_trip_end",
    "versions": "$version",
}


def driver_days(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    """Over `trip_details`: one document per driver and date with trips, in the shape of `driver_periods`.

    `json` and `version` are missing. Totals are summed in (trip_start_time, trip_id) order. Index: (fleet, driver_id,
    date, trip_start_time, trip_id).
    """
    day = {"driver_id": "$_id.driver_id", "start_date": "$_id.date"}
    arrays = {"trips": "$summary", "trip_ends": "$trip_end_time"}
    return [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}, "date": {"$in": dates}}},
        {"$sort": dict.fromkeys(("driver_id", "date", "trip_start_time", "trip_id"), 1)},
        {
            "$group": {
                "_id": {"driver_id": "$driver_id", "date": "$date"},
                **sum_totals(trip_count=1, amounts="$totals.", events="$totals.event_summary."),
                **{name: {"$push": path} for name, path in arrays.items()},
                "last_trip_end": {"$max": "$trip_end_time"},
            }
        },
        {"$project": {**saturate_totals(), **dict.fromkeys((*arrays, "last_trip_end"), 1), "date": "$_id.date"}},
        *score_stages(),
        {
            "$project": {
                "_id": 0,
                **day,
                "summary": _in_order(DAILY),
                "trip_count": "$trip_count",
                "last_trip_end": "$last_trip_end",
                **{name: f"${name}" for name in arrays},
            }
        },
    ]


def period_summaries(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    """Over `driver_periods`: one document per driver who drove on the dates.

    Its fields: `driver_id`; `summary`, a DrivingSummary; `days`, the JSON of the Daily summaries, ordered by date; and
    `calendar`, the Calendar of these days. Index: (fleet, period, driver_id, start_date).
    """
    pushed = {"days": {"$push": "$json"}, **{name: {"$push": path} for name, path in CALENDAR.items()}}
    return [
        *_match_days(fleet, driver_ids, dates),
        {"$group": {"_id": "$driver_id", **sum_days(), **pushed}},
        {"$project": {**saturate_totals(), **dict.fromkeys(pushed, 1)}},
        *score_stages(),
        {
            "$project": {
                "_id": 0,
                "driver_id": "$_id",
                "summary": _in_order(DRIVING_SUMMARY),
                "days": "$days",
                "calendar": {name: f"${name}" for name in CALENDAR},
            }
        },
    ]


def fleet_totals(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    """Over `driver_periods`: one document per date on which any of the drivers drove, with `date` and `totals`.

    `totals` is a DrivingSummary without the fields that follow from the score. Index: (fleet, period, driver_id,
    start_date).
    """
    return [
        *_match_days(fleet, driver_ids, dates),
        {"$group": {"_id": "$start_date", **sum_days()}},
        {"$project": saturate_totals()},
        {"$project": {"_id": 0, "date": "$_id", "totals": _in_order(TOTALS)}},
    ]


def travel_dates(fleet: str, driver_ids: list[str], direction: int) -> Pipeline:
    """Over `driver_periods`: one document per driver who drove: `_id` is the driver_id, `date` the first or last date.

    `direction` is pymongo's ASCENDING for the first date, DESCENDING for the last. MongoDB reads one key per driver of
    the index (fleet, period, driver_id, start_date), however many days the driver drove.
    """
    return [
        {"$match": {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}}},
        {"$sort": dict.fromkeys(("fleet", "period", "driver_id", "start_date"), direction)},
        {"$group": {"_id": "$driver_id", "date": {"$first": "$start_date"}}},
    ]


def _match_days(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    return [
        {"$match": {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}},
        {"$sort": {"driver_id": 1, "start_date": 1}},
    ]


def _in_order(fields: Fields, path: str = "$") -> Expression:
    # Each field is named, because MongoDB may return the fields of a document in another order than it stores them.
    return {
        name: path + name if subfields is None else _in_order(subfields, f"{path}{name}.")
        for name, subfields in fields.items()
    }
