"""Applying changes that another program made to `drivers` and `trips`: the read models of what changed are built again.

An invalid source document, which violates the validator of its collection, is left out: its read models are those
without it.
"""

import dataclasses
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from pymongo.client_session import ClientSession

from app.store import Document, DocumentCollection, Store
from app.store.indexes import VALID_DOCUMENTS
from schemas.periods import PROFILE
from scripts.materialize.dates import days_of
from scripts.materialize.documents import make_profiles, make_trip_detail, profile_key
from scripts.materialize.feed import update_feed
from scripts.materialize.trips import IDENTITY, write_documents
from scripts.materialize.update import run_transaction, update_read_models


@dataclasses.dataclass(frozen=True)
class Keys:
    """Identifiers of drivers and trips of a fleet. A key without a source document is that of a deleted one."""

    drivers: frozenset[str] = frozenset()
    trips: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield each key as a pair: the collection of its source, and the identifier."""
        for collection, identifiers in (("drivers", self.drivers), ("trips", self.trips)):
            for identifier in sorted(identifiers):
                yield collection, identifier

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Return the keys of such pairs."""
        pairs = list(pairs)
        drivers, trips = (
            frozenset(identifier for collection, identifier in pairs if collection == name)
            for name in ("drivers", "trips")
        )
        return cls(drivers, trips)


NO_KEYS = Keys()


class Applied(NamedTuple):
    """How many trips and drivers had read models that differed, and the keys of invalid source documents."""

    changed: int
    invalid: Keys


def apply_sources(
    store: Store,
    fleet: str,
    keys: Keys,
    *,
    left_out: Keys = NO_KEYS,
    compare_all_fields: bool = False,
    before_commit: Callable[[ClientSession], None] | None = None,
) -> Applied:
    """Build the read models of sources again, in one transaction, and write those that differ.

    What is `left_out` counts as absent, as an invalid document does. By default the stored details of a trip are
    compared by their version, with `compare_all_fields` by all of their fields. `before_commit` is called if something
    was written, in the same transaction. If nothing differs, the transaction leaves no trace.
    """

    def apply(session: ClientSession) -> Applied:
        details = _make_details(store, session, fleet, keys.trips - left_out.trips)
        invalid_trips = _find_invalid(store.trips, session, fleet, "trip_id", keys.trips - details.keys())
        stored = _find_details(store, session, fleet, keys.trips, compare_all_fields)
        differing = _find_differing(keys.trips, details, stored, compare_all_fields)
        days = days_of([*(stored[key] for key in differing if key in stored), *filter(None, differing.values())])
        drivers = keys.drivers.union(day.driver_id for day in days)
        invalid_drivers = _find_invalid(store.drivers, session, fleet, "driver_id", drivers)
        absent = invalid_drivers | left_out.drivers
        changed_drivers = _find_differing_drivers(store, session, fleet, keys.drivers, absent)
        entries = update_feed(store, session, fleet, {**dict.fromkeys(keys.trips), **details})
        if differing or changed_drivers or entries:
            write_documents(store.trip_details, session, fleet, differing, stored)
            update_read_models(store, session, fleet, days, changed_drivers, absent)
            if before_commit:
                before_commit(session)
        else:
            session.abort_transaction()
        return Applied(len(differing) + len(changed_drivers), Keys(invalid_drivers & keys.drivers, invalid_trips))

    return run_transaction(store, fleet, apply)


def find_invalid_drivers(store: Store, fleet: str) -> frozenset[str]:
    """Return the driver_id of each source document of a fleet's driver that is invalid. Scans the fleet's drivers."""
    invalid = store.drivers.find({"fleet": fleet, "$nor": [VALID_DOCUMENTS["drivers"]]}, {"_id": 0, "driver_id": 1})
    return frozenset(driver["driver_id"] for driver in invalid)


def _find_invalid(
    collection: DocumentCollection, session: ClientSession, fleet: str, name: str, identifiers: Collection[str]
) -> frozenset[str]:
    if not identifiers:
        return frozenset()
    match = {"fleet": fleet, name: {"$in": list(identifiers)}, "$nor": [VALID_DOCUMENTS[collection.name]]}
    return frozenset(document[name] for document in collection.find(match, {"_id": 0, name: 1}, session=session))


def _make_details(store: Store, session: ClientSession, fleet: str, trip_ids: Iterable[str]) -> dict[str, Document]:
    """Return the details of the trips that have a valid source document, by trip_id."""
    # One query reads and checks: reading long trails twice takes as long as building the read models.
    match = {"fleet": fleet, "trip_id": {"$in": list(trip_ids)}, "$and": [VALID_DOCUMENTS["trips"]]}
    return {
        trip["trip_id"]: {"_id": trip["_id"], **make_trip_detail(fleet, trip)}
        for trip in store.trips.find(match, session=session)
    }


def _find_details(
    store: Store, session: ClientSession, fleet: str, trip_ids: Iterable[str], compare_all_fields: bool
) -> dict[str, Document]:
    match = {"fleet": fleet, "trip_id": {"$in": list(trip_ids)}}
    details = store.trip_details.find(match, None if compare_all_fields else IDENTITY, session=session)
    return {detail["trip_id"]: detail for detail in details}


def _find_differing(
    trip_ids: Iterable[str], details: Mapping[str, Document], stored: Mapping[str, Document], compare_all_fields: bool
) -> dict[str, Document | None]:
    """Return the new details of the trips whose stored ones differ, by trip_id; None is for a trip without a source."""
    return {
        trip_id: details.get(trip_id)
        for trip_id in trip_ids
        if _differs(details.get(trip_id), stored.get(trip_id), compare_all_fields)
    }


def _differs(detail: Document | None, stored: Mapping[str, object] | None, compare_all_fields: bool) -> bool:
    if detail is None or stored is None:
        return detail is not stored
    return stored != (detail if compare_all_fields else {name: detail[name] for name in stored})


def _find_differing_drivers(
    store: Store, session: ClientSession, fleet: str, driver_ids: Iterable[str], absent: Container[str]
) -> list[str]:
    """Return the drivers whose stored profile differs from the one that follows from the stored sources and days."""
    ids = list(driver_ids)
    expected = make_profiles(store, session, fleet, ids, absent)
    match = {"fleet": fleet, "period": PROFILE, "driver_id": {"$in": ids}}
    profiles = store.driver_periods.find(match, {"_id": 0}, session=session)
    stored = {profile["driver_id"]: profile for profile in profiles}
    return [driver_id for driver_id in ids if expected.get(profile_key(driver_id)) != stored.get(driver_id)]
