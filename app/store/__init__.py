"""The reads of the service, one module a resource.

Functions take the store and the scope first, or the fleet if they are about a whole fleet, and raise PyMongoError.
Nothing here handles HTTP, and nothing here writes: `scripts.materialize` writes the read models.
"""

import dataclasses
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self

from pymongo.client_session import ClientSession
from pymongo.collection import Collection
from pymongo.database import Database

Document = dict[str, Any]
DocumentCollection = Collection[Document]

# MongoDB's limit on a document.
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
# The fields that identify a document in an error message. Each collection has some of them.
IDENTIFYING_FIELDS = ("fleet", "driver_id", "trip_id", "period", "start_date", "offset", "key_id", "report_date")


class UnknownRecord(LookupError):
    """A request names drivers or a group that its scope does not have. The message names them."""


class InvalidDocument(Exception):
    """A stored document violates its schema. The message has the document's identifiers and the reason, if given."""

    def __init__(self, collection: DocumentCollection, document: Document, reason: str = "") -> None:
        identifiers = {name: value for name, value in document.items() if name in ("_id", *IDENTIFYING_FIELDS)}
        super().__init__(f"{collection.name} {identifiers}{reason and f': {reason}'}")


class OtherFormat(Exception):
    """The read models of a fleet have another format than this version reads. The message says what to do."""


class StoreLags(Exception):
    """What was read before is not there: a member of the replica set has not received it yet, or it was changed."""


class Result(NamedTuple):
    """The result of a read: the content of the response, and its version.

    For a page it has the number of all pages, or for one of a list by cursor the cursor of the next page, if any.

    The version changes whenever a document changes that is a part of the content.
    """

    version: str
    content: Document
    page_count: int = 1
    next_cursor: str | None = None


@dataclasses.dataclass(frozen=True)
class Store:
    """The collections of a database. docs/architecture.md describes their documents and which command writes them."""

    db: Database[Document]
    # Source collections: what was imported.
    drivers: DocumentCollection
    driver_groups: DocumentCollection
    trips: DocumentCollection
    # What all transactions of a fleet share.
    fleets: DocumentCollection
    # Read models: what the API serves.
    fleet_drivers: DocumentCollection
    driver_periods: DocumentCollection
    fleet_periods: DocumentCollection
    trip_details: DocumentCollection
    trip_events: DocumentCollection
    trip_changes: DocumentCollection
    # Written by commands for the service.
    keys: DocumentCollection
    reports: DocumentCollection
    # Written by `follow` and `mirror` for themselves.
    resume_tokens: DocumentCollection

    @classmethod
    def of(cls, db: Database[Document]) -> Self:
        """Return the store of a database."""
        return cls(db, *(db[name] for name in COLLECTIONS))

    def snapshot(self) -> AbstractContextManager[ClientSession]:
        """Return a context in which all reads see the same committed state.

        PyMongo passes its session to every operation, so nothing can be written in it.
        """
        return self.db.client.start_session(snapshot=True).bind()


COLLECTIONS = tuple(field.name for field in dataclasses.fields(Store) if field.name != "db")
SOURCES = ("drivers", "driver_groups", "trips")
READ_MODELS = ("fleet_drivers", "driver_periods", "fleet_periods", "trip_details", "trip_events", "trip_changes")
