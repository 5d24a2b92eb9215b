"""`driver-analytics serve`: the service under gunicorn."""

import contextlib
import dataclasses
import errno
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from flask import Flask
from gunicorn.app.base import BaseApplication
from pymongo import MongoClient

from app import create_app
from app.config import Config, ConfigError
from app.db import bounded_client
from app.logs import settings as log_settings
from app.store import Document
from scripts.demo import prepare_demo
from scripts.embedded import NoMongod
from scripts.store import enter_mongodb, open_store

THREADS = 8
# Twenty of the longest driver_ids, percent-encoded, fit.
REQUEST_LINE_BYTES = 8190
WORKER_TIMEOUT_SECONDS = 30
GRACEFUL_TIMEOUT_SECONDS = 20
# Longer than the idle timeout that load balancers come with, so that it is they who close an idle connection.
KEEPALIVE_SECONDS = 75


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn, which makes the application anew in each worker, after the fork."""

    def __init__(self, config: Config, client: MongoClient[Document] | None, greeting: Sequence[str]) -> None:
        self._config, self._client, self._greeting = config, client, greeting
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn up, from our settings alone."""
        options = {
            "bind": self._config.bind,
            "workers": 1 if self._client else workers(self._config),
            "worker_class": "gthread",
            "threads": THREADS,
            "timeout": WORKER_TIMEOUT_SECONDS,
            "graceful_timeout": GRACEFUL_TIMEOUT_SECONDS,
            "keepalive": KEEPALIVE_SECONDS,
            "limit_request_line": REQUEST_LINE_BYTES,
            # No request header may set the path: the routes read it from the request line.
            "forwarder_headers": "",
            "control_socket_disable": True,
            "logconfig_dict": log_settings(self._config.log_level),
            "when_ready": self._greet,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Return the application."""
        return create_app(self._config, self._client)

    def _greet(self, arbiter: Any) -> None:
        # A service manager says SIGHUP to reload, and has no terminal; a terminal says it when it is closed.
        if sys.stderr.isatty():
            signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        click.echo("\n".join(self._greeting))


def workers(config: Config) -> int:
    """Return the number of worker processes."""
    return config.web_concurrency or max(2, os.cpu_count() or 1)


@click.command()
@click.option("--demo", is_flag=True, help="Load a demonstration fleet into an empty store; print requests to try.")
def serve(demo: bool) -> None:
    """Serve the API. Ctrl-C or SIGTERM finishes the requests in flight and stops it.

    Without MONGODB_URI it starts an embedded MongoDB, and stops that too in the end.
    """
    config = Config.from_environment()
    _check_address(config.bind)
    _check_counters(config)
    with contextlib.ExitStack() as stack:
        client, greeting = None, [f"Serving on {_shown(config.bind)}"]
        try:
            config = dataclasses.replace(config, mongodb_uri=enter_mongodb(stack, config))
        except NoMongod as error:
            if not demo:
                raise click.ClickException(str(error)) from None
            client, greeting = _memory(config, error, greeting)
        else:
            # What a worker cannot use is told here, in one line.
            with bounded_client(config.mongodb_uri) as probe:
                create_app(config, probe)
            if demo:
                with open_store(config) as db:
                    greeting += prepare_demo(db, config)
        Server(config, client, greeting).run()


def _memory(config: Config, error: NoMongod, greeting: list[str]) -> tuple[MongoClient[Document], list[str]]:
    # Only where no MongoDB is to be had is mongomock needed at all.
    from scripts.memory import memory_client

    click.echo(f"Warning: {error} Until then all data lie in memory and are lost at the end.", err=True)
    client = memory_client()
    return client, greeting + prepare_demo(client[config.mongodb_database], config)


def _check_address(bind: str) -> None:
    try:
        if bind.startswith("unix:"):
            _check_path(Path(bind.removeprefix("unix:")))
        else:
            host, _, port = bind.rpartition(":")
            family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        raise click.ClickException(
            f"Cannot serve on {bind}: {error.strerror}. Stop what uses it, or set BIND to another ADDRESS:PORT."
        ) from None


def _check_path(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise OSError(errno.EACCES, f"{path.parent} is no folder that can be written")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        probe.connect(str(path))
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _check_counters(config: Config) -> None:
    uri = config.ratelimit_storage_uri
    if uri.startswith("memory:") and workers(config) > 1:
        raise ConfigError(f"RATELIMIT_STORAGE_URI={uri} counts in one process; set WEB_CONCURRENCY=1, or use Redis.")


def _shown(bind: str) -> str:
    return bind if bind.startswith("unix:") else f"http://{bind}"
