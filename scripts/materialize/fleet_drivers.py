"""The list of a fleet's drivers, `fleet_drivers`: blocks of up to BLOCK_SIZE drivers in the order of driver_id.

A block contains the drivers from its `first_driver_id` up to that of the next block. A block that grows beyond
BLOCK_SIZE is divided, which changes the positions of all blocks after it. The document whose `_id` is the fleet is the
fleet state: the number of drivers, and what all transactions of the fleet share (schema FleetDrivers).
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping

from bson import ObjectId
from pymongo import ASCENDING, DeleteOne, ReplaceOne, UpdateOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.drivers import BLOCK_SIZE, BY_POSITION, FLEET_STATE_POSITION
from schemas.periods import PROFILE
from scripts.materialize.render import version_of

# The size of the blocks that a full block is divided into. They have room for more drivers.
NEW_BLOCK_SIZE = BLOCK_SIZE // 2
# The rendered JSON of drivers by driver_id, or None for drivers to remove.
Changes = Mapping[str, str | None]
Write = DeleteOne | ReplaceOne[Document] | UpdateOne


def lock_fleet(store: Store, session: ClientSession, fleet: str) -> None:
    """Lock the fleet until the transaction ends: MongoDB aborts any other that changes this document.

    If the document was lost, its number of drivers is counted again.
    """
    # With the fleet as `_id`, only one of two transactions can insert the document.
    key = {"_id": fleet, "fleet": fleet, "position": FLEET_STATE_POSITION}
    change = {"$inc": {"writes": 1}, "$currentDate": {"written_at": True}, "$setOnInsert": {"driver_count": 0}}
    if store.fleet_drivers.update_one(key, change, upsert=True, session=session).upserted_id is not None:
        count = sum(block["driver_count"] for block in _find_stored_blocks(store, session, fleet))
        _set_count(store, session, fleet, count)


def count_erasure(store: Store, session: ClientSession, fleet: str) -> None:
    """Count the erasure of a driver. A report that was begun before is not published."""
    store.fleet_drivers.update_one({"fleet": fleet, "_id": fleet}, {"$inc": {"erasures": 1}}, session=session)


def get_fleet_state(store: Store, session: ClientSession, fleet: str) -> Document:
    """Return the fleet state, with at least its `driver_count` and `erasures`."""
    state = store.fleet_drivers.find_one({"_id": fleet, "fleet": fleet}, session=session)
    return {"driver_count": 0, "erasures": 0, **(state or {})}


def _set_count(store: Store, session: ClientSession, fleet: str, count: int) -> None:
    store.fleet_drivers.update_one({"fleet": fleet, "_id": fleet}, {"$set": {"driver_count": count}}, session=session)


def update_list(store: Store, session: ClientSession, fleet: str, changes: Changes) -> None:
    """Add and replace drivers in the list of their fleet, and remove drivers."""
    blocks = _find_blocks(store, session, fleet)
    firsts = [block["first_driver_id"] for block in blocks]
    changes_by_block: defaultdict[ObjectId, dict[str, str | None]] = defaultdict(dict)
    for driver_id, text in changes.items():
        block = blocks[max(0, bisect_right(firsts, driver_id) - 1)]
        changes_by_block[block["_id"]][driver_id] = text
    match = {"fleet": fleet, "_id": {"$in": list(changes_by_block)}}
    projection = {"driver_ids": 1, "drivers": 1}
    drivers_by_block = {
        block["_id"]: dict(zip(block["driver_ids"], block["drivers"], strict=False))
        for block in store.fleet_drivers.find(match, projection, session=session)
    }
    writes, position = list[Write](), 0
    for block in blocks:
        block_id = block["_id"]
        if block_id in changes_by_block:
            drivers = drivers_by_block.get(block_id, {})
            new_blocks = list(_change_block(fleet, block_id, drivers, changes_by_block[block_id]))
            writes += _replace_block(fleet, block_id, new_blocks, position)
            position += sum(new_block["driver_count"] for new_block in new_blocks)
        else:
            if block["position"] != position:
                writes.append(UpdateOne({"fleet": fleet, "_id": block_id}, {"$set": {"position": position}}))
            position += block["driver_count"]
    if writes:
        store.fleet_drivers.bulk_write(writes, session=session)
    _set_count(store, session, fleet, position)


def _find_blocks(store: Store, session: ClientSession, fleet: str) -> list[Document]:
    """Return the blocks without their drivers, by position; for an empty list, a new block."""
    blocks = _find_stored_blocks(store, session, fleet)
    return blocks or [{"_id": ObjectId(), "position": 0, "driver_count": 0, "first_driver_id": ""}]


def _find_stored_blocks(store: Store, session: ClientSession, fleet: str) -> list[Document]:
    match = {"fleet": fleet, "position": {"$gt": FLEET_STATE_POSITION}}
    projection = {"position": 1, "driver_count": 1, "first_driver_id": 1}
    return list(store.fleet_drivers.find(match, projection, sort=BY_POSITION, session=session))


def _replace_block(fleet: str, block_id: ObjectId, new_blocks: list[Document], position: int) -> Iterator[Write]:
    """Yield the writes that put new blocks, the first of which has the same `_id`, in the place of a block."""
    if not new_blocks:
        yield DeleteOne({"fleet": fleet, "_id": block_id})
    for block in new_blocks:
        yield ReplaceOne({"fleet": fleet, "_id": block["_id"]}, {**block, "position": position}, upsert=True)
        position += block["driver_count"]


def rebuild_list(store: Store, session: ClientSession, fleet: str) -> None:
    """Write the whole list again if it differs from the drivers' profiles."""
    if list_differs(store, session, fleet):
        store.fleet_drivers.delete_many({"fleet": fleet, "_id": {"$ne": fleet}}, session=session)
        update_list(store, session, fleet, dict(_profiles(store, session, fleet)))


