"""How many trips share a tracking id, where they are many: counting them takes the longer the more there are.

`served_trackings` has a document for each tracking id of more than MANY trips: how many of them there are, by date, and
by hours of a date that has more than MANY. It is marked stale while such trips are being written; in the meantime, and
for all other ids, the trips are counted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from pymongo.database import Database

from app.store import Document, pipelines
from app.store.buckets import HOURS_PER_DAY, MS_PER_DAY, MS_PER_HOUR, Counts, date_of, midnight, utc_date
from app.store.served import from_served

MANY = 100

# How many trips there are, and the latest of their ends (epoch ms), by hour.
Hours = dict[int, tuple[int, int]]


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
        visible = dict.fromkeys(unsettled, 0)
        dates = {date_of(span) for span in unsettled}
        for date, hours in count_by_hour(db, fleet, [tracking_id], dates, ended_by)[tracking_id].items():
            for hour, (count, _) in hours.items():
                if (span := counts.span_at(date, hour)) in visible:
                    visible[span] += count
        counts.count_only(visible)
    return counts


def count_by_hour(
    db: Database[Document],
    fleet: str,
    tracking_ids: Iterable[str],
    dates: Collection[str] = (),
    ended_by: int | None = None,
) -> defaultdict[str, defaultdict[str, Hours]]:
    """Return, by tracking id, date and hour, how many trips there are, and the latest of their ends (epoch ms).

    Of dates at least, where there are any, and of trips that had ended by `ended_by`. Index: (fleet, tracking_id,
    trip_start_time, trip_id, trip_end_time), without reading a trip.
    """
    match: Document = {"fleet": fleet, "tracking_id": {"$in": list(tracking_ids)}}
    if dates:
        match["trip_start_time"] = {"$gte": midnight(min(dates)), "$lt": midnight(max(dates)) + MS_PER_DAY}
    if ended_by is not None:
        match["trip_end_time"] = {"$lte": ended_by}
    found: defaultdict[str, defaultdict[str, Hours]] = defaultdict(lambda: defaultdict(dict))
    for doc in db.trips.aggregate(pipelines.trips_by_hour(match)):
        hour = int(doc["_id"]["hour"])
        date = utc_date(hour * MS_PER_HOUR)
        found[doc["_id"]["tracking_id"]][date][hour % HOURS_PER_DAY] = doc["count"], doc["end"]
    return found
