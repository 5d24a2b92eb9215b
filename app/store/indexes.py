"""The indexes and the validators of the collections. An index has the name of what it finds."""

from typing import Any

from marshmallow import Schema
from pymongo import ASCENDING, DESCENDING, IndexModel

from schemas.introspection import make_json_schema
from schemas.stored import (
    DriverPeriod,
    FleetDrivers,
    StoredDriver,
    StoredFleet,
    StoredKey,
    StoredReport,
    StoredResumeToken,
    StoredTrip,
    StoredTripChange,
    StoredTripDetail,
)

# The change feed reports a deletion for 30 days.
TOMBSTONE_SECONDS = 30 * 86_400


def _index(name: str, *fields: str, **options: Any) -> IndexModel:
    return IndexModel([(field, ASCENDING) for field in fields], name=name, **options)


def _ranking_index(name: str, direction: int) -> IndexModel:
    fields = [(field, ASCENDING) for field in ("fleet", "period", "start_date")]
    order = [("fm_score", direction), ("distance_miles", DESCENDING), ("driver_id", ASCENDING)]
    # Days and profiles have no score, and cost the index nothing.
    ranked = {"fm_score": {"$exists": True}}
    return IndexModel([*fields, *order], name=name, partialFilterExpression=ranked)


INDEXES = {
    # A source is found by its _id.
    "drivers": [],
    "trips": [
        # What finds trips by driver or by start reads this index alone: the documents have the trails.
        _index("driver_trips", "fleet", "driver_id", "trip_start_time", "trip_id"),
    ],
    "fleets": [],
    "fleet_drivers": [
        _index("offset", "fleet", "offset", unique=True),
    ],
    "driver_periods": [
        _index("period", "fleet", "period", "driver_id", "start_date", unique=True),
        # For each order of a ranking an index, because the longer distance comes first in both.
        _ranking_index("ranking_worst", ASCENDING),
        _ranking_index("ranking_best", DESCENDING),
    ],
    # trip_end_time and driver_id come last, so that MongoDB counts visible trips, and those of one driver, from the
    # index alone.
    "trip_details": [
        _index("tracking_id", "fleet", "tracking_id", "trip_start_time", "trip_id", "trip_end_time", "driver_id"),
        _index("day_trips", "fleet", "driver_id", "date", "trip_start_time", "trip_id"),
    ],
    # The fleet's own shard has all of them, so the indexes of both orders begin with the fleet alone.
    "trip_changes": [
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
    "resume_tokens": [],
}


def make_validator(schema: Schema) -> dict[str, Any]:
    """Return the validator of a collection with documents of a schema."""
    rules = make_json_schema(schema)
    # The expressions of a source's schema have the rule for its _id.
    rules["properties"]["_id"] = {}
    expressions = getattr(schema, "validator_expressions", [])
    return {"$jsonSchema": rules, **({"$expr": {"$and": expressions}} if expressions else {})}


VALIDATORS = {
    "drivers": make_validator(StoredDriver()),
    "trips": make_validator(StoredTrip()),
    "fleets": make_validator(StoredFleet()),
    "fleet_drivers": make_validator(FleetDrivers()),
    "driver_periods": make_validator(DriverPeriod()),
    "trip_details": make_validator(StoredTripDetail()),
    "trip_changes": make_validator(StoredTripChange()),
    "reports": make_validator(StoredReport()),
    "keys": make_validator(StoredKey()),
    "resume_tokens": make_validator(StoredResumeToken()),
}
