"""How many trips share a tracking id, where they are many: counting them takes the longer the more there are.

`served_trackings` has a document for each tracking id of more than MANY trips: how many of them there are, by date. It
is marked stale while such trips are being written; in the meantime, and for all other ids, the trips are counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from pymongo.database import Database

from app.store import Document, pipelines
from app.store.buckets import MS_PER_DAY, Counts, midnight, utc_date
from app.store.served import from_served

MANY = 100


@from_served
def find_counts(db: Database[Document], fleet: str, tracking_id: str, ended_by: int) -> Counts | None:
    """Return how many trips with the tracking id had ended by `ended_by` (epoch ms), or None where that is not known.

    Indexes: (fleet, tracking_id), and where some had not ended (fleet, tracking_id, trip_start_time, trip_id,
    trip_end_time), without reading a trip.
    """
    found = db.served_trackings.find_one(
        {"fleet": fleet, "tracking_id": tracking_id}, {"_id": 0, "stale": 1, "dates": 1}
    )
    if found is None or "stale" in found:
        return None
    counts = Counts(found["dates"])
    if unsettled := counts.unsettled(ended_by):
        visible = count_by_date(db, fleet, [tracking_id], unsettled, ended_by)[tracking_id]
        counts.count_only({date: visible[date][0] if date in visible else 0 for date in unsettled})
    return counts


def count_by_date(
    db: Database[Document],
    fleet: str,
    tracking_ids: Iterable[str],
    dates: Collection[str] = (),
    ended_by: int | None = None,
) -> defaultdict[str, dict[str, tuple[int, int]]]:
    """Return, by tracking id and date, how many trips there are, and the latest of their ends (epoch ms).

    Of dates at least, where there are any, and of trips that had ended by `ended_by`. Index: (fleet, tracking_id,
    trip_start_time, trip_id, trip_end_time), without reading a trip.
    """
    match: Document = {"fleet": fleet, "tracking_id": {"$in": list(tracking_ids)}}
    if dates:
        match["trip_start_time"] = {"$gte": midnight(min(dates)), "$lt": midnight(max(dates)) + MS_PER_DAY}
    if ended_by is not None:
        match["trip_end_time"] = {"$lte": ended_by}
    found: defaultdict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for doc in db.trips.aggregate(pipelines.trips_by_date(match)):
        found[doc["_id"]["tracking_id"]][utc_date(int(doc["_id"]["day"]) * MS_PER_DAY)] = doc["count"], doc["end"]
    return found
