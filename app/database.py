"""The connection to MongoDB."""

import contextlib
import contextvars
import sys
import time
from collections.abc import Sequence
from typing import Any

import pymongo
from pymongo import MongoClient
from pymongo.errors import (
    AutoReconnect,
    ConnectionFailure,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.monitoring import CommandListener

from app.config import Config, ConfigError
from app.store import Document, Store

# The limit for all operations of a request together, and for each operation while a response is streamed. A health
# check has to end within 2 seconds, and PyMongo takes up to half a second longer when it finds no server.
TIMEOUT_SECONDS = 1.1
# The limit for a request that probes whether the database responds again, and for a ping after a timeout. It is shorter
# because a health check may wait for the timeout and the ping of another request, and then for its own two.
PROBE_TIMEOUT_SECONDS = 0.25
# The limit for a ping after a timeout while the interpreter is busy: then a ping takes longer than the database.
BUSY_PING_SECONDS = 0.6
# How MongoDB refuses a user, by its error code.
AUTHENTICATION_FAILED, UNAUTHORIZED = 18, 13
REFUSALS = {
    AUTHENTICATION_FAILED: "MongoDB refused the user in MONGODB_URI: authentication failed",
    UNAUTHORIZED: "MongoDB refused the user in MONGODB_URI: not authorized for this in MONGODB_DATABASE",
}
NO_USER = "MongoDB requires a user, and MONGODB_URI has none"


def connect(uri: str, **options: Any) -> MongoClient[Document]:
    """Return a client, which connects when it is first used. Raises ConfigError for an invalid URI."""
    try:
        return MongoClient(uri, appname="driver-analytics", **options)
    except (pymongo.errors.PyMongoError, ValueError):
        # PyMongo's message quotes a part of the URI, which may be a part of the password.
        raise ConfigError(
            "MONGODB_URI cannot be used: it takes mongodb://HOST:PORT, with user and password percent-encoded, if any."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"MONGODB_URI cannot be used: a file that it names, such as tlsCAFile, cannot be read: {error.strerror}."
        ) from None


def service_client(config: Config, listeners: Sequence[CommandListener] = ()) -> MongoClient[Document]:
    """Return the client of a worker of the service. `listeners` receive its commands.

    TIMEOUT_SECONDS limits every operation. Reads return only data that a failover cannot roll back. Raises ConfigError
    if MONGODB_URI is empty or invalid.
    """
    if not config.mongodb_uri:
        raise ConfigError(
            "MONGODB_URI is not set. Set it, or run 'driver-analytics serve', which starts an embedded MongoDB."
        )
    return connect(
        config.mongodb_uri,
        timeoutMS=int(TIMEOUT_SECONDS * 1000),
        readConcernLevel="majority",
        readPreference=config.read_preference,
        event_listeners=listeners,
    )


def is_outage(error: BaseException, store: Store) -> bool:
    """Return whether an error means that the database does not respond.

    After a timeout a ping decides: a slow query of one client must not open the circuit for all. Nor must a thread that
    computes, such as one that converts long trips: while others wait for it, the ping has more time. After a broken
    connection PyMongo tries again. If it then finds no server, it raises the first error, AutoReconnect. The report
    that an operation exceeded its time limit is a response.
    """
    if isinstance(error, NetworkTimeout):
        # In a context of its own, because the deadline of the request has passed.
        return not contextvars.Context().run(_responds, store)
    return isinstance(error, ConnectionFailure)


def _responds(store: Store) -> bool:
    try:
        with pymongo.timeout(BUSY_PING_SECONDS if _is_interpreter_busy() else PROBE_TIMEOUT_SECONDS):
            ping(store)
    except PyMongoError:
        return False
    return True


def _is_interpreter_busy() -> bool:
    """Return whether a thread that wakes up has to wait, on average, until another one must let it run."""
    started, sleeps = time.monotonic(), 3
    for _ in range(sleeps):
        time.sleep(0.001)
    return time.monotonic() - started > sleeps * sys.getswitchinterval()


def get_refusal(error: BaseException) -> str | None:
    """Return how MongoDB refused the user, without data or secrets, or None for another error.

    PyMongo takes a server that has refused a password for unavailable. Its own error then quotes the refusal.
    """
    if isinstance(error, ServerSelectionTimeoutError) and "AuthenticationFailed" in str(error):
        return REFUSALS[AUTHENTICATION_FAILED]
    if not isinstance(error, OperationFailure):
        return None
    # The same code as that of a user who lacks a role.
    return NO_USER if "requires authentication" in str(error) else REFUSALS.get(error.code or 0)


def probe() -> contextlib.AbstractContextManager[Any]:
    """Return a context manager with the timeout of a request that probes whether the database responds again."""
    return pymongo.timeout(PROBE_TIMEOUT_SECONDS)


def ping(store: Store) -> None:
    """Ping a member of the replica set that serves reads. Raises PyMongoError."""
    db = store.db
    try:
        db.command("ping", read_preference=db.read_preference)
    except AutoReconnect as error:
        # PyMongo retries reads once after a lost connection, but not commands.
        if error.timeout:
            raise
        db.command("ping", read_preference=db.read_preference)
