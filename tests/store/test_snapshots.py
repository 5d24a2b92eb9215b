"""Readers while the store is written: a response shows one committed state, and a 304 is right.

The states of a sequence of batches are known beforehand, and so are the responses that each of them gives.
"""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
import time_machine
from limits import parse
from pymongo import MongoClient
from pymongo.monitoring import CommandListener

from app.store import Store
from scripts.mongodb.connection import prepare_collections
from tests.conftest import NOW, Service
from tests.factories import make_driver, make_trip
from tests.fleet_states import Batch, write_batches

STATES, READERS = 12, 3
# Responses that are read before the next batch is written, so that readers and writer take turns.
RESPONSES = 25
MASKED = "count,next_page,drivers{driver_id,last_travel_date},trips{trip_id,distance_miles}"
MASKED += ",data{driver_info{driver_id,first_travel_date},driving_summary{trip_count,daily_summary_breakdown{date}}}"
MASKED += ",total{fm_score,trip_count},series{start_date}"
DRIVERS = "driver_id=d0&driver_id=d1"


class Request(NamedTuple):
    """A path under /api/v1, a field mask, and a media type."""

    path: str
    mask: str = "*"
    accept: str = "application/json"

    @property
    def headers(self):
        return {"X-Fields": self.mask, "Accept": self.accept}


PATHS = [
    "/drivers",
    "/drivers?limit=2&page=2",
    "/driver/d0/trips?start_date=2026-03-02",
    "/driver/d0/trips?start_date=2026-03-02&limit=3&page=2",
    "/driver/d3/trips?start_date=2026-03-10",
    "/trip/trip_id/t0",
    "/trip/tracking_id/k0",
    "/trip/tracking_id/k0?page=2",
    f"/driver-aggregate/daily?start_date=2026-03-10&{DRIVERS}",
    "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d3",
    f"/driver-aggregate/weekly?start_date=2026-03-09&{DRIVERS}",
    f"/driver-aggregate/weekly?start_date=2026-03-16&{DRIVERS}",
    f"/driver-aggregate/monthly?start_date=2026-03-01&{DRIVERS}",
    "/driver/d0/score?start_date=2026-03-09&end_date=2026-03-11&interval=day",
    "/driver/d3/score?start_date=2026-03-10",
    "/ranking?period=week&start_date=2026-03-09&limit=2",
    "/ranking?period=month&start_date=2026-03-01&order=best&limit=2&page=2",
    "/ranking?period=week&start_date=2026-03-16&min_distance_miles=0.5",
]
REQUESTS = [Request(path, mask) for path in PATHS for mask in ("*", MASKED)]
REQUESTS += [Request(path, "count") for path in PATHS[:8:3]]
REQUESTS += [Request("/trip/tracking_id/k0", accept="application/geo+json")]


def make_batches():
    """Return batches of a few trips that move between drivers, days and tracking ids, of drivers, and of deletions.

    The drivers d0 and d1 are always there; d2 and d3 are while they have trips. Trips of March 18 are not visible yet.
    """
    rng = random.Random(18)

    def some(kind):
        trip_ids = rng.sample([f"t{n}" for n in range(16)], 5)
        if kind == "deleted":
            return trip_ids
        if kind == "drivers":
            return [make_driver(f"d{n}", alias=f"A{rng.random()}") for n in (0, 1)]
        return [
            make_trip(
                f"2026-03-{rng.choice((9, 10, 11, 16, 18)):02}T09:00",
                f"d{rng.choice((0, 0, 0, 1, 2, 3))}",
                trip_id=trip_id,
                tracking_id=rng.choice(("k0", "k0", "k1", None)),
                distance_miles=rng.random(),
            )
            for trip_id in trip_ids
        ]

    kinds = ["drivers"] + rng.choices(("trips", "drivers", "deleted"), (6, 1, 2), k=STATES - 1)
    return [Batch(kind, some(kind)) for kind in kinds]


BATCHES = make_batches()


def service_of(db):
    """Return the service on a database, for as many requests as these tests make."""
    return Service(db, rate_limit=parse("1000000000 per minute"), log_level="ERROR")


def get(service, request, etag=None):
    """Return the response, and what of it depends on the state: the body, or the message of a 404."""
    conditional = {"If-None-Match": etag} if etag else {}
    response = service.get(request.path, headers=request.headers | conditional)
    assert response.status_code in (200, 304, 404), response.text
    return response, response.json["message"] if response.status_code == 404 else response.data


