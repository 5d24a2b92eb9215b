"""The change feed, `trip_changes`: an entry for each trip, and for 30 days a tombstone for each deleted trip."""

from collections.abc import Mapping

from pymongo.client_session import ClientSession

from app.store import Document, Store
from schemas.periods import now_ms
from schemas.stored import make_id

# The fields of an entry that follow from its trip.
CONTENT = ("driver_id", "tracking_id", "trip_end_time", "version", "json")
# An upstream system may correct the end of a trip any number of times.
MAX_REPLACED = 8


def make_entries(
    store: Store, session: ClientSession, fleet: str, details: Mapping[str, Document | None], *, tombstones: bool
) -> dict[str, Document | None]:
    """Return the entries that differ from the details of their trips, by `_id`; None is for one to delete.

    Details are by trip_id, and None for a trip that does not exist. `tombstones` says whether the feed reports its
    deletion; otherwise it forgets the trip. But a tombstone stays: clients have to learn of a deletion that came
    before. `run_transaction` has given the change its number.
    """
    match = {"_id": {"$in": [make_id(fleet, trip_id) for trip_id in details]}, "fleet": fleet}
    stored = {entry["trip_id"]: entry for entry in store.trip_changes.find(match, session=session)}
    changed = {trip_id: detail for trip_id, detail in details.items() if _differs(stored.get(trip_id), detail)}
    if not changed:
        return {}
    state: Document = store.fleets.find_one({"_id": fleet}, session=session) or {"writes": 0, "written_at": None}
    return {
        make_id(fleet, trip_id): None
        if detail is None and not tombstones
        else _make_entry(fleet, trip_id, detail, stored.get(trip_id), state)
        for trip_id, detail in changed.items()
    }


def _differs(entry: Document | None, detail: Document | None) -> bool:
    if detail is None:
        return entry is not None and "deleted_at" not in entry
    return entry is None or {name: entry.get(name) for name in CONTENT} != _get_content(detail)


def _get_content(detail: Document) -> Document:
    return {**{name: detail[name] for name in CONTENT if name != "json"}, "json": detail["summary"]}


def _make_entry(
    fleet: str, trip_id: str, detail: Document | None, before: Document | None, state: Document
) -> Document:
    """Return the entry of a trip, or the tombstone of a deleted one, which had an entry `before`."""
    # A tombstone has MongoDB's own time, because MongoDB deletes it 30 days later by that.
    deleted = {"driver_id": before["driver_id"], "deleted_at": state["written_at"]} if before else {}
    return {
        "_id": make_id(fleet, trip_id),
        "fleet": fleet,
        "trip_id": trip_id,
        "change": state["writes"],
        "replaced": _list_replaced(before, state["writes"]) if before else [],
        **(_get_content(detail) if detail else deleted),
    }


def _list_replaced(before: Document, change: int) -> list[Document]:
    """Return the earlier versions of a trip that has the entry `before`, which this change replaces.

    `before` stands for each older version with the same or a later end: it was visible whenever they were, and is
    replaced after them. So they leave the list.
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
