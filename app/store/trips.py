"""Trips of a fleet."""

import time

from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document
from app.store.page import Page, find_page
from schemas.derive import projection
from schemas.trip import TripDetail, TripSummary

MS_PER_HOUR = 3_600_000
SUMMARY = {"_id": 0, **projection(TripSummary())}
DETAIL = {"_id": 0, **projection(TripDetail())}
OLDEST_FIRST = [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)]
# Of one trip_id there is one trip, and its index knows no times.
DETAIL_ORDER = {"trip_id": [("trip_id", ASCENDING)], "tracking_id": OLDEST_FIRST}


def visible_until(processing_delay_hours: float) -> int:
    """Return the latest end (epoch ms) of a trip that is served by now."""
    return int(time.time() * 1000) - int(processing_delay_hours * MS_PER_HOUR)


def find_driver_trips(
    db: Database[Document], fleet: str, driver_id: str, *, start: int, ended_by: int, page: int, limit: int
) -> Page:
    """Return one Page of the driver's trips that began at `start` or later and had ended by `ended_by` (epoch ms).

    Summary form, oldest first. Index: (fleet, driver_id, trip_start_time, trip_id, trip_end_time).
    """
    match = {
        "fleet": fleet,
        "driver_id": driver_id,
        "trip_start_time": {"$gte": start},
        "trip_end_time": {"$lte": ended_by},
    }
    return find_page(db.trips, match, OLDEST_FIRST, SUMMARY, page=page, limit=limit)


def find_trips(
    db: Database[Document], fleet: str, filter_param: str, filter_value: str, *, ended_by: int, page: int, limit: int
) -> Page:
    """Return one Page of the trips with this `trip_id` or `tracking_id` that had ended by `ended_by` (epoch ms).

    Detail form, oldest first. Indexes: (fleet, trip_id), (fleet, tracking_id, trip_start_time, trip_id, trip_end_time).
    """
    match = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": ended_by}}
    return find_page(db.trips, match, DETAIL_ORDER[filter_param], DETAIL, page=page, limit=limit)
