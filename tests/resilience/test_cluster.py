"""A replica set of three members, two instances behind both proxies, and `follow`, while the primary fails."""

import contextlib
import itertools
import threading
import time
from typing import NamedTuple

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.factories import make_trip
from tests.following import make_source
from tests.resilience.fleet import MONDAY, expected_responses, issue_key, load_fleet
from tests.resilience.load import Load, failures, summarize
from tests.resilience.processes import DATABASE, ReplicaSet, Service
from tests.resilience.proxies import SHIPPED, Proxy
from tests.resilience.test_follow import Follow
from tests.service_process import wait_until

UNAVAILABLE = "503 StoreUnavailable"
# The service waits for MongoDB for 1.1 s, PyMongo for up to half a second more, and a proxy for a probe before it.
SLOWEST_503_SECONDS = 2.5


@contextlib.contextmanager
def inserting(uri):
    """Insert trips of the driver `d` of the fleet `direct`, and yield the growing set of those acknowledged."""
    acknowledged, done = set(), threading.Event()

    def run():
        with MongoClient(uri, timeoutMS=5000) as client:
            for name in map("w{}".format, itertools.count()):
                with contextlib.suppress(PyMongoError):
                    trip = make_trip(f"{MONDAY}T08:00", "d", trip_id=name)
                    client[DATABASE].trips.insert_one(make_source(trip, "direct"))
                    acknowledged.add(name)
                if done.wait(0.1):
                    return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield acknowledged
    done.set()
    thread.join()


class Cluster(NamedTuple):
    """Its parts, and the load on each proxy; what was acknowledged of the fleet `direct`, and a key of this fleet."""

    replica_set: ReplicaSet
    instances: list[Service]
    loads: dict[str, Load]
    acknowledged: set[str]
    key: str

    def recover(self):
        """Wait until both proxies serve what is expected, and an instance what was acknowledged; return how much."""
        for load in self.loads.values():
            load.recover()
        acknowledged = set(self.acknowledged)
        wait_until(lambda: acknowledged <= self.served())
        return len(acknowledged)

    def served(self):
        """Return the identifiers of the trips of the fleet `direct`."""
        path, served = f"/driver/d/trips?start_date={MONDAY}&limit=100&page=", set()
        for number in itertools.count(1):
            trips = self.instances[0].get(f"{path}{number}", self.key).json.get("trips")
            if not trips:
                break
            served |= {trip["trip_id"] for trip in trips}
        return served


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster under load, in which `follow` applies what is inserted."""
    folder = tmp_path_factory.mktemp("cluster")
    with contextlib.ExitStack() as stack:
        replica_set = stack.enter_context(ReplicaSet(folder / "rs0"))
        key, direct = load_fleet(replica_set.uri, folder), issue_key(replica_set.uri, "direct")
        settings = {"MONGODB_URI": replica_set.uri, "WEB_CONCURRENCY": "1", "LOG_LEVEL": "WARNING"}
        instances = [Service(folder, name, **settings) for name in ("one", "two")]
        for part in (*instances, Follow(folder, replica_set.uri)):
            stack.enter_context(part)
        expected = expected_responses(instances[0], key)
        proxies = {kind: stack.enter_context(Proxy(folder, kind, instances)) for kind in SHIPPED}
        loads = {kind: Load(proxy.address, key, expected, clients=3, pause=0.1) for kind, proxy in proxies.items()}
        for load in loads.values():
            stack.enter_context(load)
        acknowledged = stack.enter_context(inserting(replica_set.uri))
        yield Cluster(replica_set, instances, loads, acknowledged, direct)


@pytest.mark.parametrize(("what", "begin", "end"), [("killed", "kill", "start"), ("stood still", "pause", "resume")])
def test_no_response_is_wrong_and_no_write_lost_when_the_primary_fails(cluster, what, begin, end, report):
    primary, since = cluster.replica_set.primary(), time.monotonic()
    getattr(primary, begin)()
    cluster.recover()
    getattr(primary, end)()
    wait_until(cluster.replica_set.is_whole)
    inserted = cluster.recover()
    seen = {kind: load.sent_after(since) for kind, load in cluster.loads.items()}
    outcome = "; ".join(f"{kind}: {summarize(results)}" for kind, results in seen.items())
    report(f"primary {what}: {outcome}; all {inserted:,} acknowledged direct inserts served")
    failed = [result for results in seen.values() for result in results if result.failure]
    assert set(failures(failed)) <= {UNAVAILABLE}
    assert max((result.seconds for result in failed), default=0) < SLOWEST_503_SECONDS