@pytest.fixture(scope="module")
def expected(mongod_uri):
    """By request, what each state gives."""
    contents_by_request = {request: [] for request in REQUESTS}
    with time_machine.travel(NOW, tick=False), MongoClient(mongod_uri) as client:
        db = client["snapshots"]
        prepare_collections(Store.of(db))
        service = service_of(db)
        for batch in BATCHES:
            write_batches(Store.of(db), [batch])
            for request, contents in contents_by_request.items():
                contents.append(get(service, request)[1])
        client.drop_database("snapshots")
    return contents_by_request


def changing(expected, state):
    """Return the requests for which the next state gives another response, in some order."""
    changed = [request for request, contents in expected.items() if contents[state] != contents[state + 1]]
    return random.Random(state).sample(changed, len(changed))


def test_every_batch_changes_responses(expected):
    assert all(len(changing(expected, state)) > 3 for state in range(STATES - 1))
    assert all(len(set(contents)) > 2 for contents in expected.values())


# In threads.


class Observation(NamedTuple):
    """A content, and between which states it was read: one had been committed before, the other not begun after."""

    request: Request
    status: int
    content: Any
    first: int
    last: int


class Writing:
    """Writes the batches, each after some responses; `committed` and `begun` are numbers of states."""

    def __init__(self, store):
        self.store, self.responses, self.done = store, threading.Semaphore(0), False
        self.committed = self.begun = -1

    def write_next(self):
        self.begun += 1
        write_batches(self.store, [BATCHES[self.begun]])
        self.committed += 1

    def write_all(self):
        """Write all batches that are left."""
        try:
            while self.begun < STATES - 1:
                for _ in range(RESPONSES):
                    self.responses.acquire()
                self.write_next()
        finally:
            self.done = True

    def read_all(self, service, number):
        """Return the Observations made until all batches are written."""
        reader = Reader(service, number)
        try:
            while not self.done:
                first = self.committed
                reader.observations.append(Observation(*reader.get(), first, self.begun))
                self.responses.release()
        finally:
            # The writer waits for no reader that failed.
            self.responses.release(STATES * RESPONSES)
        return reader.observations


class Reader:
    """Makes requests in some order, most of them with the ETag of an earlier response."""

    def __init__(self, service, number):
        self.service, self.rng, self.observations = service, random.Random(number), []
        self.contents = {request: {} for request in REQUESTS}

    def get(self):
        """Return a request, its status and its content, which is of an earlier response if it is not modified."""
        request = self.rng.choice(REQUESTS)
        contents_by_etag = self.contents[request]
        etag = self.rng.choice([None, *list(contents_by_etag)[-2:]])
        response, content = get(self.service, request, etag)
        if response.status_code == 200:
            # A tag stands for one content for good.
            assert contents_by_etag.setdefault(response.headers["ETag"], content) == content
        return request, response.status_code, contents_by_etag[etag] if response.status_code == 304 else content


@pytest.mark.large
def test_a_response_is_of_a_state_that_was_current_meanwhile(expected, mongod, clock, long_timeout):
    service, writing = service_of(mongod), Writing(Store.of(mongod))
    writing.write_next()
    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(writing.read_all, service, number) for number in range(READERS)]
        writing.write_all()
        observations = [observation for reader in readers for observation in reader.result()]
    wrong = [
        observation
        for observation in observations
        if observation.content not in expected[observation.request][observation.first : observation.last + 1]
    ]
    assert wrong == []
    assert {observation.status for observation in observations} == {200, 304, 404}


# Between any two commands of a request.


class Interrupter(CommandListener):
    """Does something before a request's command of some number, from 0."""

    def __init__(self):
        self.arm(-1, None)

    def arm(self, command, act):
        self.left, self.act = command, act

    def started(self, event):
        if event.command_name in ("find", "aggregate") and "keys" not in event.command.values():
            self.left -= 1
            if self.left == -1:
                self.act()

    def succeeded(self, event):
        """Do nothing."""

    failed = succeeded


@pytest.fixture
def interrupted(mongod, mongod_uri, clock, long_timeout):
    """An Interrupter, and a service that it interrupts."""
    interrupter = Interrupter()
    with MongoClient(mongod_uri, event_listeners=[interrupter]) as client:
        yield interrupter, service_of(client[mongod.name])


@pytest.mark.parametrize(("command", "least"), [(1, 9), (2, 3)])
def test_what_is_committed_between_the_commands_of_a_request_does_not_show(
    expected, mongod, interrupted, command, least
):
    writing, (interrupter, service), hits = Writing(Store.of(mongod)), interrupted, 0
    writing.write_next()
    for state in range(STATES - 1):
        for request in changing(expected, state):
            interrupter.arm(command, writing.write_next)
            assert get(service, request)[1] == expected[request][state]
            if writing.committed > state:
                hits += 1
                break
        else:
            writing.write_next()
    assert hits >= least
