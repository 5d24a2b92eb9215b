"""`driver-analytics serve`: the service under gunicorn."""

import contextlib
import dataclasses
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.util import parse_address
from pymongo import MongoClient

from app import create_app
from app.config import Config, ConfigError
from app.db import reading_client
from app.logs import settings as log_settings
from scripts.demo import prepare_demo
from scripts.embedded import MongodFailed, NoMongod, embedded_mongod
from scripts.memory import memory_client
from scripts.store import open_store

THREADS = 8
# Twenty of the longest driver_ids, percent-encoded, fit.
REQUEST_LINE_BYTES = 8190
WORKER_TIMEOUT_SECONDS = 30
GRACEFUL_TIMEOUT_SECONDS = 20
# Longer than the idle timeout that load balancers come with, so that it is they who close an idle connection.
KEEPALIVE_SECONDS = 75
MAX_PORT = 65_535


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn, which makes the application anew in each worker, after the fork."""

    def __init__(self, config: Config, client: MongoClient[dict[str, Any]] | None, greeting: Sequence[str]) -> None:
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
            uri = config.mongodb_uri or stack.enter_context(embedded_mongod(Path(config.data_dir)))
            config = dataclasses.replace(config, mongodb_uri=uri)
            # A worker could not tell anybody but the log.
            reading_client(config).close()
            if demo:
                with open_store(config) as db:
                    greeting += prepare_demo(db, config)
        except NoMongod as error:
            if not demo:
                raise click.ClickException(str(error)) from None
            click.echo(f"Warning: {error} Until then all data lie in memory and are lost at the end.", err=True)
            client = memory_client()
            greeting += prepare_demo(client[config.mongodb_database], config)
        except MongodFailed as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(f"DATA_DIR={config.data_dir} cannot be used: {error.strerror}.") from None
        Server(config, client, greeting).run()


def _check_address(bind: str) -> None:
    try:
        address = parse_address(bind)
        if isinstance(address, tuple):
            host, port = address
            if port > MAX_PORT:
                raise OverflowError(f"there is no port past {MAX_PORT}")
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except (OSError, RuntimeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise click.ClickException(
            f"Cannot serve on {bind}: {reason}. Stop what uses it, or set BIND to another ADDRESS:PORT."
        ) from None


def _check_counters(config: Config) -> None:
    uri = config.ratelimit_storage_uri
    if uri.startswith("memory:") and workers(config) > 1:
        raise ConfigError(f"RATELIMIT_STORAGE_URI={uri} counts in one process; set WEB_CONCURRENCY=1, or use Redis.")


def _shown(bind: str) -> str:
    return bind if bind.startswith("unix:") else f"http://{bind}"
