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
from flask import Flask
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from app import create_app
from app.config import Config
from app.database import check_transactions, service_client
from app.report_links import generate_secret
from app.store import Document, Store
from scripts.demo.greeting import prepare_demo
from scripts.mongodb.connection import enter_mongodb, open_store
from scripts.mongodb.embedded_mongod import NoMongod


@click.command()
@click.option("--demo", is_flag=True, help="Load a demonstration fleet into an empty store, and print requests to try.")
def serve(demo: bool) -> None:
    """Run the API server. Ctrl-C or SIGTERM stops it, after it has finished the requests in progress.

    Without MONGODB_URI, it starts an embedded MongoDB, and stops it at the end.
    """
    config = Config.from_environment()
    if not config.secret_key:
        config = _set_settings(config, secret_key=generate_secret())
    _check_address(config.bind, "BIND")
    if config.metrics_bind:
        _check_address(config.metrics_bind, "METRICS_BIND")
    with contextlib.ExitStack() as stack:
        client, greeting = None, [f"Serving on {_base_url(config.bind)}"]
        try:
            config = _set_settings(config, mongodb_uri=enter_mongodb(stack, config))
        except NoMongod as error:
            if not demo:
                raise click.ClickException(str(error)) from None
            client, greeting = _open_memory_store(config, error, greeting)
        else:
            # Find settings that a worker cannot use here, where an error is printed in one line.
            with service_client(config) as probe:
                _warn_of_outages(create_app(dataclasses.replace(config, metrics_bind=""), probe), probe)
            if demo:
                with open_store(config) as store:
                    greeting += prepare_demo(store, config)
        if config.metrics_bind:
            stack.enter_context(_metrics_folder())
        # gunicorn reads WEB_CONCURRENCY when it is imported, so import it after Config has checked the value.
        from scripts.server.gunicorn_server import Server

        Server(greeting, client).run()


def _warn_of_outages(app: Flask, client: MongoClient[Document]) -> None:
    """Log a warning for each of MongoDB and Redis that does not respond yet. Raises ConfigError."""
    # That is no error: the service starts, and serves requests once they respond.
    log = app.extensions["log"]
    try:
        check_transactions(client)
    except PyMongoError as error:
        log.warning("MongoDB does not respond: requests fail until it does", error=type(error).__name__)
    if not app.extensions["rate_limiter"].storage.check():
        log.warning("Redis does not respond: requests are not counted until it does")


def _set_settings(config: Config, **settings: str) -> Config:
    """Return changed settings for this process, and set them in the environment for the workers."""
    os.environ.update({name.upper(): value for name, value in settings.items()})
    return dataclasses.replace(config, **settings)  # type: ignore[arg-type]


@contextlib.contextmanager
def _metrics_folder() -> Iterator[None]:
    """Create a folder for the files of the workers' metrics, which is removed when this process ends."""
    owner, folder = os.getpid(), tempfile.mkdtemp(prefix="driver-analytics-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    try:
        yield
    finally:
        # A forked worker also runs this code when it ends; only the parent may remove the folder.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def _open_memory_store(config: Config, error: NoMongod, greeting: list[str]) -> tuple[MongoClient[Document], list[str]]:
    # Imported here, because mongomock is needed only without MongoDB.
    from scripts.mongodb.memory_store import memory_client

    click.echo(f"Warning: {error} Until then, all data is in memory and is lost when the server stops.", err=True)
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
        remedy = "Stop the program that uses it, or set" if error.errno == errno.EADDRINUSE else "Set"
        raise click.ClickException(
            f"Cannot serve on {bind}: {error.strerror}. {remedy} {setting} to another ADDRESS:PORT."
        ) from None


def _check_path(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise OSError(errno.EACCES, f"{path.parent} is not a folder that can be written")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        probe.connect(str(path))
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _base_url(bind: str) -> str:
    return bind if bind.startswith("unix:") else f"http://{bind}"
