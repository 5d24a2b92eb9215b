"""Checks before the service accepts requests.

An invalid setting ends the program with one line. An outage of MongoDB or Redis is logged.
"""

import contextlib
import dataclasses
import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from pymongo.errors import PyMongoError

from app import create_app
from app.config import Config, find_warnings
from app.database import get_refusal, service_client
from app.report_links import generate_secret
from app.services import Services, get_services
from app.store.fleets import check_format
from scripts.command_line.addresses import explaining, listen
from scripts.mongodb.connection import check_transactions


def check_application(config: Config) -> None:
    """Raise ConfigError unless a worker can create the application, and OtherFormat unless it can serve what is stored.

    Logs settings that are likely to be mistakes.
    """
    # A worker without a secret key logs that itself.
    config = dataclasses.replace(config, metrics_bind="", secret_key=config.secret_key or generate_secret())
    with service_client(config) as client:
        services = get_services(create_app(config, client))
        for warning in find_warnings(os.environ):
            services.log.warning(warning)
        # An outage is no error, and each worker logs it.
        with contextlib.suppress(PyMongoError):
            check_transactions(client)
            check_format(services.store)


def open_connections(services: Services) -> None:
    """Send a request to each of MongoDB and Redis, so that the first requests of clients find open connections.

    Logs each that does not respond within about a second, or refuses the user. The service starts all the same, and
    serves requests once they respond.
    """
    # Outside the circuit breaker: after a slow start, the first requests still have their whole time. Unlike a ping,
    # which any user may send, this fails if the user lacks its role.
    try:
        services.store.keys.find_one({}, {"_id": 1})
    except PyMongoError as error:
        event = get_refusal(error) or "MongoDB does not respond: requests fail until it does"
        services.log.warning(event, error=type(error).__name__)
    if not services.limiter.storage.check():
        services.log.warning("Redis does not respond: requests are not counted until it does")


def check_addresses(addresses: Mapping[str, str]) -> None:
    """Raise click.ClickException unless the addresses are free and do not overlap.

    `addresses` has them by setting. An empty one is left out. gunicorn would share a port that is in use, because its
    sockets have SO_REUSEPORT.
    """
    with contextlib.ExitStack() as probes:
        for setting, bind in addresses.items():
            if bind.startswith("unix:"):
                with explaining(setting, bind):
                    _check_path(Path(bind.removeprefix("unix:")))
            elif bind:
                probes.enter_context(listen(setting, bind))


def _check_path(path: Path) -> None:
    if path.exists() and not path.is_socket():
        raise OSError(errno.ENOTSOCK, f"{path} is not a socket")
    if not os.access(path.parent, os.W_OK):
        raise OSError(errno.EACCES, f"{path.parent} is not a folder that can be written")
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        probe.connect(str(path))
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
