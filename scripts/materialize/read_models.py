"""The one way from sources to read models: `materialize` writes them in the order in which they follow."""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click
from pymongo import DeleteOne, ReplaceOne

from app.store import Document, DocumentCollection, Store
from app.store.driver_periods import find_profiles
from app.store.fleets import check_format
from schemas.identity import make_id, match_ids, split_id
from schemas.periods import DAY, LONG_PERIODS, now_ms
from scripts.materialize.days import Day, Groups, days_of, make_days
from scripts.materialize.drivers import make_list, make_profiles
from scripts.materialize.fleet_periods import (
    GroupChanges,
    change_driver_counts,
    change_groups,
    change_sums,
    find_stored_groups,
)
from scripts.materialize.periods import first_days_of, make_periods
from scripts.materialize.trips import has_damaged_entry, make_entries, make_events
from scripts.mongodb.transactions import Operation, make_feed_key, write_all, write_by_id

# The fields that, together with the fleet, identify a document of each collection. An `_id` does so alone, and a
# profile has no `start_date`.
IDENTITY_FIELDS = {
    "trip_details": ("_id",),
    # The trip finds the stored events: MongoDB 6 scans a clustered collection for several values of `_id`.
    "trip_events": ("trip_id", "_id"),
    "trip_changes": ("_id",),
    "driver_periods": ("driver_id", "period", "start_date"),
    "fleet_periods": ("segment", "period", "start_date"),
    "fleet_drivers": ("offset",),
}


class DamagedReadModels(click.ClickException):
    """Another program has changed a read model. The message says how to find and repair it."""


# Maps an identity, the values of IDENTITY_FIELDS, to the document to store, or to None to delete it.
Documents = Mapping[tuple[Any, ...], Document | None]
# Write or compare the documents of a step before you take the next one: it may be built from them as they are stored.
Step = tuple[DocumentCollection, Documents]
# The details of trips by trip_id, or None for a trip without a valid source.
Trips = Mapping[str, Document | None]
# How many drivers with trips may join or leave groups in a transaction: each changes the sums of these groups by all
# days, weeks and months of the driver, of years perhaps, and all these weeks and months.
MOVES_PER_TRANSACTION = 100
# What the settings of the fleet decide about a trip. It is no part of the version.
DECIDED = ("date", "totals")
STORED_TRIP = dict.fromkeys(("driver_id", "version", *DECIDED), 1)


def materialize(store: Store, fleet: str, driver_ids: Iterable[str], trips: Trips, days: Iterable[Day] = ()) -> int:
    """Write the read models of drivers, trips and days that differ, in the transaction that changed their sources.

    The days that the trips leave or reach are written, too, and so are the drivers of all days. The sources of the
    drivers are read here. Returns how many documents were built: with 0, nothing was written.
    """
    # Another version may have begun to build them from scratch since the command began.
    check_format(store, fleet)
    with naming_damage(fleet):
        changed, changed_days = select_changed(store, fleet, trips)
        days = {*days, *changed_days}
        count = write(store, fleet, build_trips(store, fleet, changed))
        count += write(store, fleet, build_days(store, fleet, days))
        profiles = make_profiles(store, fleet, {*driver_ids, *(day.driver_id for day in days)})
        differing, groups = _select_profiles(store, fleet, profiles)
        count += write(store, fleet, _build_drivers(store, fleet, differing, groups))
        _write_groups(store, fleet, groups)
    return count


@contextlib.contextmanager
def naming_damage(fleet: str) -> Iterator[None]:
    """Raise DamagedReadModels if the block fails because another program has changed what it reads."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DamagedReadModels(
            f"A read model of the fleet {fleet} is damaged ({type(error).__name__}). To find it, run 'driver-analytics "
            f"rollups verify --fleet {fleet}'; 'driver-analytics rollups rebuild --fleet {fleet}' repairs it."
        ) from error


def select_changed(store: Store, fleet: str, trips: Trips) -> tuple[Trips, set[Day]]:
    """Return the trips whose details differ from the stored ones, and the days that they leave or reach."""
    details = store.trip_details.find(match_ids(fleet, trips), STORED_TRIP)
    # Another program may have damaged the details, but not the `_id`.
    stored = {parts[1]: detail for detail in details if (parts := split_id(detail["_id"]))}
    changed = {trip_id: detail for trip_id, detail in trips.items() if _has_changed(detail, stored.get(trip_id))}
    left = [stored[trip_id] for trip_id in changed if trip_id in stored]
    return changed, days_of(filter(None, (*left, *changed.values())))


def build_trips(store: Store, fleet: str, trips: Trips) -> Iterator[Step]:
    """Yield the details of trips, their events, and their entries in the change feed."""
    yield store.trip_details, {(make_id(fleet, trip_id),): detail for trip_id, detail in trips.items()}
    yield store.trip_events, make_events(store, fleet, trips)
    yield store.trip_changes, {(_id,): entry for _id, entry in make_entries(store, fleet, trips).items()}


def build_days(store: Store, fleet: str, days: Iterable[Day], groups: Groups | None = None) -> Iterator[Step]:
    """Yield the days, then their weeks and months, then those of the fleet.

    The weeks and months have these `groups` of their drivers, by default those of the stored profiles.
    """
    days = set(days)
    stored_groups = find_stored_groups(store, fleet, {day.driver_id for day in days})
    documents = make_days(store, fleet, days)
    # Before the yield: the sums lose the contributions of the stored documents, which the caller then replaces.
    sums = change_sums(store, fleet, DAY, documents, stored_groups)
    yield store.driver_periods, documents
    for period in LONG_PERIODS:
        firsts = first_days_of(period, days)
        documents = make_periods(store, fleet, period, firsts, stored_groups if groups is None else groups)
        sums |= change_sums(store, fleet, period, documents, stored_groups)
        yield store.driver_periods, documents
    yield store.fleet_periods, sums


def _build_drivers(store: Store, fleet: str, differing: Documents, groups: GroupChanges) -> Iterator[Step]:
    """Yield what follows from the profiles that differ: the fleet's sums of groups, these profiles, and the list."""
    yield store.fleet_periods, change_groups(store, fleet, groups) | change_driver_counts(store, fleet, groups)
    yield store.driver_periods, differing
    if differing:
        yield store.fleet_drivers, make_list(store, fleet, [driver_id for driver_id, *_ in differing])


