"""The aggregation pipelines: they add up trips and days. Python computes the score from the totals."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from app.store.driver_periods import CALENDAR_ARRAYS
from app.store.totals import saturate_totals, sum_days, sum_totals
from schemas.periods import DAY

Pipeline = list[dict[str, Any]]

# What a week and a month have of each day: the JSON of the Daily summary, for the breakdown.
OF_DAYS = {"days": "$json"}
# What a month also has of each day: the arrays of a Calendar, and those of DayTotals. The latter get a prefix, because
# the sums of the month have the same names. $push leaves out a field that a damaged document lacks.
CALENDAR = dict(zip(CALENDAR_ARRAYS, ("$start_date", "$trip_count", "$last_trip_end", "$version"), strict=True))
DAY_PREFIX = "day_"
DAY_TOTALS = {
    f"{DAY_PREFIX}{name}": {"$ifNull": [path, None]}
    for name, path in {"versions": "$version", **{name: total["$sum"] for name, total in sum_days().items()}}.items()
}


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


def driver_totals(
    fleet: str, driver_ids: list[str], dates: list[str], arrays: Mapping[str, Any] = MappingProxyType({})
) -> Pipeline:
    """Over `driver_periods`: one document per driver who drove on the dates.

    Its fields: `_id`, the driver_id; `totals`; and `arrays` with the values of their expressions for each day, by date.
    Index: (fleet, period, driver_id, start_date).
    """
    pushed = {name: {"$push": expression} for name, expression in arrays.items()}
    return [
        {"$match": {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}},
        {"$sort": {"driver_id": 1, "start_date": 1}},
        {"$group": {"_id": "$driver_id", **sum_days(), **pushed}},
        {"$project": {"totals": saturate_totals(), **dict.fromkeys(arrays, 1)}},
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
