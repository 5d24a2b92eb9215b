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
from scripts.materialize.dates import Day, days_of
from scripts.materialize.documents import make_detail_of_source, make_profiles, profile_key
from scripts.materialize.feed import update_feed
from scripts.materialize.trips import DAY_AND_VERSION, write_documents
from scripts.materialize.update import run_transaction, update_read_models


@dataclasses.dataclass(frozen=True)
class Identifiers:
    """Identifiers of drivers and trips of a fleet. One without a source document is that of a deleted one."""

    drivers: frozenset[str] = frozenset()
    trips: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Yield each as a pair: the collection of its source, and the identifier."""
        for collection, identifiers in (("drivers", self.drivers), ("trips", self.trips)):
            for identifier in sorted(identifiers):
                yield collection, identifier

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Return those of such pairs."""
        pairs = list(pairs)
        drivers, trips = (
            frozenset(identifier for collection, identifier in pairs if collection == name)
            for name in ("drivers", "trips")
        )
        return cls(drivers, trips)


NO_IDENTIFIERS = Identifiers()


class Applied(NamedTuple):
    """How many trips and drivers had read models that differed, and the identifiers of invalid source documents."""

    changed: int
    invalid: Identifiers


class _Plan(NamedTuple):
    """What differs between the stored read models and those of the sources.

    `details` are those of the trips with a valid source, and `stored` the stored ones, by trip_id. `differing` has the
    new details of the trips whose stored ones differ, or None. `days` are the days of these trips, `drivers` the
    identifiers of the drivers that differ. The source documents of `absent` drivers do not count. `invalid` are the
    identifiers of invalid source documents.
    """

    details: dict[str, Document]
    differing: dict[str, Document | None]
    stored: dict[str, Document]
    days: set[Day]
    drivers: list[str]
    absent: frozenset[str]
    invalid: Identifiers


def apply_sources(
    store: Store,
    fleet: str,
    identifiers: Identifiers,
    *,
    left_out: Identifiers = NO_IDENTIFIERS,
    compare_all_fields: bool = False,
    before_commit: Callable[[ClientSession], None] | None = None,
) -> Applied:
    """Build the read models of sources again, in one transaction, and write those that differ.

    What is `left_out` counts as absent, as an invalid document does. By default the stored details of a trip are
    compared by their version, with `compare_all_fields` by all of their fields. `before_commit` is called if something
    was written, in the same transaction. If nothing differs, the transaction leaves no trace.
    """

    def apply(session: ClientSession) -> Applied:
        plan = _make_plan(store, session, fleet, identifiers, left_out, compare_all_fields)
        entries = update_feed(store, session, fleet, {**dict.fromkeys(identifiers.trips), **plan.details})
        if plan.differing or plan.drivers or entries:
            write_documents(store.trip_details, session, fleet, plan.differing, plan.stored)
            update_read_models(store, session, fleet, plan.days, plan.drivers, plan.absent)
            if before_commit:
                before_commit(session)
        else:
            session.abort_transaction()
        return Applied(len(plan.differing) + len(plan.drivers), plan.invalid)

    return run_transaction(store, fleet, apply)


def _make_plan(
    store: Store,
    session: ClientSession,
    fleet: str,
    identifiers: Identifiers,
    left_out: Identifiers,
    compare_all_fields: bool,
) -> _Plan:
    details = _make_details(store, session, fleet, identifiers.trips - left_out.trips)
    invalid_trips = _find_invalid(store.trips, session, fleet, "trip_id", identifiers.trips - details.keys())
    stored = _find_details(store, session, fleet, identifiers.trips, compare_all_fields)
    differing = _find_differing(identifiers.trips, details, stored, compare_all_fields)
    days = days_of([*(stored[key] for key in differing if key in stored), *filter(None, differing.values())])
    drivers = identifiers.drivers.union(day.driver_id for day in days)
    invalid_drivers = _find_invalid(store.drivers, session, fleet, "driver_id", drivers)
    absent = invalid_drivers | left_out.drivers
    changed_drivers = _find_differing_drivers(store, session, fleet, identifiers.drivers, absent)
    invalid = Identifiers(invalid_drivers & identifiers.drivers, invalid_trips)
    return _Plan(details, differing, stored, days, changed_drivers, absent, invalid)


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
    sources = store.trips.find(match, session=session)
    return {source["trip_id"]: make_detail_of_source(fleet, source) for source in sources}


def _find_details(
    store: Store, session: ClientSession, fleet: str, trip_ids: Iterable[str], compare_all_fields: bool
) -> dict[str, Document]:
    match = {"fleet": fleet, "trip_id": {"$in": list(trip_ids)}}
    details = store.trip_details.find(match, None if compare_all_fields else DAY_AND_VERSION, session=session)
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
