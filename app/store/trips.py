"""Trips of a fleet."""

import time
from array import array

from orjson import Fragment
from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document
from app.store.buckets import VERSION_BYTES, Buckets, utc_date
from app.store.drivers import find_by_id
from app.store.page import Asked, find_page
from app.store.served import DRIVER, Found, Seen, joined
from app.store.sharing import find_counts
from schemas.derive import Fields, fields_of
from schemas.page import TripDetailPage, TripSummaryPage

MS_PER_HOUR = 3_600_000
SUMMARY_PAGE = fields_of(TripSummaryPage)
DETAIL_PAGE = fields_of(TripDetailPage)
OLDEST_FIRST = [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)]
ROWS = {"_id": 0, "version": 1, "rows": 1}
ROWS_AND_ENDS = {**ROWS, "ends": 1}
BY_SPAN = [("span", ASCENDING)]
VERSION = {"_id": 0, "version": 1}
TEXT = {"_id": 0, "version": 1, "text": 1}
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
    seen: Seen | None = None,
) -> Found:
    """Find the `fields` of a Trip page: the driver's trips from `start`, a midnight, that had ended by `ended_by`.

    Both are epoch ms. Summary form, oldest first. Indexes: (fleet, driver_id, span), and where masked or stale (fleet,
    driver_id, trip_start_time, trip_id, trip_end_time). Raises UnknownDrivers.
    """
    asked = Asked(page, limit, fields, SUMMARY_PAGE)
    match = {"fleet": fleet, "driver_id": driver_id, "trip_end_time": {"$lte": ended_by}}
    buckets = _buckets(db, fleet, driver_id, start, ended_by)
    if buckets is not None:
        count, version = buckets.count, buckets.version
        if seen is not None and seen(version):
            return Found(None, version)
        if fields is not SUMMARY_PAGE:
            start, skip = buckets.seek(asked.skip) if asked.skip < count else (start, 0)
            match["trip_start_time"] = {"$gte": start}
            return Found(find_page(db.trips, match, OLDEST_FIRST, asked, count=count, skip=skip), version)
        rows = _rows(db, fleet, driver_id, buckets, asked, ended_by)
        if rows is not None:
            return Found(asked.content(rows, count), version)
    find_by_id(db, fleet, [driver_id], {})
    match["trip_start_time"] = {"$gte": start}
    return Found(find_page(db.trips, match, OLDEST_FIRST, asked), None)


def _buckets(db: Database[Document], fleet: str, driver_id: str, start: int, ended_by: int) -> Buckets | None:
    """Return the buckets from a midnight on, counting visible trips alone, or None where they are not known."""
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    driver = db.served_spans.find_one({**of_driver, "span": DRIVER}, {"_id": 0, "stale": 1, "buckets": 1})
    if driver is None or "stale" in driver:
        return None
    buckets = Buckets(driver["buckets"]).since(utc_date(start))
    if unsettled := buckets.unsettled(ended_by):
        found = db.served_spans.find({**of_driver, "span": {"$in": unsettled}}, {"_id": 0, "span": 1, "ends": 1})
        buckets.count_only({doc["span"]: sum(end <= ended_by for end in _ends(doc)) for doc in found})
    return buckets


def _rows(
    db: Database[Document], fleet: str, driver_id: str, buckets: Buckets, asked: Asked, ended_by: int
) -> Fragment | None:
    """Return the trips of a page, or None where they were written since the buckets were."""
    if asked.skip >= buckets.count:
        return joined([])
    place, settled = buckets.place(asked.skip, asked.limit), not buckets.unsettled(ended_by)
    wanted = {"fleet": fleet, "driver_id": driver_id, "span": {"$gte": place.first, "$lte": place.last}}
    found = list(db.served_spans.find(wanted, ROWS if settled else ROWS_AND_ENDS).sort(BY_SPAN))
    if b"".join([doc["version"] for doc in found]) != place.versions:
        return None
    if settled:
        rows = [row for doc in found for row in doc["rows"]]
    else:
        rows = [row for doc in found for row, end in zip(doc["rows"], _ends(doc), strict=True) if end <= ended_by]
    return joined(rows[place.skip : place.skip + asked.limit])


def _ends(bucket: Document) -> "array[int]":
    return array("q", bucket["ends"])


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
    seen: Seen | None = None,
) -> Found:
    """Find the `fields` of a Trip page: the trips with this `trip_id` or `tracking_id` that had ended by `ended_by`.

    Detail form, oldest first; `ended_by` is epoch ms. Indexes: (fleet, trip_id), (fleet, tracking_id, trip_start_time,
    trip_id, trip_end_time); of `served_trackings` (fleet, tracking_id).
    """
    asked = Asked(page, limit, fields, DETAIL_PAGE)
    match: Document = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": ended_by}}
    order, whole = DETAIL_ORDER[filter_param], seen is None and fields is DETAIL_PAGE
    shared, skip = filter_param == "tracking_id", asked.skip
    # Most first pages tell all by themselves.
    counts = find_counts(db, fleet, filter_value, ended_by) if shared and page > 1 else None
    if counts is not None:
        start, skip = counts.seek(asked.skip)
        match["trip_start_time"] = {"$gte": start}
    found = list(db.trips.find(match, TEXT if whole else VERSION).sort(order).skip(skip).limit(limit))
    if 0 < len(found) < limit or (page == 1 and not found):
        # A page that is not full is the last one.
        count = asked.skip + len(found)
    else:
        if shared and page == 1:
            counts = find_counts(db, fleet, filter_value, ended_by)
        count = db.trips.count_documents(match) if counts is None else counts.count
    if any("version" not in trip for trip in found):
        # Imported before there were versions; 'rollups rebuild' makes them.
        return Found(find_page(db.trips, match, order, asked, count=count, skip=skip), None)
    version = b"".join([count.to_bytes(VERSION_BYTES), *(trip["version"] for trip in found)])
    if seen is not None and seen(version):
        return Found(None, version)
    if seen is not None:
        return find_trips(
            db, fleet, filter_param, filter_value, ended_by=ended_by, page=page, limit=limit, fields=fields
        )
    if whole and all("text" in trip for trip in found):
        return Found(asked.content(joined([trip["text"] for trip in found]), count), version)
    return Found(find_page(db.trips, match, order, asked, count=count, skip=skip), version)
