"""Clients that send or read slowly: whether they delay others."""

import json
import socket
import threading
import time

import pytest

from tests.factories import make_trip
from tests.resilience.fleet import MONDAY, issue_key
from tests.resilience.load import API, Load, failures, percentile, summarize
from tests.resilience.processes import run_command
from tests.resilience.proxies import Proxy

SLOW = 300
READERS = 30
# Of its trail; the response is then larger than a megabyte, which no buffer of a system takes in.
POINTS = 20_000
ROUNDS, ROUND_SECONDS = 4, 2.5
# Beside twice the quiet p99: what a slow, shared machine adds to any percentile.
SPARE_SECONDS = 0.1


class SlowClients:
    """Clients that send `head` and then a header every half second, and read a byte each time; they come again."""

    def __init__(self, address, heads):
        self._address, self._heads, self._done = address, heads, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()

    def _open(self, head):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(self._address)
        client.sendall(head)
        client.setblocking(False)
        return client

    def _run(self):
        clients = [self._open(head) for head in self._heads]
        while not self._done.wait(0.5):
            for number, head in enumerate(self._heads):
                try:
                    if not head.endswith(b"\r\n\r\n"):
                        clients[number].send(b"X-Slow: x\r\n")
                    elif not clients[number].recv(1):
                        raise ConnectionResetError
                except BlockingIOError:
                    continue
                except OSError:
                    clients[number].close()
                    clients[number] = self._open(head)
        for client in clients:
            client.close()


@pytest.fixture
def pair(make_service, store):
    """Two instances."""
    settings = {"MONGODB_URI": store.uri, "LOG_LEVEL": "WARNING"}
    with make_service("one", **settings) as one, make_service("two", **settings) as two:
        yield one, two


@pytest.fixture(scope="module")
def long_trip(store, tmp_path_factory):
    """A request, whole, for a trip that has a long response."""
    trip = make_trip(f"{MONDAY}T08:00", "d1", trip_id="long")
    point = trip["trail_path"][0]
    path = tmp_path_factory.mktemp("long") / "trips.ndjson"
    path.write_text(json.dumps({**trip, "trail_path": [point] * POINTS}) + "\n")
    run_command("import", "--fleet", "long", "--trips", path, uri=store.uri)
    key = issue_key(store.uri, "long")
    return f"GET {API}/trip/trip_id/long HTTP/1.1\r\nHost: h\r\nAuthorization: APIKEY {key}\r\n\r\n".encode()


def half_sent():
    """Return the beginning of a request."""
    return f"GET {API}/drivers HTTP/1.1\r\nHost: h\r\n".encode()


@pytest.mark.parametrize(("kind", "readers"), [("haproxy", 0), ("nginx", READERS)])
def test_slow_clients_do_not_delay_others_behind_a_proxy(kind, readers, pair, long_trip, store, tmp_path, report):
    heads = [half_sent()] * (SLOW - readers) + [long_trip] * readers
    quiet, slow = [], []
    with (
        Proxy(tmp_path, kind, pair) as proxy,
        Load(proxy.address, store.key, store.expected, clients=4, pause=0.02) as load,
    ):
        for _ in range(ROUNDS):
            quiet += load.run_for(ROUND_SECONDS)
            with SlowClients(proxy.address, heads):
                time.sleep(0.5)
                slow += load.run_for(ROUND_SECONDS)
    limits = percentile(quiet, 0.99), percentile(slow, 0.99)
    report(
        f"{SLOW} slow clients behind {kind}, {readers} of them readers: {summarize(load.results)}; "
        f"p99 of others {limits[1] * 1000:.0f} ms, {limits[0] * 1000:.0f} ms without them"
    )
    assert not failures(load.results)
    assert limits[1] <= 2 * limits[0] + SPARE_SECONDS
