"""The builders: one function for each kind of read model. They read its sources, and write nothing."""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple

import click
import orjson
from marshmallow import Schema
from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.dates import first_of_month, monday_of, month_dates, week_dates
from app.store.driver_periods import BREAKDOWN_FRAGMENT, SUMMARY_FRAGMENT
from app.store.score import compute_focus_area
from app.store.trips import DETAIL_FRAGMENTS, TRIP_SUMMARY
from schemas.driver import Driver
from schemas.periods import ANY_DATE, DAY, MONTH, PROFILE, WEEK, LongPeriodName
from schemas.stored import TripTotals
from schemas.summary import DailySummary, DrivingSummary, MonthlySummary, WeeklySummary
from schemas.trip import TripDetail
from scripts.materialize import pipelines
from scripts.materialize.dates import Day, group_by_dates, utc_date
from scripts.materialize.render import to_json, version_of, version_of_texts

DRIVER, DRIVING_SUMMARY, DAILY_SUMMARY, TRIP_DETAIL = Driver(), DrivingSummary(), DailySummary(), TripDetail()
BREAKDOWN = "daily_summary_breakdown"
# The fields of a Weekly and of a Monthly summary that are rendered here, and not made of rendered days.
DATE_FIELDS = ("start_date", "end_date")
TRIP_TOTALS_FIELDS = tuple(TripTotals().fields)
# The fields that, together with the fleet, identify a document of each collection.
KEY_FIELDS = {
    "driver_periods": ("driver_id", "period", "start_date"),
    "trip_details": ("trip_id",),
    "ranking_counts": ("period", "start_date"),
    "trip_changes": ("trip_id",),
}
# The document of a day contains the summaries of its trips, up to 1.5 kB each. MongoDB limits it to 16 MB, and a
# batch of an import may add 2,000 trips before this limit is checked.
MAX_TRIPS_A_DAY = 5_000
# The values of KEY_FIELDS.
DocumentKey = tuple[str, ...]
DocumentsByKey = dict[DocumentKey, Document]


class PeriodType(NamedTuple):
    """A type of period whose documents are built from those of its days: week or month.

    `first_of` returns the first date of the period that contains a date. `dates` returns the dates of the period that
    starts on a date; it raises OverflowError after the year 9999.
    """

    name: LongPeriodName
    schema: Schema
    first_of: Callable[[str], str]
    dates: Callable[[str], list[str]]
    has_calendar: bool


PERIOD_TYPES = (
    PeriodType(WEEK, WeeklySummary(only=DATE_FIELDS), monday_of, week_dates, has_calendar=False),
    PeriodType(MONTH, MonthlySummary(only=DATE_FIELDS), first_of_month, month_dates, has_calendar=True),
)


def make_trip_detail(fleet: str, trip: Mapping[str, Any]) -> Document:
    """Return the `trip_details` document of a trip (schema ImportedTrip), without `_id`.

    If the trip has no focus area, it is computed from its event summary.
    """
    detail = TRIP_DETAIL.dump(trip if "focus_area" in trip else {**trip, "focus_area": compute_focus_area(trip)})
    summary = {name: detail[name] for name in TRIP_SUMMARY}
    fragments = {"summary": orjson.dumps(summary), **{name: orjson.dumps(detail[name]) for name in DETAIL_FRAGMENTS}}
    # Part of the version, because they are stored in `trips` but not in the detail form.
    source = orjson.dumps([trip["tracking_id"], "focus_area" in trip])
    return {
        "fleet": fleet,
        "trip_id": trip["trip_id"],
        "tracking_id": trip["tracking_id"],
        "driver_id": trip["driver_id"],
        "date": utc_date(trip["trip_start_time"]),
        "trip_start_time": trip["trip_start_time"],
        "trip_end_time": trip["trip_end_time"],
        # As plain numbers of JSON: MongoDB adds up a 64-bit integer with other rounding errors than a 32-bit one, and a
        # trip that is exported and imported again has lost the difference.
        "totals": orjson.loads(orjson.dumps({name: detail[name] for name in TRIP_TOTALS_FIELDS})),
        **{name: text.decode() for name, text in fragments.items()},
        "version": version_of_texts([source, *fragments.values()]),
    }


def make_detail_of_source(fleet: str, source: Mapping[str, Any]) -> Document:
    """Return the `trip_details` document of a document of `trips`, with the same `_id`."""
    return {"_id": source["_id"], **make_trip_detail(fleet, source)}


