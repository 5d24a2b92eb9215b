"""Daily summaries of a fleet, and the weekly ones that add up from them."""

import datetime

from pymongo.database import Database

from app.store import pipelines
from app.store.page import Document
from schemas.derive import projection
from schemas.summary import DailySummary

DAYS_A_WEEK = 7
DAILY = {"_id": 0, "day.driver_id": 1, **projection(DailySummary(), "summary.")}


def find_daily(db: Database[Document], fleet: str, driver_ids: list[str], date: str) -> dict[str, Document]:
    """Return the Daily summaries of those who drove on the date, by driver_id. Index: (fleet, day)."""
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids]
    found = db.daily_summaries.find({"fleet": fleet, "day": {"$in": days}}, DAILY)
    return {doc["day"]["driver_id"]: doc["summary"] for doc in found if "summary" in doc}


def find_weekly(db: Database[Document], fleet: str, driver_ids: list[str], start_date: str) -> dict[str, Document]:
    """Return the Weekly summaries of those who drove in the 7 days from `start_date`, by driver_id.

    Added up from at most 7 daily summaries a driver. Index: (fleet, day).
    """
    first = datetime.date.fromisoformat(start_date)
    dates = [str(first + datetime.timedelta(days=number)) for number in range(DAYS_A_WEEK)]
    days = [{"driver_id": driver_id, "date": date} for driver_id in driver_ids for date in dates]
    found = db.daily_summaries.aggregate(pipelines.weekly_summaries(fleet, days, dates[0], dates[-1]))
    return {doc["driver_id"]: doc["summary"] for doc in found}
