"""Clients that send or read slowly do not keep others from being served."""

import contextlib
import itertools
import socket
import threading
import time

import pytest

from tests.factories import make_driver
from tests.resilience.fleet import SUNDAY, issue_key, load_long_trip, write_file
from tests.resilience.load import API, TIMEOUT_SECONDS, Load, failures, summarize
from tests.resilience.processes import run_command
from tests.resilience.proxies import SHIPPED, Proxy
from tests.service_process import wait_until

# Both are more than the two instances have threads: four each.
SLOW, READERS = 300, 16
# Of its trail: the most. No buffer of a system takes in the response, of 8 MB.
POINTS = 100_000
# Imports of drivers with the longest names. The file of their report is then longer.
IMPORTS, DRIVERS, NAME = 3, 500, "\U0001f697" * 500
# Of others, meanwhile.
REQUESTS = 1_000
# Bodies that are begun and not finished, four a second, and how long others may wait.
BODIES, PAUSE_SECONDS, MOST_SECONDS = 40, 0.25, 3
BODY_HEADERS = ["Content-Length: 1000000", f"Content-Length: {2**32}", "Transfer-Encoding: chunked\r\n\r\nF4240"]


def is_whole(head):
    """Return whether a request is whole: its client reads slowly, and does not send slowly."""
    return head.endswith(b"\r\n\r\n")


class SlowClients:
    """Clients that send `head` and then a header every half second, or read a byte each time.

    They come again when they are dropped, as the proxies do after 10 seconds; `dropped` counts that.
    """

    def __init__(self, address, heads):
        self._address, self._heads, self._done = address, heads, threading.Event()
        self._thread, self.dropped = threading.Thread(target=self._run, daemon=True), 0
        self.rounds = 0

    def __enter__(self):
        self._clients = [self._open(head) for head in self._heads]
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()
        for client in self._clients:
            client.close()

    def _open(self, head):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(self._address)
        client.sendall(head)
        if is_whole(head):
            # One after the other, so that the long responses are not made at the same time.
            client.settimeout(TIMEOUT_SECONDS)
            client.recv(1)
        client.setblocking(False)
        return client

    def _run(self):
        while not self._done.wait(0.5):
            self.rounds += 1
            for number, head in enumerate(self._heads):
                try:
                    if not is_whole(head):
                        self._clients[number].send(b"X-Slow: x\r\n")
                    if not self._clients[number].recv(1) or not is_whole(head):
                        raise ConnectionResetError
                except BlockingIOError:
                    continue
                except OSError:
                    self.dropped += 1
                    self._clients[number].close()
                    self._clients[number] = self._open(head)


@pytest.fixture
def pair(make_service, store):
    """Two instances of one worker each, so that the proxy divides the clients evenly among workers."""
    settings = {"MONGODB_URI": store.uri, "LOG_LEVEL": "WARNING", "WEB_CONCURRENCY": "1"}
    with make_service("one", **settings) as one, make_service("two", **settings) as two:
        yield one, two


@pytest.fixture(scope="module")
def long_trip(store, tmp_path_factory):
    """A request, whole, for a trip that has a long response."""
    key = load_long_trip(store.uri, tmp_path_factory.mktemp("long"), "long", POINTS)
    return f"GET {API}/trip/trip_id/long HTTP/1.1\r\nHost: h\r\nAuthorization: APIKEY {key}\r\n\r\n".encode()


@pytest.mark.parametrize(("kind", "readers"), [("haproxy", 0), ("nginx", READERS)])
def test_others_are_served_while_slow_clients_hold_connections(kind, readers, pair, long_trip, store, tmp_path, report):
    heads = [long_trip] * readers + [f"GET {API}/drivers HTTP/1.1\r\nHost: h\r\n".encode()] * (SLOW - readers)
    with (
        Proxy(tmp_path, kind, pair) as proxy,
        SlowClients(proxy.address, heads) as slow,
        Load(proxy.address, store.key, store.expected, clients=4, keep_alive=False) as load,
    ):
        load.more()
        # The first of the others did not have to wait until slow clients were dropped.
        seen = slow.rounds
        wait_until(lambda: slow.rounds > seen + 1)
        assert slow.dropped == 0
        load.more(REQUESTS)
    report(f"{SLOW} slow clients behind {kind}, {readers} of them readers; the others: {summarize(load.results)}")
    assert not failures(load.results)
    # nginx logs each instance that it tried. It tries another one after an instance has not responded for 10 seconds.
    assert kind != "nginx" or ", " not in (tmp_path / "access.log").read_text()


@pytest.fixture(scope="module")
def long_report(store, tmp_path_factory):
    """The arguments of a request for the links to a report whose CSV is long."""
    names = dict.fromkeys(("first_name", "last_name", "email", "alias"), NAME)
    for part in range(IMPORTS):
        drivers = [make_driver(f"{part}-{n}", **names) for n in range(DRIVERS)]
        path = write_file(tmp_path_factory.mktemp("report") / "drivers", drivers)
        run_command("import", "--fleet", "report", "--drivers", path, uri=store.uri)
    run_command("reports", "build", "--fleet", "report", "--report-date", SUNDAY, uri=store.uri)
    return f"/report?report_time={SUNDAY}T00:00:00", issue_key(store.uri, "report")


@pytest.mark.parametrize("kind", SHIPPED)
def test_others_are_served_while_a_report_is_read_slowly(kind, pair, long_report, store, tmp_path, report):
    with (
        contextlib.ExitStack() as clients,
        Proxy(tmp_path, kind, pair) as proxy,
        Load(proxy.address, store.key, store.expected, clients=4, keep_alive=False) as load,
    ):
        path = proxy.get(*long_report).json["report_link"].partition(API)[2]
        for _ in range(2 * READERS):
            client = clients.enter_context(socket.create_connection(proxy.address))
            # A proxy may decode a path, or not.
            client.sendall(f"GET {API}{path.replace('r', '%72', 1)} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            time.sleep(PAUSE_SECONDS)
        load.more()
    report(f"{2 * READERS} slow readers of a report behind {kind}; the others: {summarize(load.results)}")
    assert not failures(load.results)
    assert max(result.seconds for result in load.results) < MOST_SECONDS


@pytest.mark.parametrize("kind", SHIPPED)
def test_others_are_served_while_bodies_are_left_unfinished(kind, pair, store, tmp_path, report):
    with (
        contextlib.ExitStack() as clients,
        Proxy(tmp_path, kind, pair) as proxy,
        Load(proxy.address, store.key, store.expected, clients=4, keep_alive=False) as load,
    ):
        for header in itertools.islice(itertools.cycle(BODY_HEADERS), BODIES):
            client = clients.enter_context(socket.create_connection(proxy.address))
            # The proxy may have closed the connection already.
            with contextlib.suppress(ConnectionError):
                client.sendall(f"GET {API}/livez HTTP/1.1\r\nHost: h\r\n{header}\r\n\r\n{'x' * 17_000}".encode())
            time.sleep(PAUSE_SECONDS)
        load.more()
    report(f"{BODIES} unfinished bodies behind {kind}; the others: {summarize(load.results)}")
    assert not failures(load.results)
    assert max(result.seconds for result in load.results) < MOST_SECONDS
