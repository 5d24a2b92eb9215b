"""Comparing the stored read models with those that would be built from the sources now."""

from collections.abc import Container, Iterator, Mapping, Set

from pymongo.client_session import ClientSession

from app.store import Document, DocumentCollection, Store
from schemas.periods import DAY
from scripts.batches import batches
from scripts.materialize.documents import KEY_FIELDS, DocumentKey, DocumentsByKey, make_detail_of_source
from scripts.materialize.feed import CONTENT, make_entry
from scripts.materialize.fleet_drivers import list_differs
from scripts.materialize.ranking_counts import find_expected, find_rankings
from scripts.materialize.rebuild import (
    DAYS_PER_TRANSACTION,
    TRIPS_PER_TRANSACTION,
    find_days,
    find_deleted,
    find_orphans,
    find_trip_ids,
)
from scripts.materialize.update import build_stages

# The other fields of an entry of the change feed follow from its history.
FEED_CONTENT = {"_id": 0, **dict.fromkeys(("trip_id", *CONTENT), 1)}


def verify_fleet(store: Store, fleet: str) -> Iterator[tuple[int, list[str]]]:
    """Compare all read models of a fleet with its sources.

    Yields after each step the number of days with trips that it compared, and a line for each difference. Imports may
    run at the same time: each step reads one committed state, so they cause no differences.
    """
    for trip_ids in batches(find_orphans(store, fleet), TRIPS_PER_TRANSACTION):
        yield 0, [f"trip_details {trip_id}: should not be there" for trip_id in trip_ids]
    for trip_ids in batches(find_deleted(store, fleet), TRIPS_PER_TRANSACTION):
        yield 0, [f"trip_changes {trip_id}: should not be there" for trip_id in trip_ids]
    for trip_ids in batches(find_trip_ids(store, fleet), TRIPS_PER_TRANSACTION):
        with store.snapshot() as session:
            yield 0, list(_compare_details(store, session, fleet, trip_ids))
    yield from verify_summaries(store, fleet)


def verify_summaries(store: Store, fleet: str, left_out: Container[str] = ()) -> Iterator[tuple[int, list[str]]]:
    """Compare what is built from the details of trips and from drivers, but for those `left_out`.

    Yields as `verify_fleet` does.
    """
    for days in batches(find_days(store, fleet), DAYS_PER_TRANSACTION):
        dated, drivers = [day for day in days if day.date], {day.driver_id for day in days}
        day_count, differences = 0, list[str]()
        with store.snapshot() as session:
            for stage in build_stages(store, session, fleet, dated, drivers, left_out):
                differences += _compare(store.driver_periods, session, fleet, stage.keys, stage.documents)
                day_count += len(stage.documents) if stage.period == DAY else 0
        yield day_count, differences
    with store.snapshot() as session:
        yield 0, ["fleet_drivers: the list differs from the drivers"] if list_differs(store, session, fleet) else []
    for key in find_rankings(store, fleet):
        with store.snapshot() as session:
            expected = find_expected(store, session, fleet, *key)
            yield 0, list(_compare(store.ranking_counts, session, fleet, {key}, expected))


def _compare_details(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> Iterator[str]:
    match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
    sources = store.trips.find(match, session=session)
    expected: DocumentsByKey = {(source["trip_id"],): make_detail_of_source(fleet, source) for source in sources}
    yield from _compare(store.trip_details, session, fleet, expected.keys(), expected, {})
    entries = {key: {"trip_id": detail["trip_id"], **make_entry(detail)} for key, detail in expected.items()}
    yield from _compare(store.trip_changes, session, fleet, entries.keys(), entries, FEED_CONTENT)


def _compare(
    collection: DocumentCollection,
    session: ClientSession,
    fleet: str,
    keys: Set[DocumentKey],
    expected: Mapping[DocumentKey, Document],
    projection: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Yield a line for each key whose stored document differs from the expected one. `_id` is ignored by default."""
    names = KEY_FIELDS[collection.name]
    # This matches all combinations of the keys' values, so also documents with other keys.
    values = {name: {"$in": sorted({key[index] for key in keys})} for index, name in enumerate(names)}
    documents = collection.find(
        {"fleet": fleet, **values}, {"_id": 0} if projection is None else projection, session=session
    )
    stored = {tuple(document[name] for name in names): document for document in documents}
    for key in sorted(keys):
        if expected.get(key) != stored.get(key):
            problem = "is missing" if key not in stored else "differs" if key in expected else "should not be there"
            yield f"{collection.name} {' '.join(key)}: {problem}"
