"""The change feed, `trip_changes`: an entry for each trip, and for 30 days a tombstone for each deleted trip."""

import secrets
from collections.abc import Mapping

from pymongo import DESCENDING, InsertOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.dates import now_ms
from app.store.drivers import FLEET_STATE_POSITION

# The fields of an entry that follow from its trip.
CONTENT = ("driver_id", "trip_end_time", "version", "json")
# An upstream system may correct the end of a trip any number of times.
MAX_REPLACED = 8
FEED_ID_BYTES = 6


def make_entry(detail: Document) -> Document:
    """Return what the entry of a trip has of its `trip_details` document."""
    return {**{name: detail[name] for name in CONTENT if name != "json"}, "json": detail["summary"]}


def update_feed(store: Store, session: ClientSession, fleet: str, details: Mapping[str, Document | None]) -> int:
    """Write the entries that differ from their `trip_details` documents, by trip_id; None is for a deleted trip.

    Call it in `run_transaction`, which gives the change its number. Returns how many entries it wrote.
    """
    match = {"fleet": fleet, "trip_id": {"$in": list(details)}}
    stored = {entry["trip_id"]: entry for entry in store.trip_changes.find(match, {"_id": 0}, session=session)}
    changed = {trip_id: detail for trip_id, detail in details.items() if _differs(stored.get(trip_id), detail)}
    if not changed:
        return 0
    state = _begin_change(store, session, fleet)
    operations = list[InsertOne[Document] | ReplaceOne[Document]]()
    for trip_id, detail in changed.items():
        before = stored.get(trip_id)
        content = make_entry(detail) if detail else _make_tombstone(before or {}, state)
        replaced = _find_replaced(before, state["writes"]) if before else []
        key = {"fleet": fleet, "trip_id": trip_id}
        entry = {**key, "change": state["writes"], "replaced": replaced, **content}
        operations.append(ReplaceOne(key, entry) if before else InsertOne(entry))
    store.trip_changes.bulk_write(operations, ordered=False, session=session)
    return len(operations)


def delete_from_feed(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> None:
    """Write the tombstones of those trips that are no longer in `trips`."""
    update_feed(store, session, fleet, dict.fromkeys(find_without_source(store, fleet, trip_ids, session)))


def forget_in_feed(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> None:
    """Delete the entries of trips. Tombstones stay: clients have to learn of deletions that came before."""
    match = {"fleet": fleet, "trip_id": {"$in": trip_ids}, "deleted_at": {"$exists": False}}
    store.trip_changes.delete_many(match, session=session)


def find_without_source(
    store: Store, fleet: str, trip_ids: list[str], session: ClientSession | None = None
) -> list[str]:
    """Return those of the trips that are not in `trips`."""
    match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
    stored = {trip["trip_id"] for trip in store.trips.find(match, {"_id": 0, "trip_id": 1}, session=session)}
    return [trip_id for trip_id in trip_ids if trip_id not in stored]


def _differs(entry: Document | None, detail: Document | None) -> bool:
    if detail is None:
        return entry is not None and "deleted_at" not in entry
    return entry is None or {name: entry.get(name) for name in CONTENT} != make_entry(detail)


def _make_tombstone(before: Document, state: Document) -> Document:
    # MongoDB's own time, because MongoDB deletes it 30 days later by that.
    return {"driver_id": before["driver_id"], "deleted_at": state["written_at"]}


def _find_replaced(before: Document, change: int) -> list[Document]:
    """Return the earlier versions of a trip that has the entry `before`, which this change replaces.

    A version that ended before another one, and was replaced after it, was visible whenever the other one was.
    """
    replaced: list[Document] = before["replaced"]
    if "deleted_at" in before:
        return replaced
    end = before["trip_end_time"]
    replaced = [version for version in replaced if version["trip_end_time"] < end]
    replaced.append({"trip_end_time": end, "change": change, "replaced_at": now_ms()})
    if len(replaced) > MAX_REPLACED:
        first, second, *others = replaced
        # A version that stands for both. The feed may report one deletion too many for it, but none too few.
        replaced = [{**second, "trip_end_time": first["trip_end_time"]}, *others]
    return replaced


def _begin_change(store: Store, session: ClientSession, fleet: str) -> Document:
    """Return the fleet state, whose `writes` is the number of this change. Begin the feed if it is new.

    If the fleet state was lost, the new feed goes on after the numbers of the entries that are left.
    """
    match = {"fleet": fleet, "position": FLEET_STATE_POSITION}
    state: Document = store.fleet_drivers.find_one(match, session=session) or {}
    if "feed_id" not in state:
        newest = store.trip_changes.find_one(
            {"fleet": fleet}, {"change": 1}, sort=[("change", DESCENDING), ("trip_id", DESCENDING)], session=session
        )
        begun = {
            "feed_id": secrets.token_urlsafe(FEED_ID_BYTES),
            "writes": max(state["writes"], newest["change"] + 1 if newest else 0),
        }
        store.fleet_drivers.update_one(match, {"$set": begun}, session=session)
        state |= begun
    return state
