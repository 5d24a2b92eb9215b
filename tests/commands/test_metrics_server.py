"""What other clients than Prometheus may do to the server of METRICS_BIND."""

import contextlib
import socket
import threading
import urllib.request

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from scripts.command_line.metrics_server import MAX_CONNECTIONS, MetricsServer

HALF = b"GET /metrics HTTP/1.1\r\nHost: x\r\n"
TIMEOUT_SECONDS = 1.0


class Scrapes:
    """A metric. It counts how often it was read."""

    count = 0

    def collect(self):
        self.count += 1
        yield GaugeMetricFamily("scrapes", "How often the metric was read.", self.count)


@pytest.fixture
def scrapes():
    return Scrapes()


@pytest.fixture
def address(scrapes):
    """The address of a server, all of whose threads end with the test."""
    registry, before = CollectorRegistry(), {*threading.enumerate()}
    registry.register(scrapes)
    with MetricsServer(socket.create_server(("127.0.0.1", 0)), registry, TIMEOUT_SECONDS) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.socket.getsockname()
        server.shutdown()
    for thread in {*threading.enumerate()} - before:
        thread.join(10)
        assert not thread.is_alive()


def connect(address, sent=b""):
    connection = socket.create_connection(address, timeout=30)
    connection.sendall(sent)
    return connection


def read(connection):
    """Return all that comes before the server closes the connection. It resets one that is not read to its end."""
    with contextlib.suppress(ConnectionResetError), connection.makefile("rb") as file:
        return file.read()
    return b""


def scrape(address):
    with urllib.request.urlopen("http://{}:{}/metrics".format(*address), timeout=30) as response:
        return response.read().decode()


def test_half_requests_take_few_threads_and_do_not_keep_the_next_scrape_out(address):
    threads = threading.active_count()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(address, HALF)) for _ in range(10 * MAX_CONNECTIONS)]
        # The last one is accepted after all others, and closed at once.
        assert read(connections[-1]) == b""
        assert threading.active_count() - threads <= MAX_CONNECTIONS
        assert {read(connection) for connection in connections} == {b""}
        assert "scrapes 1.0" in scrape(address)


def test_a_request_that_comes_byte_by_byte_ends_as_well(address, scrapes):
    with connect(address) as connection:
        connection.settimeout(TIMEOUT_SECONDS / 10)
        with contextlib.suppress(ConnectionError):
            for byte in HALF * 10:
                connection.sendall(bytes([byte]))
                with contextlib.suppress(TimeoutError):
                    assert connection.recv(1) == b""
                    break
            else:
                pytest.fail("The server reads on.")
    assert scrapes.count == 0


def test_a_request_that_is_cut_off_is_none(address, scrapes, capfd):
    for sent in (b"", b"GET", HALF):
        with connect(address, sent) as connection:
            connection.shutdown(socket.SHUT_WR)
            assert read(connection) == b""
    assert (scrapes.count, capfd.readouterr().err) == (0, "")
