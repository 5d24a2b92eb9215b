"""Another program writes directly to the sources, while `follow` loses its place.

tests/store/test_any_following.py ends followers at any moment, and test_cluster.py kills the primary.
"""

import random
import urllib.request

import pytest
from pymongo import MongoClient

from tests.factories import make_trip
from tests.following import make_source
from tests.resilience.fleet import FLEET, MONDAY, load_fleet
from tests.resilience.processes import DATABASE, HOST, ROOT, Primary, Process, free_port, run_command
from tests.service_process import COMMAND, wait_until

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


@pytest.fixture
def primary(tmp_path):
    """A replica set of one member with a small oplog, and the fleet."""
    with Primary(tmp_path / "mongod", *SMALL_OPLOG) as server:
        load_fleet(server.uri, tmp_path)
        yield server


def insert(db, trip_id):
    """Insert a trip directly; return its `_id`."""
    return db.trips.insert_one(make_source(make_trip(f"{MONDAY}T08:00", trip_id=trip_id), FLEET)).inserted_id


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
