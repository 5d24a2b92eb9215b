"""The collections: their indexes, each named after what it serves, and the validators that guard them."""

from typing import Any

from marshmallow import Schema
from pymongo import ASCENDING, IndexModel

from schemas.derive import validator
from schemas.stored import (
    ServedDrivers,
    ServedSpan,
    ServedTracking,
    StoredDailySummary,
    StoredDriver,
    StoredKey,
    StoredReport,
    StoredTrip,
    Writer,
)


def _index(name: str, *keys: str, **options: Any) -> IndexModel:
    return IndexModel([(key, ASCENDING) for key in keys], name=name, **options)


INDEXES = {
    "drivers": [
        _index("driver", "fleet", "driver_id", unique=True),
    ],
    # trip_end_time comes last so that visible trips are counted without reading them.
    "trips": [
        _index("trip", "fleet", "trip_id", unique=True),
        _index("driver_trips", "fleet", "driver_id", "trip_start_time", "trip_id", "trip_end_time"),
        _index("tracking", "fleet", "tracking_id", "trip_start_time", "trip_id", "trip_end_time"),
        _index("day_trips", "fleet", "day", "trip_start_time", "trip_id"),
    ],
    "daily_summaries": [
        _index("day", "fleet", "day", unique=True),
        _index("stale_days", "fleet", "stale", "day", partialFilterExpression={"stale": True}),
    ],
    "served_spans": [
        _index("span", "fleet", "driver_id", "span", unique=True),
        _index("stale_drivers", "fleet", "stale", "driver_id", partialFilterExpression={"stale": True}),
    ],
    # `first` comes last so that the page of a driver is found without reading any.
    "served_drivers": [
        _index("page", "fleet", "number", "first", unique=True),
        _index("stale_pages", "fleet", "stale", "number", partialFilterExpression={"stale": True}),
    ],
    "served_trackings": [
        _index("tracking", "fleet", "tracking_id", unique=True),
        _index("stale_trackings", "fleet", "stale", "tracking_id", partialFilterExpression={"stale": True}),
    ],
    "reports": [
        _index("report", "fleet", "report_date", unique=True),
    ],
    # A key is looked up by its digest alone: it is the key that tells the fleet.
    "keys": [
        _index("digest", "digest", unique=True),
        _index("key_id", "key_id", unique=True),
        _index("fleet", "fleet", "created_at", "key_id"),
    ],
    "writers": [_index("fleet", "fleet", unique=True)],
}


def _guard(schema: Schema) -> dict[str, Any]:
    rules = validator(schema)
    rules["properties"]["_id"] = {"bsonType": "objectId"}
    return {"$jsonSchema": rules}


VALIDATORS = {
    "drivers": _guard(StoredDriver()),
    "trips": _guard(StoredTrip()),
    "daily_summaries": _guard(StoredDailySummary()),
    "served_spans": _guard(ServedSpan()),
    "served_drivers": _guard(ServedDrivers()),
    "served_trackings": _guard(ServedTracking()),
    "reports": _guard(StoredReport()),
    "keys": _guard(StoredKey()),
    "writers": _guard(Writer()),
}
