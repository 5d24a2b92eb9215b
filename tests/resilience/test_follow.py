"""Another program writes directly to the sources, while `follow` is killed, loses its place or its primary."""

import contextlib
import datetime
import random
import threading
import time
import urllib.request

import pytest
from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError, PyMongoError

from tests.factories import make_driver, make_trip
from tests.fleet_states import state_of, transaction_lifetime
from tests.following import make_source
from tests.resilience.fleet import DRIVERS, FLEET, MONDAY, load_fleet, requests
from tests.resilience.processes import DATABASE, HOST, ROOT, Primary, Process, ReplicaSet, free_port, run_command
from tests.service_process import COMMAND, wait_until

RATE, SECONDS, KILLS = 200, 60, 5
MAX_LAG_SECONDS, START_SECONDS = 2, 5
# MongoDB ends the transaction of a killed process after one and a half times as long.
TRANSACTION_SECONDS = 2
TRIPS = 2_000
CATCH_UP_SECONDS = 60
JUNK, OPLOG_MB = 1_000_000, 16


class Follow(Process):
    """`driver-analytics follow`, with metrics."""

    def __init__(self, folder, uri, name="follow"):
        self.bind, self.starts = f"{HOST}:{free_port()}", 0
        env = {"PYTHONPATH": str(ROOT), "MONGODB_URI": uri, "METRICS_BIND": self.bind}
        super().__init__(folder, name, [COMMAND, "follow"], self.is_ready, env)

    def start(self):
        """Start it, and wait until it follows."""
        self.starts += 1
        return super().start()

    def is_ready(self):
        return self.log_text().count("\nFollowing ") == self.starts

    def scrape(self, name):
        """Return the value of a metric."""
        with urllib.request.urlopen(f"http://{self.bind}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"driver_analytics_follow_{name} ")))


class Writer(threading.Thread):
    """Another program: it inserts, corrects, moves and deletes trips and drivers at a rate, until it is stopped."""

    def __init__(self, uri, rate, seed):
        super().__init__()
        self.client, self.rate, self.rng = MongoClient(uri), rate, random.Random(seed)
        self.db, self.done, self.count, self.failed = self.client[DATABASE], threading.Event(), 0, 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.done.set()
        self.join()
        self.client.close()

    def run(self):
        started = time.monotonic()
        while not self.done.wait(max(0, started + self.count / self.rate - time.monotonic())):
            self.count += 1
            try:
                self.write()
            except DuplicateKeyError:
                pass
            except PyMongoError:
                self.failed += 1

    def write(self):
        key = {"fleet": FLEET, "trip_id": f"w{self.rng.randrange(TRIPS)}"}
        kind = self.rng.random()
        if kind < 0.6:
            self.db.trips.replace_one(key, {**self.make_line(), **key}, upsert=True)
        elif kind < 0.75:
            self.db.trips.update_one(key, {"$set": {"driver_id": self.any_driver()}})
        elif kind < 0.9:
            self.db.trips.delete_one(key)
        elif kind < 0.95:
            driver = make_driver(self.any_driver(), alias=str(self.count))
            self.db.drivers.replace_one(
                {"fleet": FLEET, "driver_id": driver["driver_id"]}, make_source(driver, FLEET), upsert=True
            )
        else:
            self.db.drivers.delete_one({"fleet": FLEET, "driver_id": self.any_driver()})

    def make_line(self):
        start = f"{MONDAY + datetime.timedelta(days=self.rng.randrange(7))}T{self.rng.randrange(24):02}:00"
        return make_trip(start, self.any_driver(), distance_miles=self.rng.random() * 20)

    def any_driver(self):
        return f"d{self.rng.randrange(2 * DRIVERS):02}"


# The oplog is truncated up to the last checkpoint, which is made each second.
SMALL_OPLOG = ("--oplogSize", OPLOG_MB, "--syncdelay", 1)


@pytest.fixture(params=[()])
def primary(request, tmp_path):
    """A replica set of one member, with the fleet."""
    with Primary(tmp_path / "mongod", *request.param) as server:
        load_fleet(server.uri, tmp_path)
        with MongoClient(server.uri) as client, transaction_lifetime(client, TRANSACTION_SECONDS):
            yield server


def probe(db, number):
    """Insert a trip, and return the seconds until its details are there."""
    trip = make_trip(f"{MONDAY}T08:00", trip_id=f"probe-{number}")
    db.trips.insert_one(make_source(trip, FLEET))
    return wait_until(lambda: db.trip_details.find_one({"fleet": FLEET, "trip_id": trip["trip_id"]}), CATCH_UP_SECONDS)


def probes(db, started, end):
    """Insert a trip each second, and yield when it was inserted, and the seconds until it was served."""
    number = 0
    while (now := time.monotonic() - started) < end:
        number += 1
        yield now, probe(db, f"{started}-{number}")
        time.sleep(0.5)


def check(uri, make_service):
    """Check that `rollups verify` finds nothing, and that a rebuild changes neither documents nor responses."""
    assert "no differences" in run_command("rollups", "verify", uri=uri)
    key = run_command("keys", "issue", "--fleet", FLEET, uri=uri).strip()
    with make_service(MONGODB_URI=uri) as service, MongoClient(uri) as client:
        before = state_of(client[DATABASE]), {request: service.body(request, key) for request in requests()}
        run_command("rollups", "rebuild", uri=uri)
        assert state_of(client[DATABASE]) == before[0]
        assert {request: service.body(request, key) for request in requests()} == before[1]


def killer(follow, times):
    """Kill it and start it again, at these times in seconds."""
    started = time.monotonic()
    for at in times:
        time.sleep(max(0, started + at - time.monotonic()))
        follow.kill()
        follow.start()


@pytest.mark.alone
def test_nothing_is_missed_while_it_is_killed(primary, make_service, tmp_path, report):
    seed = random.randrange(1_000_000)
    rng = random.Random(seed)
    times = sorted(rng.uniform(5, SECONDS - 5) for _ in range(KILLS))
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(MongoClient(primary.uri))[DATABASE]
        follow = stack.enter_context(Follow(tmp_path, primary.uri))
        probe(db, "first")
        writer = stack.enter_context(Writer(primary.uri, RATE, seed))
        kills = threading.Thread(target=killer, args=(follow, times))
        kills.start()
        lags = list(probes(db, time.monotonic(), SECONDS))
        kills.join()
        writer.done.set()
        writer.join()
        caught_up = probe(db, "last")
    # A probe may have waited for a follower that was killed, or was still starting.
    calm = [lag for at, lag in lags if not any(at - START_SECONDS < kill < at + lag for kill in times)]
    report(
        f"follow killed {KILLS} times in {SECONDS} s of {writer.count / SECONDS:.0f} direct writes a second: lag of "
        f"{len(calm)} trips between kills up to {max(calm):.2f} s, of all {len(lags)} up to "
        f"{max(lag for _, lag in lags):.1f} s; caught up within {caught_up:.1f} s (seed {seed})"
    )
    check(primary.uri, make_service)
    assert writer.count > 0.9 * RATE * SECONDS
    assert max(calm) < MAX_LAG_SECONDS
    assert "Traceback" not in follow.log_text()


@pytest.mark.alone
def test_two_followers_of_which_one_is_killed(primary, make_service, tmp_path, report):
    seed = random.randrange(1_000_000)
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(MongoClient(primary.uri))[DATABASE]
        first, second = (stack.enter_context(Follow(tmp_path, primary.uri, name)) for name in ("first", "second"))
        probe(db, "first")
        writer = stack.enter_context(Writer(primary.uri, RATE, seed))
        both = [lag for _, lag in probes(db, time.monotonic(), 10)]
        first.kill()
        # The other one may wait until MongoDB ends a transaction that the killed one had begun, and then catches up.
        waiting = probe(db, "killed")
        probe(db, "caught-up")
        alone = [lag for _, lag in probes(db, time.monotonic(), 5)]
        writer.done.set()
        writer.join()
        probe(db, "last")
        assert second.stop() < MAX_LAG_SECONDS
    report(
        f"two followers: lag of {len(both)} trips up to {max(both):.2f} s; one killed: {waiting:.2f} s, then of "
        f"{len(alone)} trips up to {max(alone):.2f} s"
    )
    check(primary.uri, make_service)
    assert max(both + alone) < MAX_LAG_SECONDS
    assert waiting < MAX_LAG_SECONDS + 1.5 * TRANSACTION_SECONDS


def roll_over(client):
    """Write so much that the oplog no longer has what was written before."""
    first = client.local["oplog.rs"].find_one(sort=[("$natural", 1)])["ts"]
    newest = client.local["oplog.rs"].find_one(sort=[("$natural", -1)])["ts"]
    assert first < newest

    def is_gone():
        client["junk"].junk.replace_one({"_id": 0}, {"_id": 0, "x": random.randbytes(JUNK)}, upsert=True)
        return client.local["oplog.rs"].find_one(sort=[("$natural", 1)])["ts"] > newest

    return wait_until(is_gone)


@pytest.mark.parametrize("primary", [SMALL_OPLOG], indirect=True, ids=["small oplog"])
def test_it_compares_everything_when_the_oplog_has_rolled_over(primary, make_service, tmp_path, report):
    with MongoClient(primary.uri) as client, Follow(tmp_path, primary.uri) as follow:
        db = client[DATABASE]
        probe(db, "first")
        follow.stop()
        with Writer(primary.uri, RATE, 0):
            time.sleep(3)
        took = roll_over(client)
        follow.start()
        caught_up = probe(db, "last")
        comparisons = follow.scrape("comparisons_total"), follow.scrape("repairs_total")
    report(
        f"oplog of {OPLOG_MB} MB rolled over in {took:.0f} s: follow compared everything, repaired "
        f"{comparisons[1]:.0f} and had caught up within {caught_up:.1f} s"
    )
    assert comparisons[0] == 1
    assert comparisons[1] > 0
    assert '"event":"resume token lost"' in follow.log_text()
    check(primary.uri, make_service)


def test_it_goes_on_after_a_failover_of_the_primary(tmp_path, make_service, report):
    with contextlib.ExitStack() as stack:
        replica_set = stack.enter_context(ReplicaSet(tmp_path / "rs0"))
        load_fleet(replica_set.uri, tmp_path)
        db = stack.enter_context(MongoClient(replica_set.uri))[DATABASE]
        follow = stack.enter_context(Follow(tmp_path, replica_set.uri))
        probe(db, "first")
        pid, lags = follow.process.pid, []
        with Writer(replica_set.uri, RATE / 4, 0) as writer:
            for number in range(2):
                time.sleep(3)
                primary = replica_set.primary()
                primary.kill()
                lags.append(probe(db, f"failover-{number}"))
                primary.start()
                wait_until(replica_set.is_whole)
        probe(db, "last")
        assert (follow.runs, follow.process.pid) == (True, pid)
        report(
            f"primary killed {len(lags)} times during {writer.count} direct writes, {writer.failed} of which failed: a "
            f"trip inserted right after was served within {max(lags):.1f} s"
        )
        check(replica_set.uri, make_service)
    assert "Traceback" not in follow.log_text()
