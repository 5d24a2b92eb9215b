"""gunicorn, set up for the service."""

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
from gunicorn.glogging import Logger
from gunicorn.sock import create_sockets
from pymongo import MongoClient

from app import create_app
from app.config import Config
from app.logs import settings as log_settings
from app.store import Document
from scripts import metrics
from scripts.serve import worker_count

THREADS = 8
# Twenty of the longest driver_ids, percent-encoded, fit.
REQUEST_LINE_BYTES = 8190
WORKER_TIMEOUT_SECONDS = 30
GRACEFUL_TIMEOUT_SECONDS = 20
# Longer than the idle timeout that load balancers come with, so that it is they who close an idle connection.
KEEPALIVE_SECONDS = 75
# Requests leave few cycles behind, and looking for them each time that 700 objects were made takes 3 % of the time.
GC_THRESHOLD = 5_000


class _Log(Logger):  # type: ignore[misc]
    # The application writes the line of a request; with a logging configuration gunicorn makes up one too, each time.
    access_log_enabled = False


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
            "worker_class": "gthread",
            "threads": THREADS,
            "timeout": WORKER_TIMEOUT_SECONDS,
            "graceful_timeout": GRACEFUL_TIMEOUT_SECONDS,
            "keepalive": KEEPALIVE_SECONDS,
            "limit_request_line": REQUEST_LINE_BYTES,
            # No request header may set the path: the routes read it from the request line.
            "forwarder_headers": "",
            "control_socket_disable": True,
            "logger_class": _Log,
            "logconfig_dict": log_settings(),
            "on_starting": self._listen,
            "pre_fork": self._prepare,
            "when_ready": self._greet,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Return the application."""
        if self._metrics:
            metrics.share(self._number)
        app = create_app(self._config, self._client)
        if self._metrics:
            metrics.serve(app, self._metrics)
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        return app

    def _listen(self, arbiter: Any) -> None:
        # Of one socket one worker often takes nearly every connection; of several on a port, each gets its share from
        # Linux. They are the arbiter's: with reuse_port gunicorn has each worker make its own, and what waits there is
        # lost when that worker ends.
        if sys.platform == "linux" and not self._config.bind.startswith("unix:"):
            self.cfg.set("reuse_port", True)
            arbiter.LISTENERS = [
                found for _ in range(self.cfg.workers) for found in create_sockets(self.cfg, arbiter.log)
            ]
            self.cfg.set("reuse_port", False)

    def _prepare(self, arbiter: Any, worker: Any) -> None:
        _give_socket(arbiter, worker)
        taken = {other.number for other in arbiter.WORKERS.values()}
        worker.number = self._number = next(number for number in itertools.count() if number not in taken)

    def _greet(self, arbiter: Any) -> None:
        # With a worker less nobody would answer at its socket.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        # A service manager says SIGHUP to reload, and has no terminal; a terminal says it when it is closed.
        if sys.stderr.isatty():
            signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        click.echo("\n".join(self._greeting))


def _give_socket(arbiter: Any, worker: Any) -> None:
    """Give a worker the one socket that has no worker, or else the one whose newest worker is the oldest."""
    newest = dict.fromkeys(arbiter.LISTENERS, 0)
    for other in arbiter.WORKERS.values():
        (listener,) = other.sockets
        newest[listener] = max(newest[listener], other.age)
    worker.sockets = [min(newest, key=newest.__getitem__)]
