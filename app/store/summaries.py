"""Daily summaries of a fleet, and the weekly ones that add up from them."""

import datetime

from pymongo.database import Database

from app.store import Document, pipelines
from app.store.pipelines import DAILY, WEEKLY, Days
from schemas.derive import Fields, projection
from schemas.mask import arranger

DAYS_A_WEEK = 7


def find_daily(
    db: Database[Document], fleet: str, driver_ids: list[str], date: str, fields: Fields = DAILY
) -> dict[str, Document]:
    """Return the `fields` of the Daily summaries of those who drove on the date, by driver_id. Index: (fleet, day)."""
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids]
    wanted = {"_id": 0, "day": 1, "stale": 1, **projection(fields, "summary.")}
    found = list(db.daily_summaries.find({"fleet": fleet, "day": {"$in": days}}, wanted))
    if stale := [doc["day"] for doc in found if "stale" in doc]:
        found = [doc for doc in found if "stale" not in doc]
        found += db.trips.aggregate(pipelines.daily_summaries(fleet, stale, fields))
    arrange = arranger(fields, DAILY)
    return {doc["day"]["driver_id"]: arrange(doc["summary"]) for doc in found}


def find_weekly(
    db: Database[Document], fleet: str, driver_ids: list[str], start_date: str, fields: Fields = WEEKLY
) -> dict[str, Document]:
    """Return the `fields` of the Weekly summaries of those who drove in the 7 days from `start_date`, by driver_id.

    Added up from at most 7 daily summaries a driver. Indexes: (fleet, day), (fleet, stale, day).
    """
    first = datetime.date.fromisoformat(start_date)
    dates = [str(first + datetime.timedelta(days=number)) for number in range(DAYS_A_WEEK)]
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids for date in dates]
    stale = _stale(db, fleet, days)
    fresh = [day for day in days if day not in stale]
    pipeline = pipelines.weekly_summaries(fleet, fresh, stale, dates[0], dates[-1], fields)
    return {doc["driver_id"]: doc["summary"] for doc in db.daily_summaries.aggregate(pipeline)}


def _stale(db: Database[Document], fleet: str, days: Days) -> Days:
    """Return those of the days whose trips are being written; their summaries are to be made from the trips."""
    found = db.daily_summaries.find({"fleet": fleet, "stale": True, "day": {"$in": days}}, {"_id": 0, "day": 1})
    return [doc["day"] for doc in found]
