"""The collections with their indexes. An index has the name of what it finds."""

from collections.abc import Mapping
from typing import Any

import click
from pymongo import ASCENDING, IndexModel
from pymongo.errors import OperationFailure

from app.store import COLLECTIONS, READ_MODELS, DocumentCollection, Store
from app.store.groups import COUNT_INDEX
from app.store.rankings import GROUP_INDEXES, ORDERS
from app.store.rankings import INDEXES as RANKING_INDEXES
from schemas.params import BEST, WORST
from scripts.mongodb.validators import VALIDATORS

# The change feed reports a deletion for 30 days.
TOMBSTONE_SECONDS = 30 * 86_400
# MongoDB's error code for a collection that exists.
NAMESPACE_EXISTS = 48
# Its error codes for an index whose name or fields another one has.
INDEX_CONFLICTS = {85, 86}


def _index(name: str, *fields: str, **options: Any) -> IndexModel:
    return IndexModel([(field, ASCENDING) for field in fields], name=name, **options)


def _ranking_index(order: str) -> IndexModel:
    fields = [(field, ASCENDING) for field in ("fleet", "period", "start_date")]
    # Days and profiles have no score, and cost the index nothing.
    ranked = {"fm_score": {"$exists": True}}
    return IndexModel([*fields, *ORDERS[order]], name=RANKING_INDEXES[order], partialFilterExpression=ranked)


def _group_index(order: str, *last: str, **has: Any) -> IndexModel:
    first = [(field, ASCENDING) for field in ("fleet", "groups", "period", "start_date")]
    keys = [*first, *ORDERS[order], *((field, ASCENDING) for field in last)]
    in_groups = {"groups": {"$exists": True}, **has}
    return IndexModel(keys, name=GROUP_INDEXES[order], partialFilterExpression=in_groups)


# Stored in the order of `_id`: a list reads a range of it, and filters what it reads. An index with all filters would
# double the space, and the time to write.
CLUSTERED = {"trip_events"}
# What filters lists of trips.
FILTERS = ("trip_end_time", "distance_miles", "is_implausible", "insurance_period")
# The other collections have the index of `_id` alone.
INDEXES = {
    "trips": [
        # What finds trips by driver or by start reads this index alone: the documents have the trails.
        _index("driver_trips", "fleet", "driver_id", "trip_start_time", "trip_id")
    ],
    "fleet_drivers": [_index("offset", "fleet", "offset", unique=True)],
    "driver_periods": [
        _index("period", "fleet", "period", "driver_id", "start_date", unique=True),
        # For each order of a ranking an index, because the longer distance comes first in both.
        *map(_ranking_index, ORDERS),
        # The first also has the profiles of drivers in groups, to list and search them on the index alone. An index of
        # their own would take a hundredth of the processor time of an import.
        _group_index(WORST, "search_text"),
        _group_index(BEST, fm_score={"$exists": True}),
    ],
    "fleet_periods": [
        _index("period", "fleet", "segment", "period", "start_date", unique=True),
        # The numbers of drivers of groups.
        _index(
            COUNT_INDEX,
            *("fleet", "segment", "driver_count"),
            partialFilterExpression={"driver_count": {"$exists": True}},
        ),
    ],
    # What filters comes last, so that MongoDB counts visible trips and pages through lists on the indexes alone.
    "trip_details": [
        _index("tracking_id", "fleet", "tracking_id", "trip_start_time", "trip_id", "trip_end_time", "driver_id"),
        _index("start", "fleet", "start_key", "driver_id", *FILTERS),
        _index("worst", "fleet", "date", "worst_key", "trip_start_time", "driver_id", *FILTERS),
        # The lists of one driver. The trips of a driver in a month are few enough to be sorted by `worst_key`.
        _index("driver_start", "fleet", "driver_id", "start_key", "worst_key", *FILTERS),
        _index("day_trips", "fleet", "driver_id", "date", "trip_start_time", "trip_id"),
        _index("implausible", "fleet", "trip_id", partialFilterExpression={"implausible": {"$exists": True}}),
    ],
    "trip_events": [
        _index("trip", "fleet", "trip_id"),
        # The list of one driver.
        _index("driver", "fleet", "driver_id", "_id"),
        # The events that start after the end of their trip.
        _index("late", "fleet", "_id", partialFilterExpression={"is_late": {"$exists": True}}),
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
    "reports": [_index("report", "fleet", "report_date", "period", unique=True)],
    # The digest comes without the fleet, because the service learns the fleet from the key.
    "keys": [
        _index("digest", "digest", unique=True),
        _index("key_id", "key_id", unique=True),
        _index("fleet", "fleet", "created_at", "key_id"),
    ],
}


def prepare_collections(store: Store) -> None:
    """Create missing collections and indexes, and update the validators.

    Raises click.ClickException if there is another index in place of one of them.
    """
    update_validators(store)
    for name, indexes in INDEXES.items():
        _create_indexes(store.db[name], indexes)


def update_validators(store: Store) -> None:
    """Create missing collections, and update the validators.

    Read models have none: their values follow from sources, which were checked. It would take a tenth of the processor
    time of an import.
    """
    validators = {entry["name"]: entry["options"].get("validator", {}) for entry in store.db.list_collections()}
    for name in COLLECTIONS:
        validator = VALIDATORS.get(name, {})
        if name not in validators:
            _create(store, name, validator)
        # A change of the validator locks the collection, so skip it if there is no difference.
        elif validators[name] != validator:
            store.db.command("collMod", name, validator=validator)


def _create_indexes(collection: DocumentCollection, indexes: list[IndexModel]) -> None:
    try:
        collection.create_indexes(indexes)
    except OperationFailure as error:
        if error.code not in INDEX_CONFLICTS:
            raise
        raise click.ClickException(
            f"An index of the collection {collection.name} is not that of this version. Stop the service and whatever "
            "writes, and run 'driver-analytics rollups rebuild': see 'Upgrades' in docs/deployment.md."
        ) from error


def drop_other_indexes(store: Store) -> None:
    """Drop the indexes that another version has made.

    These are all indexes of read models that are not in INDEXES. Of the other collections, which may have indexes of
    yours, they are those in the place of one in INDEXES, and those that may refuse a document, because they are unique.
    """
    for name in {entry["name"] for entry in store.db.list_collections()}.intersection(COLLECTIONS):
        indexes = {index.document["name"]: index.document for index in INDEXES.get(name, ())}
        for stored in list(store.db[name].list_indexes()):
            expected, is_ours = indexes.get(stored["name"]), name in READ_MODELS
            is_by_id = [*stored["key"]] == ["_id"]
            if is_by_id or (expected and _describe(stored) == _describe(expected)):
                continue
            if is_ours or expected or stored.get("unique"):
                store.db[name].drop_index(stored["name"])


def _describe(index: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what makes an index what it is: its fields in their order, and its options."""
    options = {name: value for name, value in index.items() if name not in ("v", "ns", "key", "name")}
    return [*index["key"].items()], options


def _create(store: Store, name: str, validator: Mapping[str, Any]) -> None:
    """Create a collection, unless another command does that at the same time."""
    options: Any = {"clusteredIndex": {"key": {"_id": 1}, "unique": True}} if name in CLUSTERED else {}
    try:
        store.db.create_collection(name, validator=validator, check_exists=False, **options)
    except OperationFailure as error:
        if error.code != NAMESPACE_EXISTS:
            raise
