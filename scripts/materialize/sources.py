"""Reading the sources that are valid, and naming the others.

A source is invalid if it violates its schema, or if its `_id` is not its identity. It counts as absent.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from marshmallow import ValidationError

from app.store import SOURCES, Document, DocumentCollection, Store
from schemas.identity import make_id, match_ids
from schemas.stored import IDENTIFIERS, StoredDriver, StoredDriverGroups, StoredTrip
from scripts.command_line.output import escape
from scripts.command_line.reasons import describe_errors

SCHEMAS = {"drivers": StoredDriver(), "driver_groups": StoredDriverGroups(), "trips": StoredTrip()}


class InvalidSource(NamedTuple):
    """A source that is left out: its collection, its `_id`, and why."""

    collection: str
    id: Any
    reason: str

    @classmethod
    def unidentified(cls, collection: str, _id: Any) -> Self:
        """Return one whose `_id` belongs to no fleet."""
        return cls(collection, _id, f"_id: Must be the fleet, a slash, and the {IDENTIFIERS[collection]}.")

    @property
    def printable_id(self) -> str:
        """The `_id` as text on one line."""
        return escape(str(self.id))

    def __str__(self) -> str:
        return f"{self.collection} {self.printable_id} is invalid and left out: {self.reason}"


def read_sources(
    collection: DocumentCollection, fleet: str, identifiers: Iterable[str], invalid: list[InvalidSource]
) -> Iterator[Document]:
    """Yield the valid ones of these sources, without `_id`. Adds the others that exist to `invalid`."""
    return parse_sources(collection.name, collection.find(match_ids(fleet, identifiers)), invalid)


def parse_sources(
    collection: str, documents: Iterable[Mapping[str, Any]], invalid: list[InvalidSource]
) -> Iterator[Document]:
    """Yield the valid ones of the documents of a collection, without `_id`. Adds the others to `invalid`."""
    for document in documents:
        try:
            yield parse_source(collection, document)
        except ValidationError as error:
            invalid.append(InvalidSource(collection, document["_id"], describe_errors(error)))


def find_invalid_drivers(store: Store, fleet: str, driver_ids: Iterable[str]) -> list[InvalidSource]:
    """Return the invalid ones of the sources of drivers, and of their groups."""
    ids, invalid = list(driver_ids), list[InvalidSource]()
    for collection in (store.drivers, store.driver_groups):
        for _ in read_sources(collection, fleet, ids, invalid):
            pass
    return invalid


def parse_source(collection: str, source: Mapping[str, Any]) -> Document:
    """Return a source of a collection without its `_id`, its fields in the order of the schema.

    A field that is null by default may be absent. Raises ValidationError.
    """
    parsed: Document = SCHEMAS[collection].load({name: source[name] for name in source if name != "_id"})
    name = IDENTIFIERS[collection]
    if source["_id"] != (expected := make_id(parsed["fleet"], parsed[name])):
        raise ValidationError({"_id": [f"Must be {expected!r}: the fleet, a slash, and the {name}."]})
    return parsed


def find_unidentified(store: Store, fleet: str | None = None) -> Iterator[InvalidSource]:
    """Yield the sources whose `_id` belongs to no fleet, or those of a fleet whose `_id` does not belong to it.

    Scans the collections. MongoDB's regular expressions match only text in UTF-8.
    """
    match: Document = {"_id": {"$not": {"$regex": "^[^/]+/"}}}
    if fleet is not None:
        match = {"fleet": fleet, "_id": {"$not": {"$regex": f"^{re.escape(fleet)}/"}}}
    for name in SOURCES:
        for source in store.db[name].find(match, {"_id": 1}):
            yield InvalidSource.unidentified(name, source["_id"])
