"""The read models of drivers' days, in `driver_periods`.

Aggregation pipelines add up the trips of a day, and Python computes the score from the totals.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from app.store import Document, Store
from app.store.totals import saturate_totals, sum_totals
from schemas.fleet import (
    IMPLAUSIBLE_COUNT,
    INSURANCE_PERIODS,
    NO_INSURANCE_PERIOD,
    make_contribution,
    make_parts,
)
from schemas.periods import DAY
from schemas.score import make_driving_summary
from schemas.summary import DailySummary
from scripts.materialize.versions import render_json, version_of

DAILY_SUMMARY = DailySummary()
Pipeline = list[dict[str, Any]]
# What identifies a document of `driver_periods` in its fleet: driver_id, period and start_date.
PeriodIdentity = tuple[str, str, str]
# The groups of each driver who is in any.
Groups = Mapping[str, list[str]]
# Totals by insurance period.
Totals = Mapping[str, Mapping[str, Any]]
# What identifies a day, and what it has of each trip.
OF_DAY = {"driver_id": "$driver_id", "date": "$date"}
OF_TRIPS = {
    "trips": {"$push": "$summary"},
    "trip_ends": {"$push": "$trip_end_time"},
    "last_trip_end": {"$max": "$trip_end_time"},
    "max_insurance_period": {"$max": "$insurance_period"},
}


class Day(NamedTuple):
    """A driver and a date."""

    driver_id: str
    date: str


def days_of(details: Iterable[Document]) -> set[Day]:
    """Return the days of trips, by their `driver_id` and `date`. Damaged details may be of no day."""
    days = (Day(detail.get("driver_id", ""), detail.get("date", "")) for detail in details)
    return {day for day in days if all(isinstance(value, str) and value for value in day)}


def group_by_dates(days: Iterable[Day]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield groups of drivers and dates that together cover the days: each driver of a group has all of its dates.

    Successive lines of a file usually have few drivers or few dates, so there are few groups. Example: the days
    (d1, Monday), (d2, Monday), (d1, Tuesday) give the groups (d1; Monday, Tuesday) and (d2; Monday).
    """
    dates_by_driver: defaultdict[str, set[str]] = defaultdict(set)
    for driver_id, date in days:
        dates_by_driver[driver_id].add(date)
    drivers_by_dates: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for driver_id, dates in dates_by_driver.items():
        drivers_by_dates[tuple(sorted(dates))].append(driver_id)
    for group, drivers in drivers_by_dates.items():
        yield drivers, list(group)


def make_days(store: Store, fleet: str, days: Iterable[Day]) -> dict[PeriodIdentity, Document | None]:
    """Return the documents of days, built from `trip_details`, or None for a day without trips."""
    documents: dict[PeriodIdentity, Document | None] = {(driver_id, DAY, date): None for driver_id, date in days}
    for driver_ids, dates in group_by_dates(Day(driver_id, date) for driver_id, _, date in documents):
        pipeline = _sum_trips(fleet, driver_ids, dates, OF_DAY, OF_TRIPS)
        found = list(store.trip_details.aggregate(pipeline, hint="day_trips"))
        sums = {Day(**of_day.pop("_id")): of_day for of_day in found}
        has_parts = [day for day, of_day in sums.items() if of_day.pop("max_insurance_period") is not None]
        totals = _sum_insurance_periods(store, fleet, has_parts)
        for day, of_day in sums.items():
            documents[day.driver_id, DAY, day.date] = _make_day(fleet, day, **of_day, insurance_periods=totals.get(day))
    return documents


def _sum_insurance_periods(store: Store, fleet: str, days: Iterable[Day]) -> dict[Day, dict[str, Document]]:
    """Return the totals of days by insurance period."""
    totals = defaultdict[Day, dict[str, Document]](dict)
    key = {**OF_DAY, "insurance_period": {"$ifNull": ["$insurance_period", NO_INSURANCE_PERIOD]}}
    for driver_ids, dates in group_by_dates(days):
        pipeline = _sum_trips(fleet, driver_ids, dates, key, {})
        for found in store.trip_details.aggregate(pipeline, hint="day_trips"):
            name = str(found["_id"].pop("insurance_period"))
            if name in INSURANCE_PERIODS:
                totals[Day(**found["_id"])][name] = found["totals"] | {IMPLAUSIBLE_COUNT: found[IMPLAUSIBLE_COUNT]}
    return totals


def _sum_trips(
    fleet: str, driver_ids: list[str], dates: list[str], key: Mapping[str, Any], of_trips: Mapping[str, Any]
) -> Pipeline:
    """Return the pipeline over `trip_details` for one document per driver and date with trips, or what the `key` says.

    Its fields: `_id` with those of the key; `totals`, of the trips that are not left out; `implausible_trip_count`; and
    `of_trips`. Totals are summed in (trip_start_time, trip_id) order. Index: (fleet, driver_id, date, trip_start_time,
    trip_id).
    """
    others = {**of_trips, IMPLAUSIBLE_COUNT: {"$sum": {"$cond": ["$is_implausible", 1, 0]}}}
    # A trip that is left out has null, which $sum ignores.
    trip_count = {"$cond": ["$totals", 1, 0]}
    totals = sum_totals(trip_count=trip_count, amounts="$totals.", events="$totals.event_summary.")
    return [
        {"$match": {"fleet": fleet, "driver_id": {"$in": driver_ids}, "date": {"$in": dates}}},
        {"$sort": dict.fromkeys(("driver_id", "date", "trip_start_time", "trip_id"), 1)},
        {"$group": {"_id": key, **totals, **others}},
        {"$project": {"totals": saturate_totals(), **dict.fromkeys(others, 1)}},
    ]


def _make_day(
    fleet: str,
    day: Day,
    totals: Document,
    trips: list[str],
    trip_ends: list[int],
    last_trip_end: int,
    implausible_trip_count: int,
    insurance_periods: Totals | None,
) -> Document:
    """Return the document of a day: its Daily summary as BSON and, if trips are counted, as rendered JSON.

    `trips` has the summary form of each trip as rendered JSON, and `trip_ends` its end (epoch ms), in order of start
    and trip_id. `contribution` is what the day adds to `fleet_periods`.
    """
    summary = {**make_driving_summary(totals), "date": day.date}
    rendered = {"json": render_json(DAILY_SUMMARY, summary)} if totals["trip_count"] else {}
    return {
        "fleet": fleet,
        "driver_id": day.driver_id,
        "period": DAY,
        "start_date": day.date,
        **rendered,
        "summary": summary,
        "trip_count": len(trips),
        "last_trip_end": last_trip_end,
        "trips": trips,
        "trip_ends": trip_ends,
        **contribute(summary, implausible_trip_count, insurance_periods),
        **({"insurance_periods": insurance_periods} if insurance_periods else {}),
        "version": version_of(*rendered.values(), trips, trip_ends),
    }


def contribute(summary: Document, implausible_trip_count: int, insurance_periods: Totals | None) -> Document:
    """Return the contribution of a day, week or month and, with insurance periods, its parts."""
    contribution = make_contribution(summary, implausible_trip_count)
    return {
        "contribution": contribution,
        **({"parts": make_parts(contribution, insurance_periods)} if insurance_periods else {}),
    }
