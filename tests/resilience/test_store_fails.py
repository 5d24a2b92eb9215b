"""The store fails under load: what clients see of it, and for how long."""

import contextlib
import time

import pytest

from tests.resilience.fleet import load_fleet
from tests.resilience.load import Load, failures, recovery, slowest, told
from tests.resilience.processes import Redis, ReplicaSet
from tests.served import until

KILLS = 5
MIN_REQUESTS = 5000
SHARE_OF_FAILURES = 0.001


@pytest.fixture
def replica_set(tmp_path):
    with ReplicaSet(tmp_path / "rs0") as found:
        yield found


@pytest.fixture
def counters(tmp_path):
    """A Redis that counts calls."""
    with Redis(tmp_path) as found:
        yield found


def test_reads_go_on_when_the_primary_of_a_replica_set_is_killed(
    replica_set, counters, make_service, store, tmp_path, report
):
    key = load_fleet(replica_set.uri, tmp_path)
    settings = {"MONGODB_URI": replica_set.uri, "RATELIMIT_STORAGE_URI": counters.uri}
    took, kills = [], []
    with make_service(**settings) as service, Load(service.address, key, store.right, pause=0.01) as load:
        for _ in range(KILLS):
            load.run_for(2)
            primary = replica_set.primary()
            kills.append(time.monotonic())
            primary.kill()
            replica_set.primary()
            took.append(time.monotonic() - kills[-1])
            primary.start()
            until(replica_set.is_whole)
        load.run_for(2)
    results, counts = load.results, failures(load.results)
    recovered = max(
        recovery(load.between(since, until_), since) for since, until_ in zip(kills, [*kills[1:], time.monotonic()])
    )
    report(
        f"primary killed {KILLS} times: {told(results)}; the last of them {recovered:.1f} s after a kill, a new primary "
        f"after {max(took):.1f} s at most, slowest answer {slowest(results):.1f} s"
    )
    assert set(counts) <= {"503 StoreUnavailable"}
    assert len(results) > MIN_REQUESTS
    assert counts.total() < SHARE_OF_FAILURES * len(results)
