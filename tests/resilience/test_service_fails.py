"""The service is stopped, killed and restarted under load: the effect on clients."""

import contextlib
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.resilience.load import API, Load, failures, slowest, summarize
from tests.resilience.processes import ROOT, Redis, program
from tests.resilience.proxies import SHIPPED, Proxy
from tests.service_process import wait_until

# As gunicorn.conf.py has it.
GRACEFUL_TIMEOUT_SECONDS = 20
TIMES = 10
KILLS = 6
# Responses between one fault and the next.
MORE = 30
REQUESTS = 30_000
WARM = 10_000
# How much the memory of a warm worker may grow, in kB: 50 bytes a request.
SPARE_KB = 1_024


@pytest.fixture(scope="module")
def counters(tmp_path_factory):
    """A Redis that counts calls."""
    with Redis(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def settings(store, counters):
    return {"MONGODB_URI": store.uri, "RATELIMIT_STORAGE_URI": counters.uri, "LOG_LEVEL": "WARNING"}


@pytest.fixture
def pair(make_service, settings):
    """Two instances."""
    with make_service("one", **settings) as one, make_service("two", **settings) as two:
        yield one, two


@pytest.fixture
def proxies(tmp_path, pair):
    """HAProxy and nginx, both before the two."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Proxy(tmp_path, kind, pair)) for kind in SHIPPED]


@contextlib.contextmanager
def loads(store, *servers):
    """Load each server with clients that keep their connections and with clients that do not."""
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(
                Load(server.address, store.key, store.expected, clients=3, keep_alive=keep, pause=0.005)
            )
            for server in servers
            for keep in (True, False)
        ]
        yield running
        go_on(running)


def go_on(running):
    """Wait until each load has this many more responses."""
    for load in running:
        load.more(MORE)


def check(report, what, loads_to_check, more="", broken_off=0):
    """Report what came of the loads; none of their requests may have failed, but for so many that broke off."""
    results = [result for load in loads_to_check for result in load.results]
    report(f"{what}: {summarize(results)}; slowest response {slowest(results):.1f} s{more}")
    failed = failures(results)
    assert failed.pop("IncompleteRead", 0) <= broken_off
    assert not failed


def test_only_responses_that_have_begun_fail_when_one_of_two_instances_is_killed(pair, proxies, store, report):
    with loads(store, *proxies) as running:
        for number in range(KILLS):
            go_on(running)
            pair[number % 2].kill()
            go_on(running)
            pair[number % 2].start()
    # gunicorn sends the head of a response, and then its body. Killed in between, it leaves a response that no proxy
    # can take back.
    check(report, f"instance killed {KILLS} times behind HAProxy and nginx", running, broken_off=KILLS)


def test_no_request_fails_during_a_rolling_restart(pair, proxies, store, report):
    took = []
    with loads(store, *proxies) as running:
        for number in range(TIMES):
            go_on(running)
            took.append(pair[number % 2].stop())
            pair[number % 2].start()
    check(report, f"SIGTERM {TIMES} times behind HAProxy and nginx", running, f", ended within {max(took):.1f} s")
    assert max(took) < GRACEFUL_TIMEOUT_SECONDS


def test_no_request_fails_when_the_workers_are_replaced(pair, proxies, store, report):
    with loads(store, *proxies) as running:
        for _ in range(TIMES):
            before = {*pair[0].children()}
            pair[0].signal(signal.SIGHUP)
            wait_until(lambda: not before & {*pair[0].children()})  # noqa: B023
    check(report, f"SIGHUP {TIMES} times behind HAProxy and nginx", running)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_ctrl_c_wait_for_the_response_to_a_request_in_flight(make_service, settings, report, number):
    with make_service(**settings) as service, socket.create_connection(service.address, timeout=30) as client:
        client.sendall(f"GET {API}/healthz HTTP/1.1\r\n".encode())
        # A thread has the request after this time; nothing reports it.
        time.sleep(1)
        service.signal(number)
        time.sleep(1)
        client.sendall(b"Host: h\r\n\r\n")
        response = b"".join(iter(lambda: client.recv(65536), b""))
        took = service.stop()
    status = response.split()[1].decode()
    report(f"{number.name} in the midst of a request: answered {status}, ended within {took + 1:.1f} s")
    assert response.startswith(b"HTTP/1.1 200 ")
    assert b"Connection: close" in response
    assert took + 1 < GRACEFUL_TIMEOUT_SECONDS


def held_kb(service):
    """Return the memory that each worker has for itself, in kB, by process id."""
    held = {}
    for pid in service.children():
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
            held[pid] = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return held


def wrk(service, requests, seconds):
    """Send requests for some seconds on eight connections; return the counts of wrk."""
    words = [program("wrk"), "-t1", "-c8", f"-d{seconds}s", "-s", ROOT / "bench/wrk.lua"]
    done = subprocess.run([*words, "http://{}:{}".format(*service.address), requests], capture_output=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def write_requests(path, store):
    """Write the requests without a mask, which are the quicker ones, to a file as wrk.lua reads them."""
    rest = f"HTTP/1.1\r\nHost: h\r\nAuthorization: APIKEY {store.key}"
    requests = [request for request in store.expected if not request.fields]
    heads = [f"GET {API}{request.path} {rest}\r\n\r\n" for request in requests]
    path.write_text("\0".join(heads), newline="")
    return path


def test_memory_does_not_grow_over_30000_requests(make_service, settings, store, tmp_path, report):
    requests, answered, failed = write_requests(tmp_path / "requests", store), 0, 0
    warm = highest = 0
    with make_service(**settings) as service:
        while answered < REQUESTS:
            counts = wrk(service, requests, 3)
            answered += counts["responses"]
            failed += counts["error_statuses"] + counts["socket_errors"]
            held = held_kb(service)
            if answered <= WARM or not warm:
                warm = max(warm, *held.values())
            highest = max(highest, *held.values())
    report(
        f"{answered:,} requests, {failed} failed; a worker holds {warm / 1024:.1f} MB after {WARM:,}, "
        f"{highest / 1024:.1f} MB at the most"
    )
    assert failed == 0
    assert highest <= warm + SPARE_KB
