"""Keeping read models in line with what a transaction changed."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TypeVar

import click
from pymongo import DeleteOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Documents, Store
from scripts.materialize.dates import Day, monday_of
from scripts.materialize.documents import KEYS, WEEK, Key, make_days, make_profiles, make_weeks
from scripts.materialize.fleets import lock, update_fleet

T = TypeVar("T")
# A collection, keys of documents in it, and the documents that are due for these keys.
Stage = tuple[Documents, Set[Key], Mapping[Key, Document]]
# After so long a command says why it stands still.
SILENT_SECONDS = 2.0


def write(store: Store, fleet: str, change: Callable[[ClientSession], T]) -> T:
    """Run `change` in a transaction, and return what it returns.

    Transactions of one fleet run one after the other. `change` runs again if the transaction meets another one, so all
    that it does is to write in its session.
    """
    started, waiting = time.monotonic(), False

    def run(session: ClientSession) -> T:
        nonlocal waiting
        if not waiting and time.monotonic() - started > SILENT_SECONDS:
            waiting = True
            click.echo(f"Waiting for another command that writes to the fleet {fleet} ...", err=True)
        lock(store, session, fleet)
        return change(session)

    return store.transaction(run)


def update(
    store: Store, session: ClientSession, fleet: str, days: Iterable[Day], driver_ids: Iterable[str] = ()
) -> None:
    """Bring the read models of days, of their drivers and of other drivers in line with the trips and drivers.

    The days' `trip_details` and the drivers' source documents must be written.
    """
    for collection, keys, due in stages(store, session, fleet, days, driver_ids):
        if collection is store.driver_profiles:
            _replace_profiles(store, session, fleet, keys, due)
        else:
            _replace(collection, session, fleet, keys, due)


def stages(
    store: Store, session: ClientSession, fleet: str, days: Iterable[Day], driver_ids: Iterable[str] = ()
) -> Iterator[Stage]:
    """Yield, collection by collection, the keys that days and drivers have there and the documents due for them.

    Each stage is built from the one before, so that must be in line when the next is taken.
    """
    days = set(days)
    drivers = {day.driver_id for day in days}.union(driver_ids)
    weeks = {(day.driver_id, monday_of(day.date)) for day in days}
    yield store.driver_days, days, make_days(store, session, fleet, days)
    week_keys = {(driver_id, WEEK, monday) for driver_id, monday in weeks}
    yield store.driver_periods, week_keys, make_weeks(store, session, fleet, weeks)
    yield store.driver_profiles, {(driver_id,) for driver_id in drivers}, make_profiles(store, session, fleet, drivers)


def match_of(collection: Documents, fleet: str, key: Key) -> Document:
    """Return the filter that matches the document of a key."""
    return {"fleet": fleet, **dict(zip(KEYS[collection.name], key, strict=True))}


def _replace_profiles(
    store: Store, session: ClientSession, fleet: str, keys: Set[Key], due: Mapping[Key, Document]
) -> None:
    """Write the profiles that differ, and the fleet where any does."""
    match = {"fleet": fleet, "driver_id": {"$in": [driver_id for (driver_id,) in keys]}}
    stored = store.driver_profiles.find(match, {"_id": 0}, session=session)
    known: dict[Key, Document] = {(profile["driver_id"],): profile for profile in stored}
    if changed := {key for key in keys if due.get(key) != known.get(key)}:
        _replace(store.driver_profiles, session, fleet, changed, due)
        added, removed = ([driver_id for (driver_id,) in ids] for ids in (due.keys() - known, known.keys() - due))
        update_fleet(store, session, fleet, added=added, removed=removed)


def _replace(
    collection: Documents, session: ClientSession, fleet: str, keys: Set[Key], due: Mapping[Key, Document]
) -> None:
    """Write the documents that are due for the keys; delete those of keys for which none is."""
    operations = [
        ReplaceOne(match, due[key], upsert=True) if key in due else DeleteOne(match)
        for key in keys
        for match in [match_of(collection, fleet, key)]
    ]
    if operations:
        collection.bulk_write(operations, ordered=False, session=session)
