"""The connection to MongoDB."""

from typing import Any

import pymongo
from flask import current_app
from pymongo import MongoClient
from pymongo.database import Database

from app.config import ConfigError
from app.store import Document
from app.store.indexes import VALIDATORS

# The first operation of a request that runs out of time ends it, within 2 seconds: with no server to select, pymongo
# takes up to half a second more.
OPERATION_TIMEOUT_MS = 1400
HEALTH_TIMEOUT_SECONDS = 1.0


def connect(uri: str, setting: str = "MONGODB_URI", **options: Any) -> MongoClient[Document]:
    """Return a client, which connects when it is first used. Raises ConfigError, naming the setting of a bad URI."""
    try:
        return MongoClient(uri, appname="driver-analytics", **options)
    except (pymongo.errors.PyMongoError, ValueError):
        # Why, pymongo tells with a part of the URI, which may be one of the password.
        raise ConfigError(
            f"{setting} cannot be used: it takes mongodb://HOST:PORT, with user and password percent-encoded if any."
        ) from None


def bounded_client(uri: str, setting: str = "MONGODB_URI", **options: Any) -> MongoClient[Document]:
    """Return the client of a worker of the service: every operation is bounded."""
    return connect(uri, setting, timeoutMS=OPERATION_TIMEOUT_MS, **options)


def with_collections(db: Database[Document]) -> Database[Document]:
    """Return the database, which holds on to its collections: as attributes they are otherwise made anew each time."""
    for name in VALIDATORS:
        setattr(db, name, db[name])
    return db


def get_db() -> Database[Document]:
    """Return the database of the running app."""
    db: Database[Document] = current_app.extensions["db"]
    return db


def ping() -> None:
    """Ask the store for a sign of life. Raises pymongo's errors, within a second or so."""
    with pymongo.timeout(HEALTH_TIMEOUT_SECONDS):
        get_db().command("ping")
