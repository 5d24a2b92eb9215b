"""The store fails under load: what clients see of it."""

import contextlib
import time

import pytest
from pymongo import MongoClient

from tests.resilience.fleet import expected_responses, load_fleet
from tests.resilience.load import Load, Request, Result, failure_of, failures, summarize
from tests.resilience.processes import DATABASE, ReplicaSet
from tests.service_process import wait_until

UNAVAILABLE = "503 StoreUnavailable"
HEALTHY = {Request("/healthz"): {b'{"status":"ok"}'}}
CLIENTS = 20


@pytest.fixture
def replica_set(tmp_path):
    with ReplicaSet(tmp_path / "rs0") as result:
        yield result


# A replica set loses its primary.


def test_reads_succeed_without_a_primary(replica_set, make_service, tmp_path, report):
    key = load_fleet(replica_set.uri, tmp_path)
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(make_service(MONGODB_URI=replica_set.uri))
        load = stack.enter_context(Load(service.address, key, expected_responses(service, key)))
        load.more()
        # The third member, alone, is never the primary.
        *others, alone = replica_set.members
        for member in others:
            member.kill()
        wait_until(lambda: not alone.is_primary)
        load.recover()
        for member in others:
            member.start()
        wait_until(replica_set.is_whole)
        load.recover()
    report(f"no primary for a while: {summarize(load.results)}")
    assert set(failures(load.results)) <= {UNAVAILABLE}


# The store is down, or hangs.


def test_a_store_that_hangs_does_not_delay_requests(store, make_service, report):
    with contextlib.ExitStack() as stack:
        stack.callback(store.repair)
        service = stack.enter_context(make_service(MONGODB_URI=store.uri))
        load = stack.enter_context(Load(service.address, store.key, store.expected, clients=CLIENTS, pause=0.1))
        health = stack.enter_context(Load(service.address, None, HEALTHY, clients=2, pause=0.1))
        load.more()
        workers = service.children()
        store.server.pause()
        paused = time.monotonic()
        # If each request waited for the store, this would take minutes.
        load.more(50 * CLIENTS)
        assert service.get("/healthz").json["status"] == "unavailable"
        hung, checks = load.sent_after(paused), health.sent_after(paused)
        store.server.resume()
        back = load.recover(), health.recover()
        assert service.children() == workers
    report(
        f"mongod stood still, {CLIENTS} clients: {summarize(hung)}; health check: {summarize(checks)}; then "
        f"it went on: good responses within {max(back):.1f} s"
    )
    assert failures(hung) == {UNAVAILABLE: len(hung)}
    assert failures(checks) == {UNAVAILABLE: len(checks)}
    assert set(failures(load.results)) == set(failures(health.results)) == {UNAVAILABLE}


def test_queries_that_take_too_long_fail_alone(store, make_service, report):
    slow = {request: bodies for request, bodies in store.expected.items() if "/window" in request.path}
    others = {request: bodies for request, bodies in store.expected.items() if request.path.startswith("/trip/")}
    # Longer than the service waits.
    fault = {"failCommands": ["aggregate"], "namespace": f"{DATABASE}.driver_periods"}
    fault |= {"blockConnection": True, "blockTimeMS": 5_000}
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(MongoClient(store.uri))
        service = stack.enter_context(make_service(MONGODB_URI=store.uri))
        client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn", data=fault)
        stack.callback(client.admin.command, "configureFailPoint", "failCommand", mode="off")
        load = stack.enter_context(Load(service.address, store.key, slow, clients=2))
        other_load = stack.enter_context(Load(service.address, store.key, others | HEALTHY, clients=2))
        load.more(6)
        other_load.more()
    report(f"queries without end: {summarize(load.results)}; others meanwhile: {summarize(other_load.results)}")
    assert failures(load.results) == {UNAVAILABLE: len(load.results)}
    assert not failures(other_load.results)


# Connections break.


def break_connections(client, times):
    """Have so many reads of the service in a row end with a closed connection."""
    fault = {"failCommands": ["find", "aggregate"], "closeConnection": True, "appName": "driver-analytics"}
    client.admin.command("configureFailPoint", "failCommand", mode={"times": times} if times else "off", data=fault)


def test_repeatedly_broken_connections_cause_no_internal_error(store, make_service, report):
    first, second = [], []
    with make_service(MONGODB_URI=store.uri) as service, MongoClient(store.uri) as client:
        for request, bodies in list(store.expected.items())[::2]:
            for times, failed in ((2, first), (1000, first), (0, second)):
                break_connections(client, times)
                started = time.monotonic()
                response = service.get(request.path, store.key, **request.headers)
                failed.append(Result(started, time.monotonic() - started, failure_of(response, bodies)))
    report(f"connections broken twice and always: {summarize(first)}; right after it: {summarize(second)}")
    assert set(failures(first)) <= {UNAVAILABLE}
    assert not failures(second)


# Calls cannot be counted.


def test_calls_are_served_uncounted_while_redis_hangs(store, counters, make_service, report):
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(make_service(MONGODB_URI=store.uri, RATELIMIT_STORAGE_URI=counters.uri))
        load = stack.enter_context(Load(service.address, store.key, store.expected, clients=CLIENTS, pause=0.05))
        load.more()
        counters.pause()
        load.more(20 * CLIENTS)
        uncounted = [service.get("/drivers", store.key) for _ in range(8)]
        counters.resume()
        back = wait_until(lambda: is_counted(service.get("/drivers", store.key)))
    report(f"Redis stood still: {summarize(load.results)}; counting again after {back:.1f} s")
    assert not failures(load.results)
    assert not any(map(is_counted, uncounted))


def is_counted(response):
    return "X-RateLimit-Remaining" in response.headers


def test_the_service_waits_for_a_store_that_is_down_at_its_start(store, make_service, report):
    with contextlib.ExitStack() as stack:
        store.server.stop()
        stack.callback(store.repair)
        service = stack.enter_context(make_service(MONGODB_URI=store.uri))
        load = stack.enter_context(Load(service.address, store.key, {**store.expected, **HEALTHY}, pause=0.1))
        load.more(100)
        down = list(load.results)
        store.repair()
        back = load.recover()
    report(f"mongod down at the start: {summarize(down)}; then mongod started: good responses within {back:.1f} s")
    assert failures(down) == {UNAVAILABLE: len(down)}
    assert set(failures(load.results)) == {UNAVAILABLE}
