"""Another program writes directly to the sources, while `follow` is killed or loses its place.

tests/store/test_any_following.py ends followers before any command, and test_cluster.py kills the primary.
"""

import contextlib
import datetime
import random
import threading
import time
import urllib.request

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from app.store import READ_MODELS
from tests.factories import make_driver, make_trip
from tests.fleet_states import state_of, transaction_lifetime
from tests.following import make_source
from tests.resilience.fleet import DRIVERS, FLEET, MONDAY, load_fleet
from tests.resilience.processes import DATABASE, HOST, ROOT, Primary, Process, free_port, run_command
from tests.service_process import COMMAND, wait_until

# Writes a second, if the machine is fast enough.
RATE = 200
KILLS, TRIPS = 5, 2_000
# MongoDB ends the transaction of a killed process after one and a half times as long; no other takes nearly as long.
TRANSACTION_SECONDS = 4
JUNK, OPLOG_MB = 1_000_000, 16
# The oplog is truncated up to the last checkpoint, which is made each second.
SMALL_OPLOG = ("--oplogSize", OPLOG_MB, "--syncdelay", 1)


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
        with urllib.request.urlopen(f"http://{self.bind}/metrics") as response:
            lines = response.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"driver_analytics_follow_{name} ")))


class Writer(threading.Thread):
    """Another program: it inserts, corrects, moves and deletes trips and drivers, until the context ends."""

    def __init__(self, uri, seed):
        super().__init__()
        self.client, self.rng, self.done = MongoClient(uri), random.Random(seed), threading.Event()
        self.db, self.changes, self.failed = self.client[DATABASE], 0, 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.done.set()
        self.join()
        self.client.close()

    def more(self, count):
        """Wait until it has made so many more changes."""
        enough = self.changes + count
        wait_until(lambda: self.changes >= enough)

    def run(self):
        while not self.done.wait(1 / RATE):
            try:
                self.changes += self.write()
            except PyMongoError:
                self.failed += 1

    def write(self):
        """Write something; return how many documents that changed."""
        trip, driver = self.any_trip(), make_source(make_driver(self.any_driver(), alias=str(self.changes)), FLEET)
        kind = self.rng.random()
        if kind < 0.6:
            self.db.trips.replace_one({"_id": trip["_id"]}, trip, upsert=True)
            return 1
        if kind < 0.75:
            change = {"$set": {"driver_id": self.any_driver()}}
            return self.db.trips.update_one({"_id": trip["_id"]}, change).modified_count
        if kind < 0.9:
            return self.db.trips.delete_one({"_id": trip["_id"]}).deleted_count
        if kind < 0.95:
            self.db.drivers.replace_one({"_id": driver["_id"]}, driver, upsert=True)
            return 1
        return self.db.drivers.delete_one({"_id": driver["_id"]}).deleted_count

    def any_trip(self):
        start = f"{MONDAY + datetime.timedelta(days=self.rng.randrange(7))}T{self.rng.randrange(24):02}:00"
        named = {"trip_id": f"w{self.rng.randrange(TRIPS)}", "distance_miles": self.rng.random() * 20}
        return make_source(make_trip(start, self.any_driver(), **named), FLEET)

    def any_driver(self):
        return f"d{self.rng.randrange(2 * DRIVERS):02}"


@pytest.fixture
def primary(tmp_path):
    """A replica set of one member with a small oplog, and the fleet."""
    with Primary(tmp_path / "mongod", *SMALL_OPLOG) as server:
        load_fleet(server.uri, tmp_path)
        with MongoClient(server.uri) as client, transaction_lifetime(client, TRANSACTION_SECONDS):
            yield server


def insert(db, trip_id):
    """Insert a trip directly; return its `_id`."""
    return db.trips.insert_one(make_source(make_trip(f"{MONDAY}T08:00", trip_id=trip_id), FLEET)).inserted_id


def probe(db):
    """Insert a trip, and wait until its details are there; return how many seconds that took."""
    trip = make_source(make_trip(f"{MONDAY}T08:00", trip_id=f"probe-{time.time_ns()}"), FLEET)
    db.trips.insert_one(trip)
    return wait_until(lambda: db.trip_details.find_one({"_id": trip["_id"]}))


def check(uri):
    """Check that `rollups verify` finds nothing, and that read models made from scratch are the same."""
    assert "no differences" in run_command("rollups", "verify", uri=uri)
    with MongoClient(uri) as client:
        followed = state_of(db := client[DATABASE])
        for name in READ_MODELS:
            db[name].delete_many({})
        run_command("rollups", "rebuild", uri=uri)
        assert state_of(db) == followed


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_missed_while_one_of_the_followers_is_killed(primary, tmp_path, count, report):
    seed, lags = random.randrange(1_000_000), []
    rng = random.Random(seed)
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(MongoClient(primary.uri))[DATABASE]
        followers = [stack.enter_context(Follow(tmp_path, primary.uri, f"follow-{n}")) for n in range(count)]
        with Writer(primary.uri, seed) as writer:
            for _ in range(KILLS):
                writer.more(rng.randrange(200, 600))
                lags.append(probe(db))
                killed = rng.choice(followers)
                killed.kill()
                if count > 1:
                    # The other one goes on.
                    probe(db)
                killed.start()
        caught_up = probe(db)
        assert not any("Traceback" in follow.log_text() for follow in followers)
    report(
        f"one of {count} followers killed {KILLS} times during {writer.changes:,} direct changes: lag between kills up "
        f"to {max(lags):.2f} s; caught up within {caught_up:.1f} s (seed {seed})"
    )
    assert writer.failed == 0
    check(primary.uri)


def roll_over(client):
    """Write so much that the oplog no longer has what was written before."""
    newest = client.local["oplog.rs"].find_one(sort=[("$natural", -1)])["ts"]

    def is_gone():
        client["junk"].junk.replace_one({"_id": 0}, {"_id": 0, "x": random.randbytes(JUNK)}, upsert=True)
        return client.local["oplog.rs"].find_one(sort=[("$natural", 1)])["ts"] > newest

    wait_until(is_gone)


def test_it_compares_everything_when_the_oplog_has_rolled_over(primary, tmp_path, report):
    with MongoClient(primary.uri) as client, Follow(tmp_path, primary.uri) as follow:
        follow.stop()
        for number in range(300):
            last = insert(client[DATABASE], f"w{number}")
        roll_over(client)
        follow.start()
        caught_up = wait_until(lambda: client[DATABASE].trip_details.find_one({"_id": last}))
        comparisons, repairs = follow.scrape("comparisons_total"), follow.scrape("repairs_total")
    report(f"oplog rolled over: follow repaired {repairs:.0f} and had caught up within {caught_up:.1f} s")
    assert (comparisons, repairs > 0) == (1, True)
    assert '"event":"resume token lost"' in follow.log_text()
    assert "no differences" in run_command("rollups", "verify", uri=primary.uri)
