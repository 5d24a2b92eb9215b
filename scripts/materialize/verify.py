"""Comparing read models with what would be built from the sources now."""

from collections.abc import Iterator, Mapping, Set

from pymongo.client_session import ClientSession

from app.store import Document, Documents, Store
from app.store.summaries import DAY
from scripts.materialize.documents import KEYS, Built, Key, make_trip_detail
from scripts.materialize.fleet_drivers import list_differs
from scripts.materialize.rebuild import DAYS, TRIPS, batches, known_days, orphans, trip_ids_of
from scripts.materialize.update import stages


def verify_fleet(store: Store, fleet: str) -> Iterator[tuple[int, list[str]]]:
    """Compare all read models of a fleet.

    Yields, after each step, how many days with trips it compared, and a line a difference. What is written meanwhile is
    no difference: each step sees one committed state.
    """
    for details in batches(orphans(store, fleet), TRIPS):
        yield 0, [f"trip_details {detail['trip_id']}: should not be there" for detail in details]
    for trip_ids in batches(trip_ids_of(store, fleet), TRIPS):
        with store.snapshot() as session:
            yield 0, list(_wrong_details(store, session, fleet, trip_ids))
    for days in batches(known_days(store, fleet), DAYS):
        touched, drivers = [day for day in days if day.date], {day.driver_id for day in days}
        count, differences = 0, list[str]()
        with store.snapshot() as session:
            for kind, keys, due in stages(store, session, fleet, touched, drivers):
                differences += _differences(store.driver_periods, session, fleet, keys, due)
                count += len(due) if kind is DAY.name else 0
        yield count, differences
    with store.snapshot() as session:
        yield 0, ["fleet_drivers: the list differs from the drivers"] if list_differs(store, session, fleet) else []


def _wrong_details(store: Store, session: ClientSession, fleet: str, trip_ids: list[str]) -> Iterator[str]:
    match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
    sources = store.trips.find(match, session=session)
    due: Built = {(trip["trip_id"],): {"_id": trip["_id"], **make_trip_detail(fleet, trip)} for trip in sources}
    yield from _differences(store.trip_details, session, fleet, due.keys(), due, {})


def _differences(
    collection: Documents,
    session: ClientSession,
    fleet: str,
    keys: Set[Key],
    due: Mapping[Key, Document],
    wanted: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Yield a line for each of the keys whose document is not the one that is due."""
    names = KEYS[collection.name]
    # Matches more than the keys, so it is compared with them.
    some = {name: {"$in": sorted({key[index] for key in keys})} for index, name in enumerate(names)}
    found = collection.find({"fleet": fleet, **some}, {"_id": 0} if wanted is None else wanted, session=session)
    stored = {tuple(document[name] for name in names): document for document in found}
    for key in sorted(keys):
        if due.get(key) != stored.get(key):
            what = "is missing" if key not in stored else "differs" if key in due else "should not be there"
            yield f"{collection.name} {' '.join(key)}: {what}"
