"""The aggregation pipelines: they add up trips and days. Python computes the score from the totals."""

from typing import Any

from app.store.driver_periods import CALENDAR_ARRAYS
from app.store.totals import saturate_totals, sum_days, sum_totals
from schemas.periods import DAY

Pipeline = list[dict[str, Any]]

# The arrays of a Calendar, each with the expression for one day.
CALENDAR = dict(zip(CALENDAR_ARRAYS, ("$start_date", "$trip_count", "$last_trip_end", "$version"), strict=True))


def driver_days(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    """Over `trip_details`: one document per driver and date with trips.

    Its fields: `_id` with `driver_id` and `date`; `totals`; and `trips`, `trip_ends` and `last_trip_end` as
    `driver_periods` has them. Totals are summed in (trip_start_time, trip_id) order. Index: (fleet, driver_id, date,
    trip_start_time, trip_id).
    """
    arrays = {"trips": {"$push": "$summary"}, "trip_ends": {"$push": "$trip_end_time"}}
    others = {**arrays, "last_trip_end": {"$max": "$trip_end_time"}}
    return [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}, "date": {"$in": dates}}},
        {"$sort": dict.fromkeys(("driver_id", "date", "trip_start_time", "trip_id"), 1)},
        {
            "$group": {
                "_id": {"driver_id": "$driver_id", "date": "$date"},
                **sum_totals(trip_count=1, amounts="$totals.", events="$totals.event_summary."),
                **others,
            }
        },
        {"$project": {"totals": saturate_totals(), **dict.fromkeys(others, 1)}},
    ]


def driver_totals(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    """Over `driver_periods`: one document per driver who drove on the dates.

    Its fields: `_id`, the driver_id; `totals`; `days`, the JSON of the Daily summaries, ordered by date; and the arrays
    of a Calendar. Index: (fleet, period, driver_id, start_date).
    """
    arrays = {"days": {"$push": "$json"}, **{name: {"$push": path} for name, path in CALENDAR.items()}}
    return [
        *_match_days(fleet, driver_ids, dates),
        {"$group": {"_id": "$driver_id", **sum_days(), **arrays}},
        {"$project": {"totals": saturate_totals(), **dict.fromkeys(arrays, 1)}},
    ]


def fleet_totals(fleet: str, driver_ids: list[str], dates: list[str]) -> Pipeline:
    """Over `driver_periods`: one document per date on which any of the drivers drove: `_id`, the date, and `totals`.

    Index: (fleet, period, driver_id, start_date).
    """
    return [
        *_match_days(fleet, driver_ids, dates),
        {"$group": {"_id": "$start_date", **sum_days()}},
        {"$project": {"totals": saturate_totals()}},
    ]


def travel_dates(fleet: str, driver_ids: list[str], direction: int) -> Pipeline:
    """Over `driver_periods`: one document per driver who drove: `_id` is the driver_id, `date` the first or last date.

    `direction` is pymongo's ASCENDING for the first date, DESCENDING for the last. MongoDB reads one entry per driver
    of the index (fleet, period, driver_id, start_date), however many days the driver drove.
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
