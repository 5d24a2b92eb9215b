"""The `fleets` documents: how many drivers a fleet has, and bookmarks for paging them.

Bookmarks divide the drivers, in the order of their ids, into blocks: `counts[i]` drivers from `driver_ids[i]` on. New
drivers are counted in the block that they fall into, and a block that grows too long is divided.
"""

import secrets
from bisect import bisect_right
from collections.abc import Iterable

from pymongo import ASCENDING
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.pages import first

# A page is found by skipping a block's drivers at most; more bookmarks would take longer to read.
MAX_BLOCK = 500
NEW_BLOCK = MAX_BLOCK // 2
VERSION_BYTES = 8
EMPTY: Document = {"driver_count": 0, "bookmarks": {"driver_ids": [], "counts": []}, "version": ""}


def lock(store: Store, session: ClientSession, fleet: str) -> None:
    """Make other transactions that write to the fleet wait: MongoDB lets one at a time change a document."""
    store.fleets.update_one(
        {"fleet": fleet}, {"$inc": {"writes": 1}, "$setOnInsert": EMPTY}, upsert=True, session=session
    )


def update_fleet(
    store: Store, session: ClientSession, fleet: str, *, added: Iterable[str] = (), removed: Iterable[str] = ()
) -> None:
    """Count drivers whose profiles were added or removed, and give the fleet's drivers a new version."""
    bookmarks = _bookmarks(store, session, fleet)
    ids, counts = bookmarks["driver_ids"], bookmarks["counts"]
    for driver_id in removed:
        counts[bisect_right(ids, driver_id) - 1] -= 1
    for driver_id in sorted(added):
        if not ids or driver_id < ids[0]:
            ids[:1], counts[:1] = [driver_id], counts[:1] or [0]
        counts[bisect_right(ids, driver_id) - 1] += 1
    blocks = [
        block
        for driver_id, count in zip(ids, counts, strict=True)
        for block in _divided(store, session, fleet, driver_id, count)
    ]
    values = {
        "driver_count": sum(count for _, count in blocks),
        "bookmarks": {"driver_ids": [driver_id for driver_id, _ in blocks], "counts": [count for _, count in blocks]},
        "version": secrets.token_hex(VERSION_BYTES),
    }
    store.fleets.update_one({"fleet": fleet}, {"$set": values}, session=session)


def counts_differ(store: Store, session: ClientSession, fleet: str) -> bool:
    """Return whether the fleet's counts are not those of its profiles."""
    known = first(store.fleets.find({"fleet": fleet}, session=session)) or EMPTY
    ids, counts = known["bookmarks"]["driver_ids"], [0 for _ in known["bookmarks"]["counts"]]
    for driver_id in _driver_ids(store, session, fleet, ""):
        if not ids or driver_id < ids[0]:
            return True
        counts[bisect_right(ids, driver_id) - 1] += 1
    return (counts, sum(counts)) != (known["bookmarks"]["counts"], known["driver_count"])


def count_again(store: Store, session: ClientSession, fleet: str) -> None:
    """Count the fleet's drivers from scratch if their counts differ."""
    if counts_differ(store, session, fleet):
        store.fleets.update_one({"fleet": fleet}, {"$set": EMPTY}, session=session)
        update_fleet(store, session, fleet, added=_driver_ids(store, session, fleet, ""))


def _divided(store: Store, session: ClientSession, fleet: str, driver_id: str, count: int) -> list[tuple[str, int]]:
    """Return the blocks that a block of so many drivers is divided into; none of an empty one."""
    if count <= MAX_BLOCK:
        return [(driver_id, count)] if count else []
    ids = _driver_ids(store, session, fleet, driver_id, limit=count)
    return [(ids[start], len(ids[start : start + NEW_BLOCK])) for start in range(0, count, NEW_BLOCK)]


def _bookmarks(store: Store, session: ClientSession, fleet: str) -> Document:
    known = first(store.fleets.find({"fleet": fleet}, session=session)) or EMPTY
    bookmarks: Document = known["bookmarks"]
    return {"driver_ids": [*bookmarks["driver_ids"]], "counts": [*bookmarks["counts"]]}


def _driver_ids(store: Store, session: ClientSession, fleet: str, start: str, limit: int = 0) -> list[str]:
    """Return the ids of drivers from one on, in order. Index: driver_profiles (fleet, driver_id)."""
    match, wanted = {"fleet": fleet, "driver_id": {"$gte": start}}, {"_id": 0, "driver_id": 1}
    found = store.driver_profiles.find(match, wanted, sort=[("driver_id", ASCENDING)], limit=limit, session=session)
    return [profile["driver_id"] for profile in found]
