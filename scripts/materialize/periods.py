"""The read models of a driver's days, weeks and months, in `driver_periods`."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from marshmallow import Schema
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.driver_periods import BREAKDOWN_FRAGMENT, CALENDAR_ARRAYS, SUMMARY_FRAGMENT
from app.store.totals import NAMES
from schemas.fleet import make_contribution
from schemas.periods import DAY, FIRST_AND_LAST_DATE, MONTH, WEEK, LongPeriodName, dates_of_period
from schemas.score import compute_points_lost, make_driving_summary
from schemas.summary import DailySummary, DrivingSummary, MonthlySummary, WeeklySummary
from scripts.materialize import pipelines
from scripts.materialize.days import Day, group_by_dates
from scripts.materialize.pipelines import CALENDAR, DAY_PREFIX, DAY_TOTALS, OF_DAYS
from scripts.materialize.render import to_json, version_of

DRIVING_SUMMARY, DAILY_SUMMARY = DrivingSummary(), DailySummary()
BREAKDOWN = "daily_summary_breakdown"
# The fields of a Weekly and of a Monthly summary that are rendered here, and not made of rendered days.
DATE_FIELDS = ("start_date", "end_date")
# What identifies a document of `driver_periods` in its fleet: driver_id, period and start_date.
PeriodIdentity = tuple[str, str, str]


class PeriodType(NamedTuple):
    """A type of period whose documents are built from those of its days: week or month.

    `arrays` is what is collected of the days.
    """

    name: LongPeriodName
    schema: Schema
    arrays: Mapping[str, Any]


PERIOD_TYPES = (
    PeriodType(WEEK, WeeklySummary(only=DATE_FIELDS), OF_DAYS),
    PeriodType(MONTH, MonthlySummary(only=DATE_FIELDS), {**OF_DAYS, **CALENDAR, **DAY_TOTALS}),
)


def make_days(
    store: Store, session: ClientSession, fleet: str, days: Iterable[Day]
) -> dict[PeriodIdentity, Document | None]:
    """Return the documents of days, built from `trip_details`, or None for a day without trips."""
    documents: dict[PeriodIdentity, Document | None] = {(driver_id, DAY, date): None for driver_id, date in days}
    for driver_ids, dates in group_by_dates(Day(driver_id, date) for driver_id, _, date in documents):
        pipeline = pipelines.driver_days(fleet, driver_ids, dates)
        for found in store.trip_details.aggregate(pipeline, session=session, hint="day_trips"):
            day = Day(**found.pop("_id"))
            documents[day.driver_id, DAY, day.date] = _make_day(fleet, day, **found)
    return documents


def _make_day(
    fleet: str, day: Day, totals: Document, trips: list[str], trip_ends: list[int], last_trip_end: int
) -> Document:
    summary = {**make_driving_summary(totals), "date": day.date}
    text = to_json(DAILY_SUMMARY, summary)
    return {
        "fleet": fleet,
        "driver_id": day.driver_id,
        "period": DAY,
        "start_date": day.date,
        "json": text,
        "summary": summary,
        "trip_count": totals["trip_count"],
        "last_trip_end": last_trip_end,
        "trips": trips,
        "trip_ends": trip_ends,
        "contribution": make_contribution(summary),
        "version": version_of(text, trips, trip_ends),
    }


def make_periods(
    store: Store, session: ClientSession, fleet: str, period_type: PeriodType, days: Iterable[Day]
) -> dict[PeriodIdentity, Document | None]:
    """Return the documents of the weeks or months of days, or None for one without trips.

    They are built from the stored documents of their days. A week that ends after the year 9999 has no document.
    """
    first_of, _ = FIRST_AND_LAST_DATE[period_type.name]
    firsts = {Day(driver_id, first_of(date)) for driver_id, date in days}
    documents: dict[PeriodIdentity, Document | None] = {
        (driver, period_type.name, first): None for driver, first in firsts
    }
    for driver_ids, first_dates in group_by_dates(firsts):
        for first in first_dates:
            try:
                dates = dates_of_period(period_type.name, first)
            except OverflowError:
                continue
            pipeline = pipelines.driver_totals(fleet, driver_ids, dates, period_type.arrays)
            for found in store.driver_periods.aggregate(pipeline, session=session, hint="period"):
                identity = (found.pop("_id"), period_type.name, first)
                documents[identity] = _make_period(fleet, period_type, identity, dates, **found)
    return documents


def _make_period(
    fleet: str,
    period_type: PeriodType,
    identity: PeriodIdentity,
    all_dates: list[str],
    totals: Document,
    days: list[str],
    **of_days: list[Any],
) -> Document:
    driver_id, period, start_date = identity
    summary = make_driving_summary(totals)
    window = to_json(period_type.schema, {"start_date": start_date, "end_date": all_dates[-1]})
    fragments = {
        SUMMARY_FRAGMENT: to_json(DRIVING_SUMMARY, summary),
        BREAKDOWN_FRAGMENT: f'{window[:-1]},"{BREAKDOWN}":[{",".join(days)}]}}',
    }
    return {
        "fleet": fleet,
        "driver_id": driver_id,
        "period": period,
        "start_date": start_date,
        **{name: summary[name] for name in ("fm_score", "distance_miles")},
        "points_lost": compute_points_lost(summary),
        **fragments,
        "contribution": make_contribution(summary),
        "version": version_of(*fragments.values()),
        **(_make_calendar(all_dates, of_days) if of_days else {}),
    }


def _make_calendar(all_dates: list[str], of_days: Mapping[str, list[Any]]) -> Document:
    """Return what only a month has: the calendar of its days, and their totals for each of its dates.

    `of_days` has what `pipelines.CALENDAR` and `pipelines.DAY_TOTALS` name.
    """
    day_totals = {}
    for name in ("versions", *NAMES):
        by_date = dict(zip(of_days["dates"], of_days[f"{DAY_PREFIX}{name}"], strict=True))
        day_totals[name] = [by_date.get(date) for date in all_dates]
    return {"calendar": {name: of_days[name] for name in CALENDAR_ARRAYS}, "day_totals": day_totals}
