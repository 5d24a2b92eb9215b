"""Imports are killed at any moment and run again, while clients read from the service."""

import contextlib
import itertools
import random
import signal
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from limits import parse

from app.store import Store
from scripts.admin.keys import issue_key
from tests.conftest import Service
from tests.factories import make_driver
from tests.fleet_states import (
    FLEET,
    batches_of,
    differences,
    state_of,
    states_after,
    transaction_lifetime,
    write_batches,
)
from tests.import_processes import BATCH_LINES, make_trips, move, start_import, write_file
from tests.resilience.fleet import MONDAY, SUNDAY
from tests.resilience.load import Client, Request
from tests.service_process import wait_until

KILLS, CLIENTS, PAUSE_SECONDS = 20, 3, 0.02
# Two imports, each of which moves all trips to other days, and some to other drivers and tracking ids.
BATCHES = 11
# A run that is killed gets fewer than so many batches further, and is killed within so many seconds after the last one.
MORE, SECONDS = 5, 0.2
TRIPS = make_trips((BATCHES - 1) * BATCH_LINES, MONDAY)
IMPORTS = [
    ([make_driver(f"d{n}", alias=alias) for n in range(0, 2 * BATCH_LINES, 2)], trips)
    for alias, trips in (("A", TRIPS), ("B", move(TRIPS)))
]
SOME = "&".join(f"driver_id=d{n}" for n in range(6))
PATHS = [
    "/drivers",
    "/drivers?limit=7&page=3",
    *(f"/driver/{driver_id}/trips?start_date={MONDAY}&limit=4&page=2" for driver_id in ("d0", "d1", "d9")),
    "/trip/trip_id/t3",
    "/trip/tracking_id/k0?page=4",
    f"/driver-aggregate/daily?start_date={MONDAY}&{SOME}",
    f"/driver-aggregate/weekly?start_date={MONDAY}&{SOME}",
    f"/driver-aggregate/monthly?start_date={MONDAY.replace(day=1)}&{SOME}",
    f"/driver/d0/score?start_date={MONDAY}&end_date={SUNDAY}&interval=day",
    f"/ranking?period=week&start_date={MONDAY}&limit=7&page=3",
]
MASK = (
    "count,drivers{driver_id,last_travel_date},trips{trip_id,driver_id},data{driver_info,driving_summary{trip_count}}"
    ",total{trip_count}"
)
REQUESTS = [Request(path, mask) for path in PATHS for mask in ("", MASK)]


@pytest.fixture
def committed(mongod):
    """The states that the imports commit in turn, and the bodies of each request's responses."""
    service, bodies = Service(mongod, rate_limit=parse("1000000 per minute")), {request: set() for request in REQUESTS}
    first, second = (
        [*batches_of("drivers", drivers, BATCH_LINES), *batches_of("trips", trips, BATCH_LINES)]
        for drivers, trips in IMPORTS
    )
    write_batches(Store.of(mongod), first)
    states = []
    for state in itertools.chain([state_of(mongod)], states_after(mongod, second + first)):
        states.append(state)
        for request in REQUESTS:
            response = service.get(request.path, headers=request.headers)
            assert response.status_code == 200
            bodies[request].add(response.data)
    return states, bodies


@pytest.fixture
def start(mongod, mongod_uri, tmp_path):
    """Start one of the imports: `start(0)`."""
    words = []
    for n, (drivers, trips) in enumerate(IMPORTS):
        files = write_file(tmp_path / f"drivers{n}", drivers), write_file(tmp_path / f"trips{n}", trips)
        words.append(["--drivers", files[0], "--trips", files[1]])
    return lambda number: start_import(mongod_uri, mongod.name, *words[number])


def kill_after(process, db, batches, seconds):
    """Kill an import some seconds after it committed so many batches; return whether it had not ended by then."""
    enough = writes(db) + batches
    wait_until(lambda: writes(db) >= enough or process.poll() is not None)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def writes(db):
    """Return how many transactions have been committed, those that changed nothing included."""
    return db.fleets.find_one({"_id": FLEET})["writes"]


class Observation(NamedTuple):
    """A response; one that is not modified has the body that it stands for."""

    request: Request
    status: int | None
    body: bytes


def read(address, key, number, done):
    """Make requests until it is done, half of them conditional; count the Observations."""
    client, rng, tags, observations = Client(address, key), random.Random(number), {}, Counter()
    while not done.is_set():
        request = rng.choice(REQUESTS)
        tag, body = rng.choice([(None, None), tags.get(request, (None, None))])
        response = client.get(request.path, request.headers | ({"If-None-Match": tag} if tag else {}))
        if response.status == 200:
            tags[request] = response.headers["ETag"], response.body
        observations[Observation(request, response.status, body if response.status == 304 else response.body)] += 1
        done.wait(PAUSE_SECONDS)
    client.close()
    return observations


@contextlib.contextmanager
def readers(service, key):
    """Read with several clients meanwhile; what they found is in the Counter when it is left."""
    done, observations = threading.Event(), Counter()
    with ThreadPoolExecutor() as pool:
        reading = [pool.submit(read, service.address, key, number, done) for number in range(CLIENTS)]
        try:
            yield observations
        finally:
            done.set()
        for future in reading:
            observations += future.result()


def runs(db, start, states, rng):
    """Start imports until KILLS of them were killed; yield, after each, the state that it was to reach, if it lived.

    An import is started again until all of it is stored, and gets some batches further each time. Then comes the other.
    """
    kills = 0
    while kills < KILLS:
        done = states.index(state_of(db))
        number, batches = (1, done) if done < BATCHES else (0, done - BATCHES)
        killed = kill_after(start(number), db, batches + rng.randrange(MORE), rng.uniform(0, SECONDS))
        yield None if killed else states[BATCHES * (2 - number)]
        kills += killed


def test_responses_are_of_committed_states_while_imports_are_killed(
    mongod, mongod_uri, committed, start, make_service, report
):
    (states, bodies), seed, left = committed, random.randrange(1_000_000), []
    service = make_service(MONGODB_URI=mongod_uri, MONGODB_DATABASE=mongod.name)
    with (
        transaction_lifetime(mongod.client, 1),
        service,
        readers(service, issue_key(Store.of(mongod), FLEET)) as observations,
    ):
        for end in runs(mongod, start, states, random.Random(seed)):
            assert state_of(mongod) in (states if end is None else [end]), f"seed {seed}, run {len(left)}"
            assert differences(mongod) == [], f"seed {seed}, run {len(left)}"
            left.append(states.index(state_of(mongod)))
    wrong = Counter({what: count for what, count in observations.items() if what.body not in bodies[what.request]})
    report(
        f"imports killed {KILLS} times in {len(left)} runs, in {len(set(left))} of {len(states) - 1} states: "
        f"{observations.total():,} responses of {CLIENTS} clients, {wrong.total()} of no committed state; "
        "the read models were those of the sources each time"
    )
    assert not wrong
