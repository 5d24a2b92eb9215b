"""The service is stopped, killed and restarted under load: the effect on clients."""

import contextlib
import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.resilience.load import API, Client, Load, failures, summarize
from tests.resilience.processes import ROOT, program
from tests.resilience.proxies import SHIPPED, Proxy
from tests.service_process import wait_until

TIMES = 5
REQUESTS = 30_000
WARM = 10_000
# How much the memory of a warm worker may grow, in kB: 50 bytes a request.
SPARE_KB = 1_024


@pytest.fixture
def loads(store, pair, tmp_path):
    """HAProxy and nginx before the two instances, each with clients that keep their connections and that do not."""
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(tmp_path, kind, pair)) for kind in SHIPPED]
        options = [(proxy, keep) for proxy in proxies for keep in (True, False)]
        yield [
            stack.enter_context(Load(proxy.address, store.key, store.expected, clients=3, keep_alive=keep))
            for proxy, keep in options
        ]


def go_on(loads):
    """Wait until each load has more responses; return all results."""
    for load in loads:
        load.more()
    return [result for load in loads for result in list(load.results)]


def test_only_responses_that_have_begun_fail_when_one_of_two_instances_is_killed(pair, loads, report):
    for number in range(TIMES):
        go_on(loads)
        pair[number % 2].kill()
        go_on(loads)
        pair[number % 2].start()
    results = go_on(loads)
    report(f"instance killed {TIMES} times behind HAProxy and nginx: {summarize(results)}")
    # gunicorn sends the head of a response, and then its body. Killed in between, it leaves a response that no proxy
    # can take back.
    assert set(failures(results)) <= {"IncompleteRead"}


def test_no_request_fails_during_a_rolling_restart(pair, loads, report):
    took = []
    for number in range(TIMES):
        go_on(loads)
        took.append(pair[number % 2].stop())
        pair[number % 2].start()
    results = go_on(loads)
    report(f"SIGTERM {TIMES} times behind HAProxy and nginx, ended within {max(took):.1f} s: {summarize(results)}")
    assert not failures(results)


def test_no_request_fails_when_the_workers_are_replaced(pair, loads, report):
    for _ in range(TIMES):
        before = {*pair[0].children()}
        pair[0].signal(signal.SIGHUP)
        wait_until(lambda: not before & {*pair[0].children()})  # noqa: B023
        go_on(loads)
    results = go_on(loads)
    report(f"SIGHUP {TIMES} times behind HAProxy and nginx: {summarize(results)}")
    assert not failures(results)


def has_nothing_to_read(port):
    """Return whether no byte is on its way on the connections to a port, or waits to be read, as the kernel tells."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # Both ends of established connections: the addresses, the state, and the bytes to be sent and to be read.
    ends = [row for row in rows if f":{port:04X} " in f"{row[1]} {row[2]} " and row[3] == "01"]
    return {row[4] for row in ends} == {"00000000:00000000"}


def is_stopping(client):
    """Return whether a worker no longer keeps a connection."""
    response = client.get("/livez")
    return response.error or response.headers["Connection"] == "close"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_ctrl_c_wait_for_the_response_to_a_request_in_flight(make_service, store, report, number):
    with (
        make_service(MONGODB_URI=store.uri, WEB_CONCURRENCY="1") as service,
        contextlib.closing(Client(service.address)) as other,
        socket.create_connection(service.address) as client,
    ):
        assert not is_stopping(other)
        client.sendall(f"GET {API}/healthz HTTP/1.1\r\n".encode())
        # First the bytes have arrived, and then they have been read.
        for _ in range(2):
            wait_until(lambda: has_nothing_to_read(service.port))
        service.signal(number)
        wait_until(lambda: is_stopping(other))
        client.sendall(b"Host: h\r\n\r\n")
        response = b"".join(iter(lambda: client.recv(65536), b""))
        took = service.stop()
    report(f"{number.name} in the midst of a request: it was served; ended within {took:.1f} s after it")
    assert response.startswith(b"HTTP/1.1 200 ")
    assert b"Connection: close" in response


def held_kb(service):
    """Return the memory, in kB, that the worker which has most has for itself."""
    held = []
    for pid in service.children():
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        held.append(sum(int(line.split()[1]) for line in lines if line.startswith("Private_")))
    return max(held)


def wrk(service, requests, at_least):
    """Send requests on eight connections until there are so many responses; return how many there were."""
    words = [program("wrk"), "-t1", "-c8", "-d2s", "--timeout", "100s", "-s", ROOT / "bench/wrk.lua"]
    words += ["http://{}:{}".format(*service.address), requests]
    count = 0
    while count < at_least:
        done = subprocess.run(words, capture_output=True, check=True)
        counts = json.loads(done.stdout.splitlines()[-1])
        assert (counts["error_statuses"], counts["socket_errors"]) == (0, 0)
        count += counts["responses"]
    return count


def test_memory_does_not_grow_over_30000_requests(make_service, store, tmp_path, report):
    # The requests without a mask, which are the quicker ones, as wrk.lua reads them.
    rest = f"HTTP/1.1\r\nHost: h\r\nAuthorization: APIKEY {store.key}\r\n\r\n"
    heads = [f"GET {API}{request.path} {rest}" for request in store.expected if not request.fields]
    (requests := tmp_path / "requests").write_text("\0".join(heads), newline="")
    with make_service(MONGODB_URI=store.uri, LOG_LEVEL="WARNING") as service:
        count, warm = wrk(service, requests, WARM), held_kb(service)
        more, held = wrk(service, requests, REQUESTS - WARM), held_kb(service)
    report(f"after {count:,} requests, a worker has {warm / 1024:.1f} MB, after {more:,} more {held / 1024:.1f} MB")
    assert held <= warm + SPARE_KB


@pytest.mark.parametrize("kind", SHIPPED)
def test_no_request_of_a_single_client_fails_when_an_instance_ends(kind, store, pair, tmp_path, report):
    # A worker that ends keeps its socket for 2 seconds, and may then reset what nobody else has taken.
    with Proxy(tmp_path, kind, pair) as proxy, Load(proxy.address, store.key, store.expected, clients=1) as load:
        for number in range(TIMES):
            load.more()
            pair[number % 2].stop()
            pair[number % 2].start()
        load.more()
    report(f"SIGTERM {TIMES} times behind {kind}, one client: {summarize(load.results)}")
    assert not failures(load.results)
