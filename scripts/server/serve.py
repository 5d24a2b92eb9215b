"""`driver-analytics serve`: the service under gunicorn."""

import contextlib
import dataclasses
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from app import create_app
from app.config import Config
from app.database import check_transactions, service_client
from app.report_links import generate_secret
from app.store import Document, Store
from scripts.demo.load import prepare_demo
from scripts.mongodb.connection import enter_mongodb, open_store
from scripts.mongodb.embedded_mongod import NoMongod


@click.command()
@click.option("--demo", is_flag=True, help="Load a demonstration fleet into an empty store; print requests to try.")
def serve(demo: bool) -> None:
    """Serve the API. Ctrl-C or SIGTERM finishes the requests in flight and stops it.

    Without MONGODB_URI it starts an embedded MongoDB, and stops that too in the end.
    """
    config = Config.from_environment()
    if not config.secret_key:
        config = _set(config, secret_key=generate_secret())
    _check_address(config.bind, "BIND")
    if config.metrics_bind:
        _check_address(config.metrics_bind, "METRICS_BIND")
    with contextlib.ExitStack() as stack:
        client, greeting = None, [f"Serving on {_shown(config.bind)}"]
        try:
            config = _set(config, mongodb_uri=enter_mongodb(stack, config))
        except NoMongod as error:
            if not demo:
                raise click.ClickException(str(error)) from None
            client, greeting = _memory(config, error, greeting)
        else:
            # What a worker cannot use is told here, in one line.
            with service_client(config) as probe:
                create_app(dataclasses.replace(config, metrics_bind=""), probe)
                # A store that does not answer yet is waited for by the requests.
                with contextlib.suppress(PyMongoError):
                    check_transactions(probe)
            if demo:
                with open_store(config) as store:
                    greeting += prepare_demo(store, config)
        if config.metrics_bind:
            stack.enter_context(_metrics_folder())
        # gunicorn reads WEB_CONCURRENCY by itself when it is imported, so that comes after our own check.
        from scripts.server.gunicorn_server import Server

        Server(greeting, client).run()


def _set(config: Config, **settings: str) -> Config:
    """Return the settings with some changed, for this process, and for the workers, who read the environment."""
    os.environ.update({name.upper(): value for name, value in settings.items()})
    return dataclasses.replace(config, **settings)  # type: ignore[arg-type]


@contextlib.contextmanager
def _metrics_folder() -> Iterator[None]:
    """Have an empty folder for the files in which the workers count, until this process ends."""
    owner, folder = os.getpid(), tempfile.mkdtemp(prefix="driver-analytics-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    try:
        yield
    finally:
        # A forked worker comes by here too when it ends.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def _memory(config: Config, error: NoMongod, greeting: list[str]) -> tuple[MongoClient[Document], list[str]]:
    # Only where no MongoDB is to be had is mongomock needed at all.
    from scripts.mongodb.memory_store import memory_client

    click.echo(f"Warning: {error} Until then all data lie in memory and are lost at the end.", err=True)
    client = memory_client()
    return client, greeting + prepare_demo(Store.of(client[config.mongodb_database]), config)


def _check_address(bind: str, setting: str) -> None:
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
            f"Cannot serve on {bind}: {error.strerror}. Stop what uses it, or set {setting} to another ADDRESS:PORT."
        ) from None


def _check_path(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise OSError(errno.EACCES, f"{path.parent} is no folder that can be written")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        probe.connect(str(path))
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _shown(bind: str) -> str:
    return bind if bind.startswith("unix:") else f"http://{bind}"
