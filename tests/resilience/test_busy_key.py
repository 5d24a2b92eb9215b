"""One key with many requests in flight behind each proxy."""

import json
import statistics

import pytest

from tests.factories import make_point
from tests.resilience.fleet import load_long_trip
from tests.resilience.load import Load, Request, failures, summarize
from tests.resilience.proxies import SHIPPED, Proxy
from tests.service_process import wait_until

# So many requests of a key may be in flight: those of a client with 64 connections, but not of one with 120.
LIMITS = {"haproxy": 100, "nginx": 64}
CLIENTS, MORE_CLIENTS = 64, 120
# The trail of a trip, which the field mask makes costly.
POINTS = 4_000
COSTLY = Request("/trip/trip_id/long", "{trips{trail_path{course}}}")
# Of others, meanwhile.
REQUESTS = 300


@pytest.fixture(scope="module")
def busy(store, tmp_path_factory):
    """The arguments of a Load whose requests are costly, after the address."""
    key = load_long_trip(store.uri, tmp_path_factory.mktemp("busy"), "busy", POINTS)
    course = {"course": make_point(0)["course"]}
    body = json.dumps({"trips": [{"trail_path": [course] * POINTS}]}, separators=(",", ":"))
    return key, {COSTLY: {body.encode()}}


@pytest.fixture(params=SHIPPED)
def proxy(request, pair, tmp_path):
    with Proxy(tmp_path, request.param, pair) as result:
        yield result


def mean_seconds(results):
    return statistics.mean(result.seconds for result in results)


def test_requests_of_a_busy_key_do_not_delay_those_of_others(proxy, busy, store, report):
    with (
        Load(proxy.address, *busy, clients=CLIENTS) as costly,
        Load(proxy.address, store.key, store.expected, clients=4, keep_alive=False) as load,
    ):
        costly.more(CLIENTS)
        load.more(REQUESTS)
    report(f"a key with {CLIENTS} connections: {summarize(costly.results)}; the others: {summarize(load.results)}")
    assert not failures(costly.results) | failures(load.results)
    assert mean_seconds(load.results) < mean_seconds(costly.results) / 4


def test_a_key_with_too_many_requests_in_flight_is_refused(proxy, busy, report):
    refused = []

    def is_refused():
        # Another spelling of the header is the same key.
        headers = {"Authorization": f"apikey  {busy[0]}\t", "X-Request-ID": "mine-5"}
        refused[:] = [proxy.get("/drivers", **headers)]
        return refused[0].status == 429

    with Load(proxy.address, *busy, clients=MORE_CLIENTS) as load:
        wait_until(is_refused)
    assert ("retry-after", "1") in {(name.lower(), value) for name, value in refused[0].headers.items()}
    assert refused[0].json == {
        "message": f"More than {LIMITS[proxy.log.stem]} requests with this key are in flight.",
        "error": "RateLimitExceeded",
        "request_id": "mine-5",
    }
    report(f"a key with {MORE_CLIENTS} connections: {summarize(load.results)}")
    assert set(failures(load.results)) == {"429 RateLimitExceeded"}


def test_no_request_of_a_busy_key_fails_during_a_rolling_restart(proxy, pair, store, report):
    with Load(proxy.address, store.key, store.expected, clients=CLIENTS) as load:
        for service in pair:
            load.more(REQUESTS)
            service.stop()
            load.more(REQUESTS)
            service.start()
    report(f"SIGTERM to each instance, a key with {CLIENTS} connections: {summarize(load.results)}")
    assert not failures(load.results)
