"""The metrics of all workers, on a port of their own.

Each worker keeps what it counts in files of a folder that all share (prometheus_client's multiprocess mode), and so any
of them can tell the sum. They all listen on the one socket: as long as a worker lives, metrics are served.
"""

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator

from flask import Flask
from prometheus_client import CollectorRegistry, make_wsgi_app, values
from prometheus_client.multiprocess import MultiProcessCollector
from werkzeug.serving import WSGIRequestHandler, make_server

from app.metrics import StoreCollector

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONNECTION_SECONDS = 10


@contextlib.contextmanager
def shared_folder() -> Iterator[None]:
    """Have a new, empty folder for the files of the workers to come, until this process ends."""
    owner, folder = os.getpid(), tempfile.mkdtemp(prefix="driver-analytics-metrics-")
    os.environ[FOLDER] = folder
    try:
        yield
    finally:
        # A forked worker comes by here too when it ends.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def listen(address: str) -> socket.socket:
    """Return a socket that listens on ADDRESS:PORT, to be handed to every worker."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host.strip("[]"), int(port)), family=family)


def share(number: int) -> None:
    """Keep the metrics that are made from now on in files of this number, which no other living worker has.

    A worker goes on counting in the files of the one whose number it got, so there are never more than workers at once.
    """
    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]


def serve(app: Flask, listener: socket.socket) -> None:
    """Serve the metrics of all workers, and the store's, from a thread of this one."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(StoreCollector(app.extensions["store"]))
    host, port = listener.getsockname()[:2]
    server = make_server(
        host, port, make_wsgi_app(registry), threaded=True, request_handler=_Handler, fd=listener.fileno()
    )
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


class _Handler(WSGIRequestHandler):
    timeout = CONNECTION_SECONDS

    def log(self, *args: object) -> None:
        """Log nothing."""
