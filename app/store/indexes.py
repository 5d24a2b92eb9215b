"""The collections: their indexes, each named after what it serves, and the validators that guard them."""

from typing import Any

from marshmallow import Schema
from pymongo import ASCENDING, IndexModel

from schemas.introspection import make_json_schema
from schemas.stored import (
    DriverPeriod,
    FleetDrivers,
    StoredDriver,
    StoredKey,
    StoredReport,
    StoredTrip,
    StoredTripDetail,
)


def _index(name: str, *keys: str, **options: Any) -> IndexModel:
    return IndexModel([(key, ASCENDING) for key in keys], name=name, **options)


INDEXES = {
    "drivers": [
        _index("driver", "fleet", "driver_id", unique=True),
    ],
    "trips": [
        _index("trip", "fleet", "trip_id", unique=True),
    ],
    "fleet_drivers": [
        _index("position", "fleet", "position"),
    ],
    "driver_periods": [
        _index("period", "fleet", "period", "driver_id", "start_date", unique=True),
    ],
    # trip_end_time comes last so that visible trips are counted without reading them.
    "trip_details": [
        _index("trip", "fleet", "trip_id", unique=True),
        _index("tracking", "fleet", "tracking_id", "trip_start_time", "trip_id", "trip_end_time"),
        _index("day_trips", "fleet", "driver_id", "date", "trip_start_time", "trip_id"),
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
}


def _guard(schema: Schema) -> dict[str, Any]:
    rules = make_json_schema(schema)
    # Of any type: who writes a source document chooses.
    rules["properties"]["_id"] = {}
    return {"$jsonSchema": rules}


VALIDATORS = {
    "drivers": _guard(StoredDriver()),
    "trips": _guard(StoredTrip()),
    "fleet_drivers": _guard(FleetDrivers()),
    "driver_periods": _guard(DriverPeriod()),
    "trip_details": _guard(StoredTripDetail()),
    "reports": _guard(StoredReport()),
    "keys": _guard(StoredKey()),
}
