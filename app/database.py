"""The connection to MongoDB."""

import contextlib
from collections.abc import Sequence
from typing import Any

import pymongo
from flask import current_app
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError
from pymongo.monitoring import CommandListener

from app.circuit_breaker import CircuitBreaker
from app.config import Config, ConfigError
from app.store import Document, Store

# Of all that a request asks of the store, and of each operation while an answer is streamed. It ends within 2 seconds:
# with no server to select, pymongo takes up to half a second more.
TIMEOUT_SECONDS = 1.2
# Of the request that probes whether the store responds again. It may have waited for a thread before, for as long as
# others took to give up.
PROBE_TIMEOUT_SECONDS = 0.4


def connect(uri: str, **options: Any) -> MongoClient[Document]:
    """Return a client, which connects when it is first used. Raises ConfigError for a URI that cannot be used."""
    try:
        return MongoClient(uri, appname="driver-analytics", **options)
    except (pymongo.errors.PyMongoError, ValueError):
        # Why, pymongo tells with a part of the URI, which may be one of the password.
        raise ConfigError(
            "MONGODB_URI cannot be used: it takes mongodb://HOST:PORT, with user and password percent-encoded if any."
        ) from None


def service_client(config: Config, listeners: Sequence[CommandListener] = ()) -> MongoClient[Document]:
    """Return the client of a worker of the service; `listeners` are told of its commands.

    Every operation is bounded by TIMEOUT_SECONDS, and reads what no failover undoes.
    """
    return connect(
        config.mongodb_uri,
        timeoutMS=int(TIMEOUT_SECONDS * 1000),
        readConcernLevel="majority",
        readPreference=config.read_preference,
        event_listeners=listeners,
    )


def is_outage(error: BaseException) -> bool:
    """Return whether an error means that the store does not respond; the report of a slow operation is a response."""
    return isinstance(error, PyMongoError) and error.timeout and not isinstance(error, OperationFailure)


def probe() -> contextlib.AbstractContextManager[Any]:
    """Return the shorter timeout of a request that probes whether the store responds again."""
    return pymongo.timeout(PROBE_TIMEOUT_SECONDS)


def guard_store() -> contextlib.AbstractContextManager[None]:
    """Return the running app's circuit breaker for one use of the store. Entering it raises CircuitOpen."""
    breaker: CircuitBreaker = current_app.extensions["store_breaker"]
    return breaker.guard()


def get_store() -> Store:
    """Return the store of the running app."""
    store: Store = current_app.extensions["store"]
    return store


def check_transactions(client: MongoClient[Document]) -> None:
    """Raise ConfigError unless the server is a member of a replica set, or a router of a sharded cluster."""
    hello = client.admin.command("hello")
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        raise ConfigError(
            "MongoDB runs as a standalone server, which has no transactions. Start mongod with --replSet NAME and run "
            "rs.initiate() once: a replica set of one member is enough."
        )


def ping() -> None:
    """Ask the store for a sign of life, of a member that is read. Raises pymongo's errors."""
    db = get_store().db
    try:
        db.command("ping", read_preference=db.read_preference)
    except AutoReconnect as error:
        # pymongo asks again by itself where it reads, but not where it is given a command.
        if error.timeout:
            raise
        db.command("ping", read_preference=db.read_preference)
