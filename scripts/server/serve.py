"""`driver-analytics serve`: the service under gunicorn."""

import contextlib
import dataclasses
import os
import shlex
import sys

import click
from pymongo import MongoClient

from app.config import Config
from app.report_links import generate_secret
from app.store import Document, Store
from scripts.command_line.addresses import get_local_url
from scripts.command_line.output import echo
from scripts.demo.greeting import prepare_demo
from scripts.mongodb.connection import enter_mongodb, open_store
from scripts.mongodb.embedded_mongod import NoMongod
from scripts.server.checks import check_addresses, check_application


@click.command()
@click.option("--demo", is_flag=True, help="Load a demonstration fleet into an empty store, and print requests to try.")
def serve(demo: bool) -> None:
    """Run the API server. Ctrl-C or SIGTERM stops it, after it has finished the requests in progress.

    Without MONGODB_URI, it starts an embedded MongoDB, and stops it at the end.
    """
    config = Config.from_environment()
    if not config.secret_key:
        config = _set_settings(config, secret_key=generate_secret())
    greeting = list[str]()
    if demo and "LOG_LEVEL" not in os.environ and sys.stderr.isatty():
        # The lines of a page of the explorer alone would move the greeting out of sight.
        config, greeting = _set_settings(config, log_level="WARNING"), ["LOG_LEVEL=INFO logs each request."]
    check_addresses({"BIND": config.bind, "METRICS_BIND": config.metrics_bind})
    address = config.bind if config.bind.startswith("unix:") else get_local_url(config.bind)
    with contextlib.ExitStack() as stack:
        try:
            client, lines = None, _prepare_mongodb(config, enter_mongodb(stack, config), demo)
        except NoMongod as error:
            if not demo:
                raise
            client, lines = _open_memory_store(config, error)
        # gunicorn reads WEB_CONCURRENCY when it is imported, so import it after Config has checked the value.
        from scripts.server.gunicorn_server import Server

        Server([f"Serving on {address}", *greeting, *lines], client).run()


def _set_settings(config: Config, **settings: str) -> Config:
    """Return changed settings for this process, and set them in the environment for the workers."""
    os.environ.update({name.upper(): value for name, value in settings.items()})
    return dataclasses.replace(config, **settings)  # type: ignore[arg-type]


def _prepare_mongodb(config: Config, uri: str, demo: bool) -> list[str]:
    """Check that a worker can serve what is stored at an address, set MONGODB_URI, and return lines to print."""
    is_embedded, config = not config.mongodb_uri, _set_settings(config, mongodb_uri=uri)
    check_application(config)
    lines = list[str]()
    if demo:
        with open_store(config) as store:
            lines += prepare_demo(store, config)
    # Another URI may contain a password.
    if is_embedded:
        lines.append(f"The embedded MongoDB: export MONGODB_URI={shlex.quote(uri)}")
    return lines


def _open_memory_store(config: Config, error: NoMongod) -> tuple[MongoClient[Document], list[str]]:
    """Return a client of a store in memory with the demonstration fleet, and lines to print."""
    # Imported here, because only some installations have mongomock, and need it only without MongoDB.
    try:
        from scripts.mongodb.memory_store import memory_client
    except ModuleNotFoundError:
        raise error from None

    echo(f"Warning: {error} Until then, all data is in memory and is lost when the server stops.", err=True)
    client = memory_client()
    return client, prepare_demo(Store.of(client[config.mongodb_database]), config)
