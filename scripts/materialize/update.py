"""Transactions of the commands, and the update of read models within them."""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from typing import NamedTuple, TypeVar

import click
from pymongo import DeleteOne, ReplaceOne
from pymongo.client_session import ClientSession
from pymongo.errors import OperationFailure

from app.store import Document, Store
from schemas.periods import DAY, LONG_PERIODS, PROFILE
from scripts.materialize.dates import Day
from scripts.materialize.documents import (
    KEY_FIELDS,
    PERIOD_TYPES,
    DocumentKey,
    day_key,
    make_days,
    make_periods,
    make_profiles,
    period_key,
    profile_key,
)
from scripts.materialize.fleet_drivers import lock_fleet, update_list
from scripts.materialize.ranking_counts import find_ranked, update_counts

T = TypeVar("T")
# A command that waits longer for another one prints a message.
MESSAGE_AFTER_SECONDS = 2.0
# MongoDB's error code for a document that another transaction has changed, and its label for what may be repeated.
WRITE_CONFLICT, TRANSIENT = 112, "TransientTransactionError"


class Stage(NamedTuple):
    """Documents of one period in `driver_periods`.

    `keys` are the keys of the documents that may have changed, `documents` those of them that must exist, by key. A key
    without a document, such as that of a day without trips, must have none in the collection.
    """

    period: str
    keys: Set[DocumentKey]
    documents: Mapping[DocumentKey, Document]


def run_transaction(store: Store, fleet: str, change: Callable[[ClientSession], T]) -> T:
    """Call `change` in a transaction, and return its result.

    Transactions of one fleet run one after the other. If a transaction conflicts with another one, `change` is called
    again; so it must have no effects other than writes in its session. Raises click.ClickException if MongoDB has
    aborted the transaction for two minutes, which is how long PyMongo repeats one.
    """
    lock = _Lock(store, fleet)

    def run(session: ClientSession) -> T:
        lock.take(session)
        return change(session)

    try:
        return store.transaction(run)
    except OperationFailure as error:
        if not error.has_error_label(TRANSIENT):
            raise
        reason = (
            "another command writes to the fleet, or was killed while it did"
            if error.code == WRITE_CONFLICT
            else "each try took longer than transactionLifetimeLimitSeconds, or the primary changed"
        )
        raise click.ClickException(
            f"MongoDB aborted a transaction of the fleet {fleet} again and again: {reason}. Nothing of the transaction "
            "is stored. Run the command again; if it fails again, see 'A command waits' in docs/operations.md."
        ) from error


class _Lock:
    """The lock of a fleet, and the message that another transaction holds it."""

    def __init__(self, store: Store, fleet: str) -> None:
        self._store, self._fleet = store, fleet
        self._started, self._has_printed = time.monotonic(), False

    def take(self, session: ClientSession) -> None:
        """Lock the fleet until the transaction ends. Raises OperationFailure if another transaction has locked it."""
        try:
            lock_fleet(self._store, session, self._fleet)
        except OperationFailure as error:
            waited = time.monotonic() - self._started
            if error.code == WRITE_CONFLICT and not self._has_printed and waited > MESSAGE_AFTER_SECONDS:
                self._has_printed = True
                click.echo(f"Waiting for another command that writes to the fleet {self._fleet} ...", err=True)
            raise


def update_read_models(
    store: Store,
    session: ClientSession,
    fleet: str,
    days: Iterable[Day],
    driver_ids: Iterable[str] = (),
    left_out: Container[str] = (),
) -> int:
    """Update the read models of days, of the drivers of these days, and of other drivers.

    The source documents of drivers that are `left_out` count as absent. Call it after writing the `trip_details` of the
    days and the source documents of the drivers, in the same session. Returns how many of the days have trips.
    """
    day_count = 0
    for stage in build_stages(store, session, fleet, days, driver_ids, left_out):
        if stage.period == PROFILE:
            _replace_profiles(store, session, fleet, stage)
        elif stage.period in LONG_PERIODS:
            ranked = find_ranked(store, session, fleet, stage.period, stage.keys)
            _replace(store, session, fleet, stage.keys, stage.documents)
            update_counts(store, session, fleet, stage.period, ranked, stage.documents.values())
        else:
            _replace(store, session, fleet, stage.keys, stage.documents)
        day_count += len(stage.documents) if stage.period == DAY else 0
    return day_count


def build_stages(
    store: Store,
    session: ClientSession,
    fleet: str,
    days: Iterable[Day],
    driver_ids: Iterable[str] = (),
    left_out: Container[str] = (),
) -> Iterator[Stage]:
    """Yield the documents of days, weeks, months and all time, in this order.

    A stage is built from the stored documents of the stages before it. So write each stage before you take the next
    one; in a comparison, the stored documents are used as they are.
    """
    days = set(days)
    drivers = {day.driver_id for day in days}.union(driver_ids)
    yield Stage(DAY, set(map(day_key, days)), make_days(store, session, fleet, days))
    for period_type in PERIOD_TYPES:
        firsts = {Day(day.driver_id, period_type.first_of(day.date)) for day in days}
        keys = {period_key(period_type, first) for first in firsts}
        yield Stage(period_type.name, keys, make_periods(store, session, fleet, period_type, firsts))
    yield Stage(PROFILE, set(map(profile_key, drivers)), make_profiles(store, session, fleet, drivers, left_out))


def _replace_profiles(store: Store, session: ClientSession, fleet: str, stage: Stage) -> None:
    """Write the profiles that differ from the stored ones, and their drivers in the fleet's list."""
    driver_ids = [driver_id for driver_id, *_ in stage.keys]
    match = {"fleet": fleet, "period": PROFILE, "driver_id": {"$in": driver_ids}}
    profiles = store.driver_periods.find(match, {"_id": 0}, session=session)
    stored = {profile_key(profile["driver_id"]): profile for profile in profiles}
    if changed := {key for key in stage.keys if stage.documents.get(key) != stored.get(key)}:
        _replace(store, session, fleet, changed, stage.documents)
        drivers = {key[0]: stage.documents[key]["json"] if key in stage.documents else None for key in changed}
        update_list(store, session, fleet, drivers)


def _replace(
    store: Store,
    session: ClientSession,
    fleet: str,
    keys: Set[DocumentKey],
    documents: Mapping[DocumentKey, Document],
) -> None:
    """Write the documents of the keys, and delete the stored documents of keys that have none."""
    names = KEY_FIELDS["driver_periods"]
    operations = [
        ReplaceOne(match, documents[key], upsert=True) if key in documents else DeleteOne(match)
        for key in keys
        for match in [{"fleet": fleet, **dict(zip(names, key, strict=True))}]
    ]
    if operations:
        store.driver_periods.bulk_write(operations, ordered=False, session=session)
