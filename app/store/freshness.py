"""How far what is served lags behind what was imported, over all fleets; for the operator's eyes alone."""

from typing import NamedTuple

from bson import ObjectId
from pymongo import DESCENDING
from pymongo.database import Database

from app.store import Document

# Collections of derived documents, each with the index of those marked stale.
STALE_INDEXES = {
    "daily_summaries": "stale_days",
    "served_spans": "stale_drivers",
    "served_drivers": "stale_pages",
    "served_trackings": "stale_trackings",
}
# More need not be told apart.
MAX_COUNTED = 100_000


class Freshness(NamedTuple):
    """How many documents are marked stale, by collection, and when, in epoch seconds or None where there is none:

    a trip was last added, and the writer that has been silent for longest last gave a sign of life.
    """

    stale: dict[str, int]
    newest_trip_at: float | None
    silent_writer_since: float | None


def get_freshness(db: Database[Document]) -> Freshness:
    """Return how fresh the store is. Indexes: (fleet, stale, ...), which hold what is stale alone, and (_id)."""
    stale = {
        name: db[name].count_documents({"stale": True}, limit=MAX_COUNTED, hint=index)
        for name, index in STALE_INDEXES.items()
    }
    # Trips keep the id that they were first written with.
    newest = next((trip["_id"] for trip in db.trips.find({}, {"_id": 1}).sort("_id", DESCENDING).limit(1)), None)
    beats = [ObjectId(writer["beat"]) for writer in db.writers.find({}, {"_id": 0, "beat": 1})]
    return Freshness(stale, _time(newest), _time(min(beats, default=None)))


def _time(made: ObjectId | None) -> float | None:
    return made.generation_time.timestamp() if made else None
