"""Daily summaries of a fleet, and the weekly ones that add up from them."""

import datetime

from pymongo.database import Database

from app.store import Document, pipelines
from app.store.pipelines import Days
from schemas.derive import projection
from schemas.summary import DailySummary

DAYS_A_WEEK = 7
DAILY = {"_id": 0, "day": 1, "stale": 1, **projection(DailySummary(), "summary.")}


def find_daily(db: Database[Document], fleet: str, driver_ids: list[str], date: str) -> dict[str, Document]:
    """Return the Daily summaries of those who drove on the date, by driver_id. Index: (fleet, day)."""
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids]
    found = list(db.daily_summaries.find({"fleet": fleet, "day": {"$in": days}}, DAILY))
    if stale := [doc["day"] for doc in found if "stale" in doc]:
        found = [doc for doc in found if "stale" not in doc]
        found += db.trips.aggregate(pipelines.daily_summaries(fleet, stale))
    return {doc["day"]["driver_id"]: doc["summary"] for doc in found}


def find_weekly(db: Database[Document], fleet: str, driver_ids: list[str], start_date: str) -> dict[str, Document]:
    """Return the Weekly summaries of those who drove in the 7 days from `start_date`, by driver_id.

    Added up from at most 7 daily summaries a driver. Indexes: (fleet, day), (fleet, stale, day).
    """
    first = datetime.date.fromisoformat(start_date)
    dates = [str(first + datetime.timedelta(days=number)) for number in range(DAYS_A_WEEK)]
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids for date in dates]
    stale = _stale(db, fleet, days)
    pipeline = pipelines.weekly_summaries(fleet, [day for day in days if day not in stale], stale, dates[0], dates[-1])
    return {doc["driver_id"]: doc["summary"] for doc in db.daily_summaries.aggregate(pipeline)}


def _stale(db: Database[Document], fleet: str, days: Days) -> Days:
    """Return those of the days whose trips are being written; their summaries are to be made from the trips."""
    found = db.daily_summaries.find({"fleet": fleet, "stale": True, "day": {"$in": days}}, {"_id": 0, "day": 1})
    return [doc["day"] for doc in found]
