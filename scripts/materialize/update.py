"""Keeping read models in line with what a transaction changed."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import TypeVar

import click
from pymongo import DeleteOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from app.store.summaries import DAY, PROFILE
from scripts.materialize.dates import Day
from scripts.materialize.documents import (
    KEYS,
    KINDS,
    Key,
    day_key,
    make_days,
    make_periods,
    make_profiles,
    period_key,
    profile_key,
)
from scripts.materialize.fleet_drivers import lock, update_list

T = TypeVar("T")
# A period, keys of its documents in `driver_periods`, and the documents that are due for these keys.
Stage = tuple[str, Set[Key], Mapping[Key, Document]]
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
) -> int:
    """Bring the read models of days, of their drivers and of other drivers in line with the trips and drivers.

    The days' `trip_details` and the drivers' source documents must be written. Returns how many of the days have trips.
    """
    count = 0
    for kind, keys, due in stages(store, session, fleet, days, driver_ids):
        if kind is PROFILE:
            _replace_profiles(store, session, fleet, keys, due)
        else:
            _replace(store, session, fleet, keys, due)
        count += len(due) if kind is DAY.name else 0
    return count


def stages(
    store: Store, session: ClientSession, fleet: str, days: Iterable[Day], driver_ids: Iterable[str] = ()
) -> Iterator[Stage]:
    """Yield, period by period, the keys of the documents of days and drivers in `driver_periods`, and those due.

    Each stage is built from the one before, so that must be in line when the next is taken.
    """
    days = set(days)
    drivers = {day.driver_id for day in days}.union(driver_ids)
    yield DAY.name, set(map(day_key, days)), make_days(store, session, fleet, days)
    for kind in KINDS:
        firsts = {Day(day.driver_id, kind.first_of(day.date)) for day in days}
        keys = {period_key(kind, first) for first in firsts}
        yield kind.name, keys, make_periods(store, session, fleet, kind, firsts)
    yield PROFILE, set(map(profile_key, drivers)), make_profiles(store, session, fleet, drivers)


def _replace_profiles(
    store: Store, session: ClientSession, fleet: str, keys: Set[Key], due: Mapping[Key, Document]
) -> None:
    """Write the profiles that differ, in the fleet's list too."""
    driver_ids = [driver_id for driver_id, *_ in keys]
    match = {"fleet": fleet, "period": PROFILE, "driver_id": {"$in": driver_ids}}
    stored = store.driver_periods.find(match, {"_id": 0}, session=session)
    known = {profile_key(profile["driver_id"]): profile for profile in stored}
    if changed := {key for key in keys if due.get(key) != known.get(key)}:
        _replace(store, session, fleet, changed, due)
        texts = {key[0]: due[key]["json"] if key in due else None for key in changed}
        update_list(store, session, fleet, texts)


def _replace(store: Store, session: ClientSession, fleet: str, keys: Set[Key], due: Mapping[Key, Document]) -> None:
    """Write the documents that are due for the keys; delete those of keys for which none is."""
    names = KEYS["driver_periods"]
    operations = [
        ReplaceOne(match, due[key], upsert=True) if key in due else DeleteOne(match)
        for key in keys
        for match in [{"fleet": fleet, **dict(zip(names, key, strict=True))}]
    ]
    if operations:
        store.driver_periods.bulk_write(operations, ordered=False, session=session)