def make_days(store: Store, session: ClientSession, fleet: str, days: Iterable[Day]) -> DocumentsByKey:
    """Return the documents of the days that have trips, built from `trip_details`.

    Raises click.ClickException for a day with more than MAX_TRIPS_A_DAY trips.
    """
    documents: DocumentsByKey = {}
    for drivers, dates in group_by_dates(days):
        pipeline = pipelines.driver_days(fleet, drivers, dates)
        for day in store.trip_details.aggregate(pipeline, session=session, hint="day_trips"):
            if day["trip_count"] > MAX_TRIPS_A_DAY:
                raise click.ClickException(
                    f"The driver {day['driver_id']} has {day['trip_count']} trips on {day['start_date']}; the "
                    f"maximum is {MAX_TRIPS_A_DAY}. Check driver_id and the times of the trips in the file."
                )
            text = to_json(DAILY_SUMMARY, day["summary"])
            version = version_of(text, day["trips"], day["trip_ends"])
            documents[day_key(Day(day["driver_id"], day["start_date"]))] = {
                "fleet": fleet,
                "period": DAY,
                **day,
                "json": text,
                "version": version,
            }
    return documents


def make_periods(
    store: Store, session: ClientSession, fleet: str, period_type: PeriodType, firsts: Iterable[Day]
) -> DocumentsByKey:
    """Return the documents of the periods that have days with trips. `firsts` has the first day of each period.

    They are built from the stored documents of the days. A week that ends after the year 9999 has no document.
    """
    documents: DocumentsByKey = {}
    for drivers, dates in group_by_dates(firsts):
        for first in dates:
            try:
                dates_of_period = period_type.dates(first)
            except OverflowError:
                continue
            pipeline = pipelines.period_summaries(fleet, drivers, dates_of_period)
            for period in store.driver_periods.aggregate(pipeline, session=session, hint="period"):
                key = period_key(period_type, Day(period["driver_id"], first))
                documents[key] = _make_period(fleet, period_type, key, period, dates_of_period[-1])
    return documents


def _make_period(fleet: str, period_type: PeriodType, key: DocumentKey, period: Document, end_date: str) -> Document:
    """Return the document of a period from the result of the pipeline."""
    key_fields, summary = dict(zip(KEY_FIELDS["driver_periods"], key, strict=True)), period["summary"]
    dates = to_json(period_type.schema, {"start_date": key_fields["start_date"], "end_date": end_date})
    fragments = {
        SUMMARY_FRAGMENT: to_json(DRIVING_SUMMARY, summary),
        BREAKDOWN_FRAGMENT: f'{dates[:-1]},"{BREAKDOWN}":[{",".join(period["days"])}]}}',
    }
    return {
        "fleet": fleet,
        **key_fields,
        **{name: summary[name] for name in ("fm_score", "distance_miles")},
        **fragments,
        "version": version_of(*fragments.values()),
        **({"calendar": period["calendar"]} if period_type.has_calendar else {}),
    }


def make_profiles(
    store: Store, session: ClientSession, fleet: str, driver_ids: Iterable[str], left_out: Container[str] = ()
) -> DocumentsByKey:
    """Return the profiles of the drivers that were imported or have trips.

    They are built from `drivers`, but for the drivers that are `left_out`, and the stored documents of the days.
    """
    ids = list(driver_ids)
    match = {"fleet": fleet, "driver_id": {"$in": [driver_id for driver_id in ids if driver_id not in left_out]}}
    imported = {driver["driver_id"]: driver for driver in store.drivers.find(match, session=session)}
    first, last = (
        {
            day["_id"]: day["date"]
            for day in store.driver_periods.aggregate(pipelines.travel_dates(fleet, ids, direction), session=session)
        }
        for direction in (ASCENDING, DESCENDING)
    )
    return {
        profile_key(driver_id): _make_profile(
            fleet, driver_id, imported.get(driver_id, {}), first.get(driver_id), last.get(driver_id)
        )
        for driver_id in ids
        if driver_id in imported or driver_id in first
    }


def _make_profile(fleet: str, driver_id: str, imported: Document, first: str | None, last: str | None) -> Document:
    """Return the profile of a driver: `imported` is the source or empty, `first` and `last` are dates with trips.

    The first travel date is the earlier one of the imported date and `first`, the last travel date the later one.
    """
    dates = {
        "first_travel_date": _choose_date(min, imported.get("first_travel_date"), first),
        "last_travel_date": _choose_date(max, imported.get("last_travel_date"), last),
    }
    text = to_json(DRIVER, {**imported, "driver_id": driver_id, **dates})
    key = dict(zip(KEY_FIELDS["driver_periods"], profile_key(driver_id), strict=True))
    source = {"source_id": imported["_id"]} if imported else {}
    return {"fleet": fleet, **key, "json": text, "version": version_of(text), **source}


def day_key(day: Day) -> DocumentKey:
    """Return the key of a day's document."""
    return day.driver_id, DAY, day.date


def period_key(period_type: PeriodType, first: Day) -> DocumentKey:
    """Return the key of the document of the period that starts on this day."""
    return first.driver_id, period_type.name, first.date


def profile_key(driver_id: str) -> DocumentKey:
    """Return the key of a driver's profile."""
    return driver_id, PROFILE, ANY_DATE


def _choose_date(choose: Callable[[list[str]], str], *dates: str | None) -> str | None:
    """Return what `choose`, min or max, selects of the dates that are not None, or None without any."""
    present = [date for date in dates if date is not None]
    return choose(present) if present else None
