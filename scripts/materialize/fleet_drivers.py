"""The list of a fleet's drivers, `fleet_drivers`: blocks of up to BLOCK_SIZE drivers in the order of driver_id.

A block holds the drivers from its first driver_id up to the next block's. One that grows too long is divided, and the
blocks that follow it move to other positions.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

import orjson
from bson import ObjectId
from pymongo import ASCENDING, DeleteOne, ReplaceOne, UpdateOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.drivers import BLOCK_SIZE, BY_POSITION, COUNT_POSITION
from app.store.summaries import PROFILE
from scripts.materialize.render import version_of

# What a block is divided into, so that each has room for more.
NEW_BLOCK = BLOCK_SIZE // 2
# The JSON of drivers by driver_id; None for a driver who is not in the fleet any more.
Changes = Mapping[str, str | None]
Write = DeleteOne | ReplaceOne[Document] | UpdateOne


def lock(store: Store, session: ClientSession, fleet: str) -> None:
    """Make other transactions that write to the fleet wait: MongoDB lets one at a time change a document."""
    # Named by its _id, of two transactions that insert it only one can succeed.
    key = {"_id": fleet, "fleet": fleet, "position": COUNT_POSITION}
    change = {"$inc": {"writes": 1}, "$setOnInsert": {"driver_count": 0}}
    store.fleet_drivers.update_one(key, change, upsert=True, session=session)


def update_list(store: Store, session: ClientSession, fleet: str, changes: Changes) -> None:
    """Put changed drivers into the list of their fleet, and take others out."""
    wanted = {"position": 1, "driver_count": 1, "first_driver_id": 1}
    match = {"fleet": fleet, "position": {"$gt": COUNT_POSITION}}
    blocks = list(store.fleet_drivers.find(match, wanted, sort=BY_POSITION, session=session))
    blocks = blocks or [{"_id": ObjectId(), "position": 0, "driver_count": 0, "first_driver_id": ""}]
    firsts = [block["first_driver_id"] for block in blocks]
    changes_of: defaultdict[int, dict[str, str | None]] = defaultdict(dict)
    for driver_id, text in changes.items():
        changes_of[max(0, bisect_right(firsts, driver_id) - 1)][driver_id] = text
    match = {"fleet": fleet, "_id": {"$in": [blocks[index]["_id"] for index in changes_of]}}
    rows_of = {
        block["_id"]: block["drivers"] for block in store.fleet_drivers.find(match, {"drivers": 1}, session=session)
    }
    writes, position = list[Write](), 0
    for index, block in enumerate(blocks):
        if index not in changes_of:
            if block["position"] != position:
                writes.append(UpdateOne({"fleet": fleet, "_id": block["_id"]}, {"$set": {"position": position}}))
            position += block["driver_count"]
            continue
        made = list(_changed(fleet, block["_id"], rows_of.get(block["_id"], []), changes_of[index]))
        if not made:
            writes.append(DeleteOne({"fleet": fleet, "_id": block["_id"]}))
        for part in made:
            key = {"fleet": fleet, "_id": part["_id"]}
            writes.append(ReplaceOne(key, {**part, "position": position}, upsert=True))
            position += part["driver_count"]
    if writes:
        store.fleet_drivers.bulk_write(writes, session=session)
    total = {"fleet": fleet, "_id": fleet}
    store.fleet_drivers.update_one(total, {"$set": {"driver_count": position}}, session=session)


def rebuild_list(store: Store, session: ClientSession, fleet: str) -> None:
    """Write the whole list again from the drivers' profiles, if it differs from them."""
    if list_differs(store, session, fleet):
        store.fleet_drivers.delete_many({"fleet": fleet, "_id": {"$ne": fleet}}, session=session)
        update_list(store, session, fleet, dict(_profiles(store, session, fleet)))


def list_differs(store: Store, session: ClientSession, fleet: str) -> bool:
    """Return whether the list is not that of the profiles."""
    profiles, position = list(_profiles(store, session, fleet)), 0
    total = {"driver_count": 0}
    for block in store.fleet_drivers.find({"fleet": fleet}, sort=BY_POSITION, session=session):
        if block["_id"] == fleet:
            total = block
            continue
        drivers = profiles[position : position + block["driver_count"]]
        if not drivers or block != {**_block(block["_id"], fleet, drivers), "position": position}:
            return True
        position += len(drivers)
    return not total["driver_count"] == position == len(profiles)


def _profiles(store: Store, session: ClientSession, fleet: str) -> Iterator[tuple[str, str]]:
    """Yield each driver's id and JSON, by driver_id. Index: driver_periods (fleet, period, driver_id, start_date)."""
    match, wanted = {"fleet": fleet, "period": PROFILE}, {"_id": 0, "driver_id": 1, "json": 1}
    for profile in store.driver_periods.find(match, wanted, sort=[("driver_id", ASCENDING)], session=session):
        yield profile["driver_id"], profile["json"]


def _changed(fleet: str, _id: ObjectId, rows: list[str], changes: Changes) -> Iterator[Document]:
    """Yield what a block of these rows becomes with changes: none, one or several, without positions."""
    drivers = {orjson.loads(row)["driver_id"]: row for row in rows} | dict(changes)
    left = sorted((driver_id, row) for driver_id, row in drivers.items() if row is not None)
    size = BLOCK_SIZE if len(left) <= BLOCK_SIZE else NEW_BLOCK
    for start in range(0, len(left), size):
        yield _block(ObjectId() if start else _id, fleet, left[start : start + size])


def _block(_id: ObjectId, fleet: str, drivers: list[tuple[str, str]]) -> Document:
    rows = [row for _, row in drivers]
    return {
        "_id": _id,
        "fleet": fleet,
        "driver_count": len(rows),
        "first_driver_id": drivers[0][0],
        "drivers": rows,
        "version": version_of(rows),
    }
