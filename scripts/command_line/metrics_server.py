"""The server of METRICS_BIND, which a client can neither keep busy for long nor make start many threads.

prometheus_client reads PROMETHEUS_MULTIPROC_DIR when it is imported, so `serve` sets it before it imports this module.
"""

import http.server
import io
import socket
import socketserver
import sys
import threading
import time
from typing import Any

from prometheus_client import MetricsHandler
from prometheus_client.registry import Collector

from scripts.command_line.addresses import listen

# For a whole connection: request, scrape and response. Prometheus takes a scrape for failed after 10 seconds.
TIMEOUT_SECONDS = 5.0
MAX_CONNECTIONS = 20


class MetricsServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Serves the metrics of a registry, each connection in a thread. Those beyond the maximum are closed at once."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, registry: Collector, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        handler = type("Handler", (_TimedHandler, MetricsHandler), {"registry": registry})
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.timeout_seconds = listener, timeout_seconds
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or close it."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Handle the request of a connection, in its thread."""
        try:
            super().finish_request(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, but none of the connection: a client may end it at any time."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _TimedHandler(socketserver.StreamRequestHandler):
    """Reads the request from a stream that ends with an error, and writes the response to the same."""

    server: MetricsServer

    def setup(self) -> None:
        super().setup()
        stream = _TimedStream(self.connection, self.server.timeout_seconds)
        self.rfile, self.wfile = io.BufferedReader(stream), stream  # type: ignore[assignment]


class _TimedStream(io.RawIOBase):
    """A connection that fails with TimeoutError after some seconds, however slowly its bytes come."""

    def __init__(self, connection: socket.socket, timeout_seconds: float) -> None:
        self._connection, self._end = connection, time.monotonic() + timeout_seconds

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes. Raises ConnectionError at the end: a request that is cut off would count as complete."""
        self._limit()
        if not (size := self._connection.recv_into(buffer)):
            raise ConnectionAbortedError
        return size

    def write(self, content: Any) -> int:
        """Write all of the bytes."""
        self._limit()
        self._connection.sendall(content)
        return len(content)

    def _limit(self) -> None:
        if (seconds := self._end - time.monotonic()) <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)


def serve_metrics(bind: str, registry: Collector) -> None:
    """Start a thread that serves the metrics on METRICS_BIND. Raises click.ClickException."""
    server = MetricsServer(listen("METRICS_BIND", bind), registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
