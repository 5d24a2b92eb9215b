"""Trips of a fleet."""

import time
from array import array

from orjson import Fragment
from pymongo import ASCENDING
from pymongo.database import Database

from app.store import Document, OutOfShape
from app.store.buckets import VERSION_BYTES, Buckets, Counts, utc_date
from app.store.drivers import find_by_id
from app.store.page import ATTEMPTS, Asked, find_counted_page, find_page
from app.store.reading import find
from app.store.served import DRIVER, Found, Seen, from_served, joined
from app.store.sharing import find_counts
from schemas.derive import Fields, fields_of
from schemas.page import TripDetailPage, TripSummaryPage

MS_PER_HOUR = 3_600_000
SUMMARY_PAGE = fields_of(TripSummaryPage)
DETAIL_PAGE = fields_of(TripDetailPage)
OLDEST_FIRST = [("trip_start_time", ASCENDING), ("trip_id", ASCENDING)]
ROWS = {"_id": 0, "version": 1, "rows": 1}
ROWS_AND_ENDS = {**ROWS, "ends": 1}
BUCKETS = {"_id": 0, "stale": 1, "buckets": 1}
ENDS = {"_id": 0, "span": 1, "ends": 1}
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
    asked = Asked(page, limit, fields, TripSummaryPage)
    served = _find_served(db, fleet, driver_id, asked, start, ended_by, seen)
    if served is None:
        find_by_id(db, fleet, [driver_id], {})
        served = Found(find_page(db.trips, _match(fleet, driver_id, start, ended_by), OLDEST_FIRST, asked), None)
    return served


def _match(fleet: str, driver_id: str, start: int, ended_by: int) -> Document:
    times = {"trip_start_time": {"$gte": start}, "trip_end_time": {"$lte": ended_by}}
    return {"fleet": fleet, "driver_id": driver_id, **times}


@from_served
def _find_served(
    db: Database[Document], fleet: str, driver_id: str, asked: Asked, start: int, ended_by: int, seen: Seen | None
) -> Found | None:
    buckets = _buckets(db, fleet, driver_id, start, ended_by)
    if buckets is None:
        return None
    count, version = buckets.count, buckets.version
    if seen is not None and seen(version):
        return Found(None, version)
    if asked.fields is SUMMARY_PAGE:
        rows = _rows(db, fleet, driver_id, buckets, asked, ended_by)
        return None if rows is None else Found(asked.content(rows, count), version)
    near, skip = buckets.seek(asked.skip) if asked.skip < count else (start, 0)
    after = _match(fleet, driver_id, near, ended_by)
    content = find_counted_page(db.trips, after, OLDEST_FIRST, asked, count, skip)
    return None if content is None else Found(content, version)


def _buckets(db: Database[Document], fleet: str, driver_id: str, start: int, ended_by: int) -> Buckets | None:
    """Return the buckets from a midnight on, counting visible trips alone, or None where they are not known."""
    of_driver = {"fleet": fleet, "driver_id": driver_id}
    drivers = find(db.served_spans, {**of_driver, "span": DRIVER}, BUCKETS, limit=1)
    if not drivers or "stale" in drivers[0]:
        return None
    buckets = Buckets(drivers[0]["buckets"]).since(utc_date(start))
    if unsettled := buckets.unsettled(ended_by):
        found = find(db.served_spans, {**of_driver, "span": {"$in": unsettled}}, ENDS)
        buckets.count_only({doc["span"]: sum(end <= ended_by for end in _ends(doc)) for doc in found})
    return buckets


def _rows(
    db: Database[Document], fleet: str, driver_id: str, buckets: Buckets, asked: Asked, ended_by: int
) -> Fragment | None:
    """Return the trips of a page, or None where they are not those that the buckets tell of."""
    if asked.skip >= buckets.count:
        return joined([])
    place, settled = buckets.place(asked.skip, asked.limit), not buckets.unsettled(ended_by)
    wanted = {"fleet": fleet, "driver_id": driver_id, "span": {"$gte": place.first, "$lte": place.last}}
    found = find(db.served_spans, wanted, ROWS if settled else ROWS_AND_ENDS, BY_SPAN)
    if b"".join([doc["version"] for doc in found]) != place.versions:
        return None
    if settled:
        rows = [row for doc in found for row in doc["rows"]]
    else:
        rows = [row for doc in found for row, end in zip(doc["rows"], _ends(doc), strict=True) if end <= ended_by]
    rows = rows[place.skip : place.skip + asked.limit]
    return joined(rows) if asked.fits(rows, buckets.count) else None


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
    trip_id, trip_end_time); of `served_trackings` (fleet, tracking_id). Raises OutOfShape.
    """
    # Of a trip_id there is one trip; what shares a tracking_id is a list.
    asked = Asked(page, limit, fields, TripDetailPage, strictly=filter_param == "trip_id")
    match = {"fleet": fleet, filter_param: filter_value, "trip_end_time": {"$lte": ended_by}}
    for _ in range(ATTEMPTS):
        found = _find_trips(db, match, filter_param, asked, seen)
        if found is not None:
            return found
    return Found(find_page(db.trips, match, DETAIL_ORDER[filter_param], asked), None)


def _find_trips(
    db: Database[Document], match: Document, filter_param: str, asked: Asked, seen: Seen | None
) -> Found | None:
    """Find a Trip page, or None where trips were written while it was read."""
    order, whole = DETAIL_ORDER[filter_param], seen is None and asked.fields is DETAIL_PAGE
    by_tracking, after, skip = filter_param == "tracking_id", match, asked.skip
    # Most first pages tell all by themselves.
    counts = _counts(db, match) if by_tracking and asked.page > 1 else None
    if counts is not None:
        start, skip = counts.seek(asked.skip)
        after = {**match, "trip_start_time": {"$gte": start}}
    found = find(db.trips, after, TEXT if whole else VERSION, order, skip=skip, limit=asked.limit)
    if 0 < len(found) < asked.limit or (asked.page == 1 and not found):
        # A page that is not full is the last one.
        count = asked.skip + len(found)
        if not found and not by_tracking:
            _check_end(db, match)
    else:
        if by_tracking and asked.page == 1:
            counts = _counts(db, match)
        count = db.trips.count_documents(match) if counts is None else counts.count
    if not asked.fits(found, count) or (counts is not None and count != counts.count):
        return None
    if not all(isinstance(trip.get("version"), bytes) for trip in found):
        # Put there by another hand, or before there were versions; 'rollups rebuild' makes them.
        return Found(find_page(db.trips, match, order, asked), None)
    version = b"".join([count.to_bytes(VERSION_BYTES), *(trip["version"] for trip in found)])
    if seen is not None:
        return Found(None, version) if seen(version) else _find_trips(db, match, filter_param, asked, None)
    if whole and all(isinstance(trip.get("text"), bytes) for trip in found):
        return Found(asked.content(joined([trip["text"] for trip in found]), count), version)
    content = find_counted_page(db.trips, after, order, asked, count, skip)
    return None if content is None else Found(content, version)


def _check_end(db: Database[Document], match: Document) -> None:
    """Raise OutOfShape where the trip is there, with an end that is no time: so it is neither visible nor to be."""
    trip = {name: match[name] for name in ("fleet", "trip_id")}
    found = db.trips.find_one(trip, {"_id": 0, "trip_end_time": 1})
    if found is not None and not isinstance(found.get("trip_end_time"), int):
        raise OutOfShape(db.trips, trip)


def _counts(db: Database[Document], match: Document) -> Counts | None:
    return find_counts(db, match["fleet"], match["tracking_id"], match["trip_end_time"]["$lte"])
