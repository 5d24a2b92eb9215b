"""The data layer: every read of the service. Functions take the store and the fleet first, and raise pymongo's errors.

Nothing here knows HTTP, and nothing here writes: read models are written by `scripts.materialize`.
"""

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self, TypeVar

from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.database import Database

Document = dict[str, Any]
Documents = Collection[Document]
T = TypeVar("T")

# The fields that identify a document; each collection has some of them.
IDENTIFIERS = dict.fromkeys(
    ("fleet", "driver_id", "trip_id", "period", "start_date", "position", "key_id", "report_date"), 1
)


class UnknownDrivers(LookupError):
    """Drivers who are not in the fleet: `driver_ids`."""

    def __init__(self, driver_ids: list[str]) -> None:
        super().__init__(driver_ids)
        self.driver_ids = driver_ids


class InvalidDocument(Exception):
    """A stored document that violates its schema; the message names it."""

    def __init__(self, collection: Documents, match: Document) -> None:
        super().__init__(f"{collection.name} {collection.find_one(match, IDENTIFIERS)}")


class Result(NamedTuple):
    """What a read found: a version, which changes with anything that the content is made of, and the content."""

    version: str
    content: Document


@dataclasses.dataclass(frozen=True)
class Store:
    """The collections of a database. docs/architecture.md says what a document of each holds, and who writes it."""

    db: Database[Document]
    # Sources: what was imported.
    drivers: Documents
    trips: Documents
    # Read models: what the API reads.
    fleet_drivers: Documents
    driver_periods: Documents
    trip_details: Documents
    # What commands write for the service.
    keys: Documents
    reports: Documents

    @classmethod
    def of(cls, db: Database[Document]) -> Self:
        """Return the store in a database."""
        return cls(db, *(db[name] for name in COLLECTIONS))

    def snapshot(self) -> AbstractContextManager[ClientSession]:
        """Return a session whose reads all show the same committed state."""
        return self.db.client.start_session(snapshot=True)

    def transaction(self, write: Callable[[ClientSession], T]) -> T:
        """Run `write` in a transaction, again if it meets another one, and return what it returns."""
        with self.db.client.start_session() as session:
            return session.with_transaction(write)


COLLECTIONS = tuple(field.name for field in dataclasses.fields(Store) if field.name != "db")
SOURCES = ("drivers", "trips")
READ_MODELS = ("fleet_drivers", "driver_periods", "trip_details")
