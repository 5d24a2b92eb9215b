"""The indexes and the validators of the collections. An index has the name of what it finds."""

from operator import attrgetter
from typing import Any

from marshmallow import Schema
from pymongo import ASCENDING, IndexModel

from app.store.rankings import ORDERS, Order
from schemas.introspection import FieldCheck, always_present, make_json_schema
from schemas.stored import (
    DriverPeriod,
    FleetDrivers,
    RankingCounts,
    StoredDriver,
    StoredKey,
    StoredReport,
    StoredTrip,
    StoredTripChange,
    StoredTripDetail,
    StreamPosition,
)

# The change feed reports a deletion for 30 days.
TOMBSTONE_SECONDS = 30 * 86_400


def _index(name: str, *keys: str, **options: Any) -> IndexModel:
    return IndexModel([(key, ASCENDING) for key in keys], name=name, **options)


def _ranking_index(order: Order) -> IndexModel:
    keys = [(name, ASCENDING) for name in ("fleet", "period", "start_date")]
    # Days and profiles have no score, and cost the index nothing.
    ranked = {"fm_score": {"$exists": True}}
    return IndexModel([*keys, *order.sort], name=order.index, partialFilterExpression=ranked)


INDEXES = {
    "drivers": [
        _index("driver", "fleet", "driver_id", unique=True),
    ],
    "trips": [
        _index("trip", "fleet", "trip_id", unique=True),
        # What finds trips by driver or by start reads this index alone: the documents have the trails.
        _index("driver_trips", "fleet", "driver_id", "trip_start_time", "trip_id"),
    ],
    "fleet_drivers": [
        _index("position", "fleet", "position"),
    ],
    "driver_periods": [
        _index("period", "fleet", "period", "driver_id", "start_date", unique=True),
        *map(_ranking_index, ORDERS.values()),
        # A change stream reports the deletion of a driver with the _id of the source only.
        _index("source", "source_id", partialFilterExpression={"source_id": {"$exists": True}}),
    ],
    "ranking_counts": [
        _index("ranking", "fleet", "period", "start_date", unique=True),
    ],
    # trip_end_time comes last, so that MongoDB counts visible trips from the index alone.
    "trip_details": [
        _index("trip", "fleet", "trip_id", unique=True),
        _index("tracking", "fleet", "tracking_id", "trip_start_time", "trip_id", "trip_end_time"),
        _index("day_trips", "fleet", "driver_id", "date", "trip_start_time", "trip_id"),
    ],
    # The fleet's own shard has all of them, so the keys of both orders begin with the fleet alone.
    "trip_changes": [
        _index("trip", "fleet", "trip_id", unique=True),
        _index("change", "fleet", "change", "trip_id"),
        _index("end", "fleet", "trip_end_time", "trip_id"),
        _index(
            "tombstone",
            "deleted_at",
            expireAfterSeconds=TOMBSTONE_SECONDS,
            partialFilterExpression={"deleted_at": {"$exists": True}},
        ),
    ],
    "reports": [
        _index("report", "fleet", "report_date", unique=True),
    ],
    # The digest comes without the fleet, because the service learns the fleet from the key.
    "keys": [
        _index("digest", "digest", unique=True),
        _index("key_id", "key_id", unique=True),
        _index("fleet", "fleet", "created_at", "key_id"),
    ],
    # It has one document, which is found by its _id.
    "stream_positions": [],
}


def make_validator(schema: Schema, is_required: FieldCheck = always_present) -> dict[str, Any]:
    """Return the validator of a collection with documents of a schema."""
    rules = make_json_schema(schema, is_required)
    # An _id may have any type: the program that writes a source document chooses it.
    rules["properties"]["_id"] = {}
    expressions = getattr(schema, "validator_expressions", [])
    return {"$jsonSchema": rules, **({"$expr": {"$and": expressions}} if expressions else {})}


VALIDATORS = {
    "drivers": make_validator(StoredDriver()),
    "trips": make_validator(StoredTrip()),
    "fleet_drivers": make_validator(FleetDrivers()),
    "driver_periods": make_validator(DriverPeriod()),
    "trip_details": make_validator(StoredTripDetail()),
    "ranking_counts": make_validator(RankingCounts()),
    "trip_changes": make_validator(StoredTripChange()),
    "reports": make_validator(StoredReport()),
    "keys": make_validator(StoredKey()),
    "stream_positions": make_validator(StreamPosition()),
}

# A source that was stored before its schema got a nullable field lacks it. It may not be written so, but it is valid.
VALID_DOCUMENTS = {
    **VALIDATORS,
    "drivers": make_validator(StoredDriver(), is_required=attrgetter("required")),
    "trips": make_validator(StoredTrip(), is_required=attrgetter("required")),
}
