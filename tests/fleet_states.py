"""Batches of the fleet f1, and the states that the store is in after them."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import bson
from pymongo import MongoClient
from pymongo.database import Database

from app.store import COLLECTIONS, READ_MODELS, SOURCES, Store
from app.store.drivers import BY_OFFSET, HEAD_OFFSET
from scripts.materialize.rebuild_and_verify import verify_fleet
from scripts.materialize.write_sources import delete_trips, prepare_driver, prepare_trip, write_drivers, write_trips
from tests.store_contents import DRIVER, HISTORY, PRESENT, TRIP

FLEET = "f1"
State = dict[str, list[Any]]


class Batch(NamedTuple):
    """What one transaction writes: lines of `drivers` or `trips`, or the ids of trips that are `deleted`."""

    kind: str
    content: list[Any]


def write_batches(store: Store, batches: Iterable[Batch]) -> None:
    """Write batches one after the other."""
    for kind, content in batches:
        if kind == "drivers":
            write_drivers(store, FLEET, [prepare_driver(FLEET, DRIVER.load(line)) for line in content])
        elif kind == "trips":
            write_trips(store, FLEET, [prepare_trip(FLEET, TRIP.load(line)) for line in content])
        else:
            delete_trips(store, FLEET, content)


def batches_of(kind: str, lines: Iterable[Any], size: int) -> list[Batch]:
    """Return the batches that an import of these lines writes."""
    iterator = iter(lines)
    return [Batch(kind, batch) for batch in iter(lambda: list(itertools.islice(iterator, size)), [])]


def state_of(db: Database) -> State:
    """Return what the store holds: documents without their ids, and the list of drivers however it is divided."""
    names = [name for name in (*SOURCES, *READ_MODELS) if name != "fleet_drivers"]
    state = {name: sorted(map(bson.encode, db[name].find(PRESENT, {**HISTORY, "_id": 0}))) for name in names}
    blocks = db.fleet_drivers.find({"offset": {"$gt": HEAD_OFFSET}}, sort=BY_OFFSET)
    return state | {"fleet_drivers": [row for block in blocks for row in block["drivers"]]}


def states_after(db: Database, batches: Iterable[Batch]) -> Iterator[State]:
    """Write batches, and yield the state after each."""
    for batch in batches:
        write_batches(Store.of(db), [batch])
        yield state_of(db)


def differences(db: Database) -> list[str]:
    """Return the differences that `rollups verify` reports."""
    return [line for outcome in verify_fleet(Store.of(db), FLEET) for line in outcome.differences]


def empty(db: Database) -> None:
    """Delete all documents of the store."""
    for name in COLLECTIONS:
        db[name].delete_many({})


@contextlib.contextmanager
def transaction_lifetime(client: MongoClient, seconds: int) -> Iterator[None]:
    """Have the server abort transactions after so many seconds, such as those of killed processes."""
    name = "transactionLifetimeLimitSeconds"
    earlier = client.admin.command("getParameter", **{name: 1})[name]
    client.admin.command("setParameter", **{name: seconds})
    try:
        yield
    finally:
        client.admin.command("setParameter", **{name: earlier})
