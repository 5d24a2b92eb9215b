"""Imports are killed at any moment and run again, while clients read from the service."""

import contextlib
import itertools
import random
import subprocess

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
from tests.resilience.load import Load, Request, failures, summarize
from tests.service_process import wait_until

KILLS = 8
# Two imports, each of which moves all trips to other days, and some to other drivers and tracking ids.
BATCHES = 11
# A run is killed after fewer than so many batches, and within so many seconds after the last one.
MORE, SECONDS = 5, 0.2
# MongoDB ends the transaction of a killed import after one and a half times as long; no other takes nearly as long.
TRANSACTION_SECONDS = 3
TRIPS = make_trips((BATCHES - 1) * BATCH_LINES, MONDAY)
IMPORTS = [
    ([make_driver(f"d{n}", alias=alias) for n in range(0, 2 * BATCH_LINES, 2)], trips)
    for alias, trips in (("A", TRIPS), ("B", move(TRIPS)))
]
SOME = "&".join(f"driver_id=d{n}" for n in range(6))
PATHS = [
    "/drivers?limit=7&page=3",
    *(f"/driver/{driver_id}/trips?start_date={MONDAY}&limit=4&page=2" for driver_id in ("d0", "d1", "d9")),
    "/trip/trip_id/t3",
    "/trip/tracking_id/k0?page=4",
    f"/driver-aggregate/daily?start_date={MONDAY}&{SOME}",
    f"/driver-aggregate/weekly?start_date={MONDAY}&{SOME}",
    f"/driver-aggregate/monthly?start_date={MONDAY.replace(day=1)}&{SOME}",
    "/drivers?search=d1&limit=3&page=2",
    f"/driver-aggregate/window?start_date={MONDAY}&end_date={SUNDAY}&limit=7&page=2",
    f"/driver/d0/score?start_date={MONDAY}&end_date={SUNDAY}&interval=day",
    f"/ranking?period=week&start_date={MONDAY}&limit=7&page=3",
]
MASK = "count,drivers{driver_id},trips{trip_id,driver_id},data{driver_info,driving_summary{trip_count}},total{fm_score}"
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
    """Kill an import some seconds after it committed so many batches, unless it has ended by then."""
    enough = writes(db) + batches
    wait_until(lambda: writes(db) >= enough or process.poll() is not None)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.communicate()


def writes(db):
    """Return how many transactions have been committed, those that changed nothing included."""
    return db.fleets.find_one({"_id": FLEET})["writes"]


def test_responses_are_of_committed_states_while_imports_are_killed(
    mongod, mongod_uri, committed, start, make_service, report
):
    (states, bodies), seed, left = committed, random.randrange(1_000_000), [0]
    rng, key = random.Random(seed), issue_key(Store.of(mongod), FLEET)
    with (
        transaction_lifetime(mongod.client, TRANSACTION_SECONDS),
        make_service(MONGODB_URI=mongod_uri, MONGODB_DATABASE=mongod.name) as service,
        Load(service.address, key, bodies, clients=3, pause=0.02) as load,
    ):
        while len(left) <= KILLS:
            # The second import, or the first again once the second is complete. It gets further each time.
            number, done = (1, left[-1]) if left[-1] < BATCHES else (0, left[-1] - BATCHES)
            kill_after(start(number), mongod, done + rng.randrange(MORE), rng.uniform(0, SECONDS))
            state = state_of(mongod)
            assert state in states, f"seed {seed}, run {len(left)}"
            assert differences(mongod) == [], f"seed {seed}, run {len(left)}"
            left.append(states.index(state))
        load.more()
    report(f"imports killed {KILLS} times, after {', '.join(map(str, left[1:]))} batches: {summarize(load.results)}")
    assert len({*left}) > 2
    assert not failures(load.results)
