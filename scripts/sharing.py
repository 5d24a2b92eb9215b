"""How many trips share a tracking id, as it is kept where they are many (app.store.sharing). Derived from `trips`."""

import itertools
from collections.abc import Collection, Iterator
from typing import Any

from pymongo import DeleteOne, InsertOne, ReplaceOne

from app.store import Document
from app.store.buckets import Counts
from app.store.sharing import MANY, Hours, count_by_hour
from scripts.served import Day
from scripts.store import Store

# Tracking ids that are counted at once.
CHUNK = 1_000


def mark_trackings(db: Store, fleet: str, tracking_ids: Collection[str | None]) -> None:
    """Mark what is kept of these, whose trips are about to be written; the days of those have to be marked already."""
    match = {"fleet": fleet, "tracking_id": {"$in": list(tracking_ids)}}
    db.served_trackings.update_many(match, {"$set": {"stale": True}})


def derive_trackings(db: Store, fleet: str, days: Collection[Day]) -> None:
    """Bring what is kept in line with the trips of the days, of which alone some were written."""
    dates = {day.date for day in days}
    operations: list[Any] = []
    for tracking_id, counts in _recounted(db, fleet, dates):
        document = _document(fleet, tracking_id, counts)
        key = {"fleet": fleet, "tracking_id": tracking_id}
        operations.append(ReplaceOne(key, document) if counts.count > MANY else DeleteOne(key))
    operations += map(InsertOne, make_trackings(db, fleet, _not_kept(db, fleet, days)))
    if operations:
        db.served_trackings.bulk_write(operations, ordered=False)


def make_trackings(db: Store, fleet: str, tracking_ids: Collection[str] | None = None) -> Iterator[Document]:
    """Yield what is to be kept of these tracking ids, or of all. Index: (fleet, tracking_id, ...), reading no trip."""
    match = {"fleet": fleet, "tracking_id": {"$gt": ""} if tracking_ids is None else {"$in": list(tracking_ids)}}
    many: list[dict[str, Any]] = [
        {"$group": {"_id": "$tracking_id", "count": {"$sum": 1}}},
        {"$match": {"count": {"$gt": MANY}}},
    ]
    found = (doc["_id"] for doc in db.trips.aggregate([{"$match": match}, *many]))
    while chunk := list(itertools.islice(found, CHUNK)):
        for tracking_id, dates in count_by_hour(db, fleet, chunk).items():
            counts = Counts()
            for date, hours in dates.items():
                counts.replace(date, _together(hours))
            yield _document(fleet, tracking_id, counts)


def _recounted(db: Store, fleet: str, dates: Collection[str]) -> Iterator[tuple[str, Counts]]:
    """Yield what is marked, of these dates counted anew. Index: (fleet, stale, tracking_id)."""
    wanted = {"_id": 0, "tracking_id": 1, "dates": 1}
    stale = {
        doc["tracking_id"]: doc["dates"] for doc in db.served_trackings.find({"fleet": fleet, "stale": True}, wanted)
    }
    found = count_by_hour(db, fleet, stale, dates) if stale else {}
    for tracking_id, packed in stale.items():
        counts = Counts(packed)
        for date in dates:
            counts.replace(date, _together(found[tracking_id][date]))
        yield tracking_id, counts


def _together(hours: Hours) -> Hours:
    """Return the counts of a date's hours, by the first of as many in a row as have no more than MANY trips."""
    parts: Hours = {}
    first = None
    for hour, (count, end) in sorted(hours.items()):
        if first is not None and parts[first][0] + count <= MANY:
            parts[first] = parts[first][0] + count, max(parts[first][1], end)
        else:
            first, parts[hour] = hour, (count, end)
    return parts


def _not_kept(db: Store, fleet: str, days: Collection[Day]) -> set[str]:
    """Return the tracking ids of the days' trips of which nothing is kept. Indexes: (fleet, day, ...)."""
    match = {"fleet": fleet, "day": {"$in": [day._asdict() for day in days]}}
    ids = {doc["_id"] for doc in db.trips.aggregate([{"$match": match}, {"$group": {"_id": "$tracking_id"}}])} - {None}
    kept = {"fleet": fleet, "tracking_id": {"$in": list(ids)}}
    return ids - {doc["tracking_id"] for doc in db.served_trackings.find(kept, {"_id": 0, "tracking_id": 1})}


def _document(fleet: str, tracking_id: str, counts: Counts) -> Document:
    return {"fleet": fleet, "tracking_id": tracking_id, "dates": counts.stored()}
