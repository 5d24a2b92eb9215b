"""Writing and deleting sources, each batch in one transaction with the read models that follow from them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pymongo import ASCENDING

from app.store import Document, Store
from app.store.driver_periods import find_profiles
from schemas.fields import SURROGATE
from schemas.identity import make_id, match_ids
from scripts.materialize.drivers import add_groups, find_groups, make_groups_source
from scripts.materialize.read_models import MOVES_PER_TRANSACTION, materialize
from scripts.materialize.sources import divide_trips
from scripts.materialize.trips import NOT_DELETED, apply_settings, make_trip_detail, read_trips
from scripts.mongodb.transactions import transaction, write_by_id

# A deletion reads no trails, so these are many.
DELETIONS_PER_TRANSACTION = 500
OLDEST_FIRST = [(name, ASCENDING) for name in ("driver_id", "trip_start_time", "trip_id")]


class PreparedDriver(NamedTuple):
    """The document of a driver in `drivers`, and the driver's groups, or None if these stay as they are."""

    source: Document
    groups: list[str] | None


class PreparedTrip(NamedTuple):
    """The documents of a trip in `trips` and in `trip_details`, this one without what `apply_settings` adds."""

    source: Document
    detail: Document


def prepare_driver(fleet: str, driver: Document) -> PreparedDriver:
    """Return the source and the groups of a driver (schema ImportedDriver)."""
    source = {"_id": make_id(fleet, driver["driver_id"]), "fleet": fleet, **driver}
    return PreparedDriver(source, source.pop("groups", None))


def prepare_trip(fleet: str, trip: Document) -> PreparedTrip:
    """Return the documents of a trip (schema ImportedTrip)."""
    return PreparedTrip({"_id": make_id(fleet, trip["trip_id"]), "fleet": fleet, **trip}, make_trip_detail(fleet, trip))


def write_drivers(store: Store, fleet: str, drivers: Sequence[PreparedDriver]) -> dict[int, str]:
    """Write drivers in one transaction, or in several if many of those who are stored join or leave groups.

    Of several with the same driver_id, the last one is written. Returns why some are left out, by their index: the
    fleet would have too many groups.
    """
    left_out, first = dict[int, str](), 0
    for part in _divide_drivers(store, fleet, drivers):
        left_out |= {first + index: reason for index, reason in _write_drivers(store, fleet, part).items()}
        first += len(part)
    return left_out


def _divide_drivers(store: Store, fleet: str, drivers: Sequence[PreparedDriver]) -> Iterator[Sequence[PreparedDriver]]:
    """Yield parts of the drivers, in order, of whom MOVES_PER_TRANSACTION at most join or leave groups."""
    groups = {driver.source["driver_id"]: driver.groups for driver in drivers if driver.groups is not None}
    stored = find_profiles(store, {"fleet": fleet, "driver_id": {"$in": list(groups)}}, "groups") if groups else {}
    first, moves = 0, 0
    for index, (source, later) in enumerate(drivers):
        profile = stored.get(source["driver_id"])
        if later is None or profile is None or sorted(later) == profile.get("groups", []):
            continue
        if moves == MOVES_PER_TRANSACTION:
            yield drivers[first:index]
            first, moves = index, 0
        moves += 1
    yield drivers[first:]


@transaction
def _write_drivers(store: Store, fleet: str, drivers: Sequence[PreparedDriver]) -> dict[int, str]:
    groups, left_out = _choose_groups(store, fleet, drivers)
    sources = [driver.source for index, driver in enumerate(drivers) if index not in left_out]
    write_by_id(store.drivers, {source["_id"]: source for source in sources})
    write_by_id(store.driver_groups, groups)
    materialize(store, fleet, {source["driver_id"] for source in sources}, {})
    return left_out


def _choose_groups(
    store: Store, fleet: str, drivers: Sequence[PreparedDriver]
) -> tuple[dict[str, Document | None], dict[int, str]]:
    """Return the sources of the drivers' groups by `_id`, None for one to delete, and who is left out, by index."""
    sources, left_out = dict[str, Document | None](), dict[int, str]()
    grouped = {index: driver for index, driver in enumerate(drivers) if driver.groups is not None}
    names = find_groups(store, fleet) if grouped else set()
    for index, (source, groups) in grouped.items():
        if reason := add_groups(names, groups or ()):
            left_out[index] = f"groups: {reason}"
        else:
            sources[source["_id"]] = make_groups_source(fleet, source["driver_id"], groups or ())
    return sources, left_out


@transaction
def write_trips(store: Store, fleet: str, trips: Sequence[PreparedTrip]) -> dict[int, str]:
    """Write trips. Of several with the same trip_id, the last one is written.

    Returns why some are left out, by their index (`apply_settings`).
    """
    left_out = apply_settings(store, fleet, [trip.detail for trip in trips])
    written = [trip for index, trip in enumerate(trips) if index not in left_out]
    sources = {trip.source["_id"]: trip.source for trip in written}
    # The same schema has checked them, and MongoDB would take long to check each point of a trail again.
    write_by_id(store.trips, sources, bypass_document_validation=True)
    materialize(store, fleet, (), {trip.source["trip_id"]: trip.detail for trip in written})
    return left_out


@transaction
def delete_drivers(store: Store, fleet: str, driver_ids: Sequence[str]) -> None:
    """Delete the sources of drivers. A driver with trips then has null names."""
    write_by_id(store.drivers, dict.fromkeys(make_id(fleet, driver_id) for driver_id in driver_ids))
    materialize(store, fleet, driver_ids, {})


@transaction
def delete_trips(
    store: Store,
    fleet: str,
    trip_ids: Sequence[str],
    condition: Mapping[str, Any] = MappingProxyType({}),
    *,
    tombstones: bool = True,
) -> int:
    """Delete those of the trips that meet a condition, and return how many sources were deleted.

    Without `tombstones`, the change feed does not report the deletions: it forgets the trips.
    """
    match = match_ids(fleet, trip_ids)
    reported = list[str]()
    if not tombstones:
        reported += [entry["_id"] for entry in store.trip_changes.find({**match, **NOT_DELETED}, {"_id": 1})]
    count = store.trips.delete_many({**match, **condition}).deleted_count
    materialize(store, fleet, (), read_trips(store, fleet, trip_ids, []))
    if reported:
        store.trip_changes.delete_many({"fleet": fleet, "_id": {"$in": reported}, "deleted_at": {"$exists": True}})
    return count


def delete_trips_of(
    store: Store, fleet: str, documents: Iterable[Document], condition: Mapping[str, Any], *, tombstones: bool = True
) -> Iterator[int]:
    """Delete the trips of documents with a `trip_id`, as `delete_trips` does, some in each transaction.

    Yields after each transaction how many sources it deleted.
    """
    found = (document.get("trip_id") for document in documents)
    # No valid document can have another one.
    trip_ids = (trip_id for trip_id in found if isinstance(trip_id, str) and not SURROGATE.search(trip_id))
    for batch in divide_trips(store, fleet, trip_ids, DELETIONS_PER_TRANSACTION):
        yield delete_trips(store, fleet, batch, condition, tombstones=tombstones)
