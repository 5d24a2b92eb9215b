"""The read models of a driver's weeks and months, in `driver_periods`, which are built from those of the days."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson

from app.store import Document, Store
from app.store.driver_periods import BREAKDOWN_FRAGMENT, SUMMARY_FRAGMENT, Calendar
from app.store.totals import saturate_totals, sum_days
from schemas.fleet import IMPLAUSIBLE_COUNT, NO_INSURANCE_PERIOD
from schemas.periods import DAY, FIRST_AND_LAST_DATE, MONTH, WEEK, LongPeriodName, dates_of_period
from schemas.score import compute_points_lost, make_driving_summary
from schemas.summary import AMOUNTS, EVENT_TOTALS, TOTALS, DrivingSummary
from scripts.materialize.days import Day, Groups, PeriodIdentity, Pipeline, Totals, contribute, group_by_dates
from scripts.materialize.versions import render_json, version_of

DRIVING_SUMMARY = DrivingSummary()
BREAKDOWN = "daily_summary_breakdown"
# Whether a day has trips with an insurance period, and then what it has of them.
HAS_INSURANCE_PERIODS = {"$cond": [{"$ifNull": ["$insurance_periods", False]}, True, False]}
BY_INSURANCE_PERIOD = {
    "_id": 0,
    **dict.fromkeys(("driver_id", "insurance_periods", "summary", f"contribution.{IMPLAUSIBLE_COUNT}"), 1),
}
# What a week and a month have of each day: the JSON of the Daily summary, for the breakdown.
OF_DAYS = {"days": "$json", "have_insurance_periods": HAS_INSURANCE_PERIODS}
# What a month also has of each day: the arrays of a Calendar, and those of `day_totals`. The latter get a prefix,
# because the sums of the month have the same names. $push leaves out a field that a damaged document lacks.
CALENDAR_ARRAYS = dict(zip(Calendar._fields, ("$start_date", "$trip_count", "$last_trip_end", "$version"), strict=True))
DAY_PREFIX = "day_"
DAY_TOTALS = {
    f"{DAY_PREFIX}{name}": {"$ifNull": [path, None]}
    for name, path in {"versions": "$version", **{name: total["$sum"] for name, total in sum_days().items()}}.items()
}
# What each long period has of its days.
ARRAYS: Mapping[LongPeriodName, Mapping[str, Any]] = {
    WEEK: OF_DAYS,
    MONTH: {**OF_DAYS, **CALENDAR_ARRAYS, **DAY_TOTALS},
}


def first_days_of(period: LongPeriodName, days: Iterable[Day]) -> Iterator[Day]:
    """Yield for each day the first one of the week or month that contains it, in the same order."""
    first_of, _ = FIRST_AND_LAST_DATE[period]
    return (Day(driver_id, first_of(date)) for driver_id, date in days)


def make_periods(
    store: Store, fleet: str, period: LongPeriodName, first_days: Iterable[Day], groups: Groups
) -> dict[PeriodIdentity, Document | None]:
    """Return the documents of weeks or months that begin on these days, or None for one without trips.

    They are built from the stored documents of their days, and have the groups of their drivers. A week that ends after
    the year 9999 has no document.
    """
    documents: dict[PeriodIdentity, Document | None] = {
        (driver_id, period, date): None for driver_id, date in first_days
    }
    for driver_ids, first_dates in group_by_dates(Day(driver_id, date) for driver_id, _, date in documents):
        for first in first_dates:
            try:
                dates = dates_of_period(period, first)
            except OverflowError:
                continue
            pipeline = driver_totals(fleet, driver_ids, dates, ARRAYS[period])
            found = list(store.driver_periods.aggregate(pipeline, hint="period"))
            sums = {of_driver.pop("_id"): of_driver for of_driver in found}
            have_parts = [
                driver_id for driver_id, of_driver in sums.items() if any(of_driver.pop("have_insurance_periods"))
            ]
            totals = _add_up_days(store, fleet, have_parts, dates)
            for driver_id, of_driver in sums.items():
                identity = (driver_id, period, first)
                of_driver |= {"insurance_periods": totals.get(driver_id), "groups": groups.get(driver_id, [])}
                documents[identity] = _make_period(fleet, identity, dates, **of_driver)
    return documents


def driver_totals(
    fleet: str, driver_ids: list[str], dates: list[str], arrays: Mapping[str, Any] = MappingProxyType({})
) -> Pipeline:
    """Return the pipeline over `driver_periods` for one document per driver who drove on the dates.

    Its fields: `_id`, the driver_id; `totals`, without trips if none of them is counted; `implausible_trip_count`; and
    `arrays` with the values of their expressions for each day, by date.
    Index: (fleet, period, driver_id, start_date).
    """
    collected = {name: {"$push": expression} for name, expression in arrays.items()}
    collected[IMPLAUSIBLE_COUNT] = {"$sum": f"$contribution.{IMPLAUSIBLE_COUNT}"}
    return [
        {"$match": {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}},
        {"$sort": {"driver_id": 1, "start_date": 1}},
        {"$group": {"_id": "$driver_id", **sum_days(), **collected}},
        {"$project": {"totals": saturate_totals(), **dict.fromkeys(collected, 1)}},
    ]


def _make_period(
    fleet: str,
    identity: PeriodIdentity,
    all_dates: list[str],
    totals: Document,
    implausible_trip_count: int,
    days: list[str],
    insurance_periods: Totals | None,
    groups: list[str],
    **of_days: list[Any],
) -> Document:
    """Return the document of a week or month: its summary as rendered JSON, in two fragments, and what ranks drivers.

    Both are absent if no trip is counted. A month also has the calendar of its days, and `day_totals`: parallel arrays
    with the version and the totals of each date, null for one without trips, which windows add up. The `groups` are
    absent without any, and no part of the version.
    """
    driver_id, period, start_date = identity
    summary, fragments, ranked = make_driving_summary(totals), {}, {}
    if summary["trip_count"]:
        fragments = _render_period(start_date, all_dates[-1], summary, days)
        ranked = {name: summary[name] for name in ("fm_score", "distance_miles")}
        ranked["points_lost"] = compute_points_lost(summary)
    return {
        "fleet": fleet,
        "driver_id": driver_id,
        "period": period,
        "start_date": start_date,
        **ranked,
        **fragments,
        **contribute(summary, implausible_trip_count, insurance_periods),
        "version": version_of(*fragments.values()),
        **(_make_calendar(all_dates, of_days) if of_days else {}),
        **({"groups": groups} if groups else {}),
    }


def _render_period(start_date: str, end_date: str, summary: Document, days: list[str]) -> dict[str, str]:
    """Return the fragments of a Weekly or Monthly summary."""
    window = orjson.dumps({"start_date": start_date, "end_date": end_date}).decode()
    return {
        SUMMARY_FRAGMENT: render_json(DRIVING_SUMMARY, summary),
        BREAKDOWN_FRAGMENT: f'{window[:-1]},"{BREAKDOWN}":[{",".join(days)}]}}',
    }


def _make_calendar(all_dates: list[str], of_days: Mapping[str, list[Any]]) -> Document:
    """Return what only a month has: the calendar of its days, and their totals for each of its dates.

    `of_days` has what CALENDAR_ARRAYS and DAY_TOTALS name.
    """
    day_totals = {}
    for name in ("versions", *TOTALS):
        by_date = dict(zip(of_days["dates"], of_days[f"{DAY_PREFIX}{name}"], strict=True))
        day_totals[name] = [by_date.get(date) for date in all_dates]
    return {"calendar": {name: of_days[name] for name in Calendar._fields}, "day_totals": day_totals}


def _add_up_days(store: Store, fleet: str, driver_ids: Sequence[str], dates: Sequence[str]) -> dict[str, Totals]:
    """Return what the days of each of the drivers add up to, by driver_id.

    Index: driver_periods (fleet, period, driver_id, start_date).
    """
    if not driver_ids:
        return {}
    match = {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}
    by_driver = defaultdict[str, defaultdict[str, list[Document]]](lambda: defaultdict(list))
    for day in store.driver_periods.find(match, BY_INSURANCE_PERIOD):
        whole = {**day.get("summary", {}), **day.get("contribution", {})}
        for name, totals in day.get("insurance_periods", {NO_INSURANCE_PERIOD: whole}).items():
            by_driver[day["driver_id"]][name].append(totals)
    return {
        driver_id: {name: _sum_parts(days) for name, days in of_driver.items()}
        for driver_id, of_driver in by_driver.items()
    }


def _sum_parts(days: Sequence[Document]) -> Document:
    names = ("trip_count", IMPLAUSIBLE_COUNT, *AMOUNTS)
    events = [day.get("events_summary", {}) for day in days]
    return {
        **{name: _sum(days, name) for name in names},
        "events_summary": {name: _sum(events, name) for name in EVENT_TOTALS},
    }


def _sum(documents: Iterable[Document], name: str) -> float:
    # As in `saturate_totals`. What a contribution has is rounded, so another error in the last bit changes nothing.
    # Damaged documents may lack a field.
    total: float = sum(document.get(name, 0) for document in documents)
    return min(total, sys.float_info.max)
