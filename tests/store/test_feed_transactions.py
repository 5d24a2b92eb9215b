"""Transactions that run at the same time, while clients read the change feed: no client misses a change."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pymongo import MongoClient

from app.store import Store
from tests.conftest import NO_LIMITS, Service
from tests.factories import make_trip
from tests.feed_client import Client, find_listed_trips
from tests.fleet_states import Batch, write_batches

WRITERS, READERS = 3, 3
# A visible trip, one that becomes visible when the clock moves, and one that does not.
STARTS = ("2026-03-18T07:00", "2026-03-18T08:00", "2026-03-18T11:00")


def make_batches(seed, count):
    """Return batches in which trips come, are corrected, moved, hidden and deleted."""
    rng, batches = random.Random(seed), []
    for _ in range(count):
        ids = [f"t{n}" for n in rng.sample(range(30), rng.randint(1, 10))]
        if rng.random() < 0.2:
            batches.append(Batch("deleted", ids))
        else:
            times = [rng.choice(STARTS) for _ in ids]
            lines = [
                make_trip(start, f"d{rng.randint(0, 3)}", trip_id=trip_id, distance_miles=rng.random())
                for start, trip_id in zip(times, ids, strict=True)
            ]
            batches.append(Batch("trips", lines))
    return batches


@pytest.fixture
def service(mongod, clock, long_timeout):
    return Service(mongod, **NO_LIMITS, log_level="ERROR")


def write(mongod_uri, name, batches):
    """Write batches with a client of its own."""
    with MongoClient(mongod_uri) as client:
        write_batches(Store.of(client[name]), batches)


def follow(client, seed, done):
    """Read pages until all is written, and sometimes lose a cursor."""
    rng = random.Random(seed)
    while not done.is_set():
        client.get_page()
        if rng.random() < 0.2:
            client.lose()
    return client


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.large)])
def test_every_client_has_the_listed_trips_in_the_end(service, mongod_uri, clock, count):
    done = threading.Event()
    clients = [Client(service, limit) for limit in (1, 3, 1000)]
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        readers = [pool.submit(follow, client, seed, done) for seed, client in enumerate(clients)]
        batches = [make_batches(seed, count) for seed in range(WRITERS)]
        writers = [pool.submit(write, mongod_uri, service.db.name, own) for own in batches]
        try:
            for number, writer in enumerate(writers):
                writer.result()
                clock.shift(600 * number)
        finally:
            done.set()
        for reader in readers:
            reader.result()
    for client in [*clients, Client(service)]:
        client.sync()
        assert client.copy == find_listed_trips(service, "2026-03-01")


@pytest.mark.parametrize("pages", [1, 2])
def test_a_member_that_lags_behind_the_cursor_is_a_503(service, pages):
    """The member misses the last change. One page is not all changes."""
    trips = [make_trip(STARTS[0], trip_id=trip_id) for trip_id in ("t1", "t2")]
    write_batches(service.store, [Batch("trips", trips)])
    client = Client(service, 1)
    for _ in range(pages):
        client.get_page()
    service.db.fleets.update_one({"_id": "f1"}, {"$inc": {"writes": -1}})
    response = service.get("/changes", cursor=client.cursor)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
    service.db.fleets.update_one({"_id": "f1"}, {"$inc": {"writes": 1}})
    assert len(client.sync()) == 2 - pages
