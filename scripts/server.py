"""gunicorn, set up for the service."""

import contextlib
import gc
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import click
from flask import Flask
from gunicorn.app.base import BaseApplication
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from app import create_app
from app.config import Config
from app.db import ping
from app.logs import settings as log_settings
from app.store import Document
from scripts import metrics
from scripts.serve import worker_count
from scripts.workers import QuietLogger, SteadyArbiter, SteadyWorker, give_socket, leave_sockets, open_sockets

# Python runs one of them at a time: more would stand in each other's way sooner than wait for the store.
THREADS = 4
# Twenty of the longest driver_ids, percent-encoded, fit.
REQUEST_LINE_BYTES = 8190
# A client and its proxies send 30 or so; of X-Fields as many lines are one mask, which takes time to read.
MAX_HEADERS = 50
# For its one loop, not for a request. Nobody else answers the connections that wait at a worker which hangs.
WORKER_TIMEOUT_SECONDS = 10
GRACEFUL_TIMEOUT_SECONDS = 20
# Longer than the idle timeout that load balancers come with, so that it is they who close an idle connection.
KEEPALIVE_SECONDS = 75
# Requests leave few cycles behind, and looking for them each time that 700 objects were made takes 3 % of the time.
GC_THRESHOLD = 5_000


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn, which makes the application anew in each worker, after the fork."""

    def __init__(self, config: Config, client: MongoClient[Document] | None, greeting: Sequence[str]) -> None:
        self._config, self._client, self._greeting = config, client, greeting
        self._metrics = metrics.listen(config.metrics_bind) if config.metrics_bind else None
        self._number = 0
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn up, from our settings alone."""
        options = {
            "bind": self._config.bind,
            "workers": 1 if self._client else worker_count(self._config),
            "worker_class": SteadyWorker,
            "threads": THREADS,
            "timeout": WORKER_TIMEOUT_SECONDS,
            "graceful_timeout": GRACEFUL_TIMEOUT_SECONDS,
            "max_requests": self._config.max_requests,
            # Not all at the same time.
            "max_requests_jitter": self._config.max_requests // 4,
            "keepalive": KEEPALIVE_SECONDS,
            "limit_request_line": REQUEST_LINE_BYTES,
            "limit_request_fields": MAX_HEADERS,
            # No request header may set the path: the routes read it from the request line.
            "forwarder_headers": "",
            "control_socket_disable": True,
            "logger_class": QuietLogger,
            "logconfig_dict": log_settings(),
            "on_starting": self._listen,
            "pre_fork": self._prepare,
            "post_fork": leave_sockets,
            "when_ready": self._greet,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """Serve until a signal ends it."""
        SteadyArbiter(self).run()

    def load(self) -> Flask:
        """Return the application."""
        if self._metrics:
            metrics.share(self._number)
        app = create_app(self._config, self._client)
        # Those who ask first need not wait until the store's servers are found.
        with app.app_context(), contextlib.suppress(PyMongoError):
            ping()
        if self._metrics:
            metrics.serve(app, self._metrics)
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        return app

    def _listen(self, arbiter: Any) -> None:
        if sys.platform == "linux" and not self._config.bind.startswith("unix:"):
            arbiter.LISTENERS = open_sockets(arbiter)

    def _prepare(self, arbiter: Any, worker: Any) -> None:
        give_socket(arbiter, worker)
        taken = {other.number for other in arbiter.WORKERS.values()}
        worker.number = self._number = next(number for number in itertools.count() if number not in taken)

    def _greet(self, arbiter: Any) -> None:
        # A service manager says SIGHUP to reload, and has no terminal; a terminal says it when it is closed.
        if sys.stderr.isatty():
            signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        click.echo("\n".join(self._greeting))