def list_differs(store: Store, session: ClientSession, fleet: str) -> bool:
    """Return whether the list differs from the drivers' profiles."""
    profiles, position = list(_profiles(store, session, fleet)), 0
    state = {"driver_count": 0}
    for block in store.fleet_drivers.find({"fleet": fleet}, sort=BY_POSITION, session=session):
        if block["_id"] == fleet:
            state = block
            continue
        drivers = profiles[position : position + block["driver_count"]]
        if not drivers or block != {**_make_block(block["_id"], fleet, drivers), "position": position}:
            return True
        position += len(drivers)
    return not state["driver_count"] == position == len(profiles)


def _profiles(store: Store, session: ClientSession, fleet: str) -> Iterator[tuple[str, str]]:
    """Yield the driver_id and JSON of each driver, by driver_id.

    Index: driver_periods (fleet, period, driver_id, start_date).
    """
    match, projection = {"fleet": fleet, "period": PROFILE}, {"_id": 0, "driver_id": 1, "json": 1}
    for profile in store.driver_periods.find(match, projection, sort=[("driver_id", ASCENDING)], session=session):
        yield profile["driver_id"], profile["json"]


def _change_block(fleet: str, block_id: ObjectId, drivers: Mapping[str, str], changes: Changes) -> Iterator[Document]:
    """Yield the blocks, without positions, that replace a block of these drivers: none, one or several.

    `drivers` has the rendered JSON of each by driver_id.
    """
    changed = {**drivers, **changes}
    remaining = sorted((driver_id, text) for driver_id, text in changed.items() if text is not None)
    size = BLOCK_SIZE if len(remaining) <= BLOCK_SIZE else NEW_BLOCK_SIZE
    for start in range(0, len(remaining), size):
        yield _make_block(ObjectId() if start else block_id, fleet, remaining[start : start + size])


def _make_block(block_id: ObjectId, fleet: str, drivers: list[tuple[str, str]]) -> Document:
    driver_ids, texts = ([*column] for column in zip(*drivers, strict=True))
    return {
        "_id": block_id,
        "fleet": fleet,
        "driver_count": len(drivers),
        "first_driver_id": driver_ids[0],
        "driver_ids": driver_ids,
        "drivers": texts,
        "version": version_of(texts),
    }
