"""Comparing all documents: what `follow` does where it has no position in the change stream to go on from."""

from collections.abc import Iterable, Iterator
from itertools import chain

from app.store import Store
from scripts.batches import batches
from scripts.ingest.changed_sources import INVALID, Applier
from scripts.materialize.rebuild import (
    TRIPS_PER_TRANSACTION,
    find_deleted,
    find_orphans,
    find_trip_ids,
    rebuild_summaries,
)
from scripts.materialize.sources import Identifiers, find_invalid_drivers
from scripts.materialize.verify import verify_summaries
from scripts.mongodb.connection import find_fleets
from scripts.progress import with_progress


def compare_everything(store: Store, applier: Applier) -> int:
    """Compare all read models with their sources as `rollups verify` does, and repair what differs.

    Other programs may write meanwhile. Returns how many trips differed, and 1 for each fleet whose summaries did.
    """
    fleets = find_fleets(store, None)
    # In all fleets first: the details of a trip that has moved to another fleet have the same _id there.
    orphans = sum(sum(_compare_trips(applier, fleet, find_orphans(store, fleet))) for fleet in fleets)
    return orphans + sum(sum(with_progress(fleet, _compare(store, fleet, applier))) for fleet in fleets)


def _compare_trips(applier: Applier, fleet: str, trip_ids: Iterable[str]) -> Iterator[int]:
    """Yield after each transaction how many trips it repaired."""
    # A trip_id of another type is that of an invalid document.
    texts = (trip_id for trip_id in trip_ids if isinstance(trip_id, str))
    for batch in batches(texts, TRIPS_PER_TRANSACTION):
        yield applier.apply(fleet, Identifiers(trips=frozenset(batch)), compare_all_fields=True)


def _compare(store: Store, fleet: str, applier: Applier) -> Iterator[int]:
    """Yield after each step how much it repaired."""
    yield from _compare_trips(applier, fleet, chain(find_deleted(store, fleet), find_trip_ids(store, fleet)))
    invalid = find_invalid_drivers(store, fleet)
    for driver_id in invalid:
        applier.log_left_out("drivers", fleet, driver_id, INVALID)
    differs = False
    for _, differences in verify_summaries(store, fleet, invalid):
        differs |= bool(differences)
        yield 0
    if differs:
        for _ in rebuild_summaries(store, fleet, left_out=invalid):
            yield 0
        yield 1
