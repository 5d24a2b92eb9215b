"""Trips of a fleet."""

import time

from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document
from app.store.page import find_page
from schemas.derive import Fields, fields_of
from schemas.page import TripDetailPage, TripSummaryPage

MS_PER_HOUR = 3_600_000
SUMMARY_PAGE = fields_of(TripSummaryPage)
DETAIL_PAGE = fields_of(TripDetailPage)
OLDEST_FIRST = [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)]
# Of one trip_id there is one trip, and its index knows no times.
DETAIL_ORDER = {"trip_id": [("trip_id", ASCENDING)], "tracking_id": OLDEST_FIRST}


def visible_until(processing_delay_hours: float) -> int:
    """Return the latest end (epoch ms) of a trip that is served by now."""
    return int(time.time() * 1000) - int(processing_delay_hours * MS_PER_HOUR)


def find_driver_trips(
    db: Database[Document],
    fleet: str,
    driver_id: str,
    *,
    start: int,
    ended_by: int,
    page: int,
    limit: int,
    fields: Fields = SUMMARY_PAGE,
) -> Document:
    """Return the `fields` of a Trip page: the driver's trips from `start` on that had ended by `ended_by` (epoch ms).

    Summary form, oldest first. Index: (fleet, driver_id, trip_start_time, trip_id, trip_end_time).
    """
    match = {
        "fleet": fleet,
        "driver_id": driver_id,
        "trip_start_time": {"$gte": start},
        "trip_end_time": {"$lte": ended_by},
    }
    return find_page(db.trips, match, OLDEST_FIRST, page=page, limit=limit, fields=fields, whole=SUMMARY_PAGE)


def find_trips(
    db: Database[Document],
    fleet: str,
    filter_param: str,
    filter_value: str,
    *,
    ended_by: int,
    page: int,
    limit: int,
    fields: Fields = DETAIL_PAGE,
) -> Document:
    """Return the `fields` of a Trip page: the trips with this `trip_id` or `tracking_id` that had ended by `ended_by`.

    Detail form, oldest first; `ended_by` is epoch ms. Indexes: (fleet, trip_id), (fleet, tracking_id, trip_start_time,
    trip_id, trip_end_time).
    """
    match = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": ended_by}}
    order = DETAIL_ORDER[filter_param]
    return find_page(db.trips, match, order, page=page, limit=limit, fields=fields, whole=DETAIL_PAGE)