def _write_groups(store: Store, fleet: str, groups: GroupChanges) -> None:
    """Write the groups into the weeks and months of drivers in whom these differ, of whatever date."""
    drivers = defaultdict[tuple[str, ...], list[str]](list)
    for driver_id, (_, after) in groups.items():
        drivers[*after].append(driver_id)
    for names, driver_ids in drivers.items():
        match = {"fleet": fleet, "period": {"$in": LONG_PERIODS}, "driver_id": {"$in": driver_ids}}
        store.driver_periods.update_many(match, {"$set": {"groups": names}} if names else {"$unset": {"groups": ""}})


def _has_changed(detail: Document | None, stored: Document | None) -> bool:
    """Return whether the details of a trip differ."""
    return _differs(detail, stored) or bool(
        detail and stored and any(detail.get(name) != stored.get(name) for name in DECIDED)
    )


def _select_profiles(store: Store, fleet: str, profiles: Documents) -> tuple[Documents, GroupChanges]:
    """Return the profiles that differ from the stored ones, and the groups of those in which these differ.

    The groups are no part of the version of a profile.
    """
    drivers = {"fleet": fleet, "driver_id": {"$in": [driver_id for driver_id, *_ in profiles]}}
    stored = find_profiles(store, drivers, "groups")
    differing, groups = dict[tuple[Any, ...], Document | None](), dict[str, tuple[list[str], list[str]]]()
    for identity, profile in profiles.items():
        found = stored.get(identity[0])
        before, after = ((document or {}).get("groups", []) for document in (found, profile))
        if before != after:
            groups[identity[0]] = before, after
        if _differs(profile, found) or before != after:
            differing[identity] = profile
    return differing, groups


def _differs(document: Document | None, stored: Document | None) -> bool:
    if document is None or stored is None:
        return document is not stored
    # Another program may have damaged a document.
    return bool(document["version"] != stored.get("version"))


def write(store: Store, fleet: str, steps: Iterable[Step], *, is_damaged: bool = False) -> int:
    """Insert or replace the documents of each step before the next one is built, or delete those that are None.

    MongoDB writes only those that differ. Returns how many documents the steps have. `is_damaged` says that an event
    may be stored without what finds it.
    """
    count = 0
    for collection, documents in steps:
        # Each entry belongs to a changed trip.
        if documents and collection.name == store.trip_changes.name:
            change = {"trips_written_at": now_ms(), **_restart_feed(store, fleet, documents)}
            store.fleets.update_one({"_id": fleet}, {"$set": change})
        match IDENTITY_FIELDS[collection.name]:
            case ("_id",):
                write_by_id(collection, {_id: document for (_id,), document in documents.items()})
            case ("trip_id", "_id") if is_damaged:
                write_all(collection, [_replace_by_id(_id, document) for (_, _id), document in documents.items()])
            case ("trip_id", "_id"):
                of_trips = {"fleet": fleet, "trip_id": {"$in": list({trip_id for trip_id, _ in documents})}}
                write_by_id(collection, {_id: document for (_, _id), document in documents.items()}, of_trips)
            case names:
                write_all(collection, [_replace(fleet, names, *item) for item in documents.items()])
        count += len(documents)
    return count


def _restart_feed(store: Store, fleet: str, entries: Documents) -> dict[str, str]:
    """Return what changes in the state of a fleet, if damaged entries are replaced: the feed begins from scratch.

    Its clients then load their copy again.
    """
    return {"feed_key": make_feed_key()} if has_damaged_entry(store, fleet, (_id for (_id,) in entries)) else {}


def _replace_by_id(_id: Any, document: Document | None) -> Operation:
    return ReplaceOne({"_id": _id}, document, upsert=True) if document else DeleteOne({"_id": _id})


def _replace(fleet: str, names: Sequence[str], identity: tuple[Any, ...], document: Document | None) -> Operation:
    # The identity of a profile lacks the last value, a `start_date`.
    match = {"fleet": fleet, **dict(zip(names, identity, strict=False))}
    return ReplaceOne(match, document, upsert=True) if document else DeleteOne(match)
