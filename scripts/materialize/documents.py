"""The builders: one for each kind of read model. They read what comes before it, and write nothing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import click
import orjson
from marshmallow import Schema
from pymongo import ASCENDING, DESCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Store, summaries
from app.store.score import compute_focus_area
from app.store.summaries import ANY_DATE, PROFILE
from schemas.driver import Driver
from schemas.stored import TripTotals
from schemas.summary import DailySummary, MonthlySummary, WeeklySummary
from schemas.trip import TripDetail, TripSummary
from scripts.materialize import pipelines
from scripts.materialize.dates import Day, by_dates, first_of_month, monday_of, month_dates, utc_date, week_dates
from scripts.materialize.render import to_json, version_of, version_of_texts

DRIVER, DAILY, DETAIL = Driver(), DailySummary(), TripDetail()
NO_NAMES = dict.fromkeys(DRIVER.fields)
BREAKDOWN = "daily_summary_breakdown"
SUMMARY, TOTALS = tuple(TripSummary().fields), tuple(TripTotals().fields)
PARTS = tuple(name for name in DETAIL.fields if name not in SUMMARY)
# The identity of a document of each collection, beside the fleet.
KEYS = {
    "driver_periods": ("driver_id", "period", "start_date"),
    "trip_details": ("trip_id",),
}
# A day's document, of at most 16 MB, holds the trips of the day: up to 1.5 kB each, and 2,000 more from a batch.
MAX_TRIPS_A_DAY = 5_000
Key = tuple[str, ...]
Built = dict[Key, Document]


class Kind(NamedTuple):
    """A kind of period that is summed up from days.

    `first_of` gives the first date of the one that a date lies in, `dates` the dates of the one that begins on a date;
    it raises OverflowError past the year 9999.
    """

    name: str
    schema: Schema
    first_of: Callable[[str], str]
    dates: Callable[[str], list[str]]
    has_calendar: bool


WEEK = Kind(summaries.WEEK.name, WeeklySummary(exclude=(BREAKDOWN,)), monday_of, week_dates, has_calendar=False)
MONTH = Kind(summaries.MONTH, MonthlySummary(exclude=(BREAKDOWN,)), first_of_month, month_dates, has_calendar=True)
KINDS = (WEEK, MONTH)


def make_trip_detail(fleet: str, trip: Mapping[str, Any]) -> Document:
    """Return the `trip_details` document of a trip (schema ImportedTrip), but for its `_id`.

    A trip without a focus area gets the one that follows from its event summary.
    """
    detail = DETAIL.dump(trip if "focus_area" in trip else {**trip, "focus_area": compute_focus_area(trip)})
    summary = {name: detail[name] for name in SUMMARY}
    fragments = {"summary": orjson.dumps(summary), **{name: orjson.dumps(detail[name]) for name in PARTS}}
    # What the source holds beside the detail form.
    source = orjson.dumps([trip["tracking_id"], "focus_area" in trip])
    return {
        "fleet": fleet,
        "trip_id": trip["trip_id"],
        "tracking_id": trip["tracking_id"],
        "driver_id": trip["driver_id"],
        "date": utc_date(trip["trip_start_time"]),
        "trip_start_time": trip["trip_start_time"],
        "trip_end_time": trip["trip_end_time"],
        "totals": {name: detail[name] for name in TOTALS},
        **{name: text.decode() for name, text in fragments.items()},
        "version": version_of_texts([source, *fragments.values()]),
    }


def make_days(store: Store, session: ClientSession, fleet: str, days: Iterable[Day]) -> Built:
    """Return the documents of those of the days that have trips, from `trip_details`. Raises click.ClickException."""
    made: Built = {}
    for drivers, dates in by_dates(days):
        pipeline = pipelines.driver_days(fleet, drivers, dates)
        for day in store.trip_details.aggregate(pipeline, session=session, hint="day_trips"):
            if day["trip_count"] > MAX_TRIPS_A_DAY:
                raise click.ClickException(
                    f"The driver {day['driver_id']} has {day['trip_count']} trips on {day['start_date']}, and "
                    f"{MAX_TRIPS_A_DAY} are the most. Check driver_id and the times of the trips in the file."
                )
            text = to_json(DAILY, day["summary"])
            version = version_of(text, day["trips"], day["trip_ends"])
            made[day_key(Day(day["driver_id"], day["start_date"]))] = {
                "fleet": fleet,
                "period": "day",
                **day,
                "json": text,
                "version": version,
            }
    return made


def make_periods(store: Store, session: ClientSession, fleet: str, kind: Kind, firsts: Iterable[Day]) -> Built:
    """Return the documents of those of the periods that have days, each period given by its first day.

    From the documents of the days, which must be right. A week that ends after the year 9999 has no document.
    """
    made: Built = {}
    for drivers, dates in by_dates(firsts):
        for first in dates:
            try:
                dates_of_period = kind.dates(first)
            except OverflowError:
                continue
            pipeline = pipelines.period_summaries(fleet, drivers, dates_of_period)
            for period in store.driver_periods.aggregate(pipeline, session=session, hint="period"):
                summary = {**period["summary"], "start_date": first, "end_date": dates_of_period[-1]}
                text = f'{to_json(kind.schema, summary)[:-1]},"{BREAKDOWN}":[{",".join(period["days"])}]}}'
                calendar = {"calendar": period["calendar"]} if kind.has_calendar else {}
                _add(made, fleet, period_key(kind, Day(period["driver_id"], first)), text, calendar)
    return made


def make_profiles(store: Store, session: ClientSession, fleet: str, driver_ids: Iterable[str]) -> Built:
    """Return the documents of all time of those of the drivers that were imported, or have trips.

    From `drivers` and the documents of the days. The travel dates are the widest of the imported ones and those of the
    trips.
    """
    ids = list(driver_ids)
    match = {"fleet": fleet, "driver_id": {"$in": ids}}
    imported = {driver["driver_id"]: driver for driver in store.drivers.find(match, session=session)}
    first, last = (
        {
            day["_id"]: day["date"]
            for day in store.driver_periods.aggregate(pipelines.travel_dates(fleet, ids, direction), session=session)
        }
        for direction in (ASCENDING, DESCENDING)
    )
    made: Built = {}
    for driver_id in ids:
        if driver_id in imported or driver_id in first:
            driver = imported.get(driver_id, NO_NAMES)
            dates = {
                "first_travel_date": _widest(min, driver["first_travel_date"], first.get(driver_id)),
                "last_travel_date": _widest(max, driver["last_travel_date"], last.get(driver_id)),
            }
            text = to_json(DRIVER, {**driver, "driver_id": driver_id, **dates})
            _add(made, fleet, profile_key(driver_id), text, {})
    return made


def day_key(day: Day) -> Key:
    """Return the key of a day's document."""
    return day.driver_id, "day", day.date


def period_key(kind: Kind, first: Day) -> Key:
    """Return the key of the document of a period, which is given by its first day."""
    return first.driver_id, kind.name, first.date


def profile_key(driver_id: str) -> Key:
    """Return the key of a driver's document of all time."""
    return driver_id, PROFILE, ANY_DATE


def _add(made: Built, fleet: str, key: Key, text: str, others: Document) -> None:
    """Add the document with this key, this JSON and other fields."""
    named = dict(zip(KEYS["driver_periods"], key, strict=True))
    made[key] = {"fleet": fleet, **named, "json": text, "version": version_of(text), **others}


def _widest(choose: Callable[[list[str]], str], *dates: str | None) -> str | None:
    known = [date for date in dates if date is not None]
    return choose(known) if known else None
