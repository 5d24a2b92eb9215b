"""Reading the sources that are valid, and saying what is wrong with the others.

A source is invalid if it violates its schema, or if its `_id` is not its identity. It counts as absent.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from marshmallow import Schema, ValidationError, fields

from app.store import SOURCES, Document, DocumentCollection, Store
from schemas.identity import make_id, match_ids
from schemas.source import MAX_NAMED_ERRORS
from schemas.stored import IDENTIFIERS, StoredDriver, StoredDriverGroups, StoredTrip
from scripts.command_line.batches import batches, batches_by_size
from scripts.command_line.output import escape

SCHEMAS = {"drivers": StoredDriver(), "driver_groups": StoredDriverGroups(), "trips": StoredTrip()}
# Only the beginning and the end of a longer error are shown: the name of an unknown field may have megabytes.
MAX_ERROR_CHARS, ERROR_END_CHARS = 300, 100
# How many points of trails a transaction reads and writes. MongoDB aborts one that takes long, and a trip may have
# thousands of events. An event, which is also a document of its own, takes the time of ten points.
TRANSACTION_POINTS, POINTS_PER_EVENT = 500_000, 10
MISSING = str(fields.Field.default_error_messages["required"])
UNKNOWN = Schema().error_messages["unknown"]


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


def divide_trips(store: Store, fleet: str, trip_ids: Iterable[str], max_trips: int) -> Iterator[list[str]]:
    """Yield the trips in lists within the limits of a transaction: `max_trips` and TRANSACTION_POINTS.

    What counts are the points and events of the source, and the stored events. A trip that has more is a list of its
    own.
    """
    lengths = {
        name: {"$size": {"$cond": [{"$isArray": f"${name}"}, f"${name}", []]}} for name in ("trail_path", "events")
    }
    for part in batches(trip_ids, max_trips):
        points = Counter[str]()
        for trip in store.trips.aggregate([{"$match": match_ids(fleet, part)}, {"$project": lengths}]):
            points[trip["_id"]] = trip["trail_path"] + POINTS_PER_EVENT * trip["events"]
        of_trips = {"fleet": fleet, "trip_id": {"$in": part}}
        group = {"_id": "$trip_id", "count": {"$sum": 1}}
        for stored in store.trip_events.aggregate([{"$match": of_trips}, {"$group": group}]):
            points[make_id(fleet, stored["_id"])] += POINTS_PER_EVENT * stored["count"]
        sized = ((trip_id, points[make_id(fleet, trip_id)]) for trip_id in part)
        yield from batches_by_size(sized, max_trips, TRANSACTION_POINTS)


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


def describe_errors(error: ValidationError) -> str:
    """Return the first errors of a source, or of a line of an import, as one text, errors about missing fields last."""
    # marshmallow names unknown fields in the order of a set, which differs from process to process.
    errors = sorted(_flatten(error.messages, ""), key=lambda e: (e[1] == MISSING, e[0] if e[1] == UNKNOWN else ""))
    texts = [_shorten(f"{path}: {message}" if path else message) for path, message in errors[:MAX_NAMED_ERRORS]]
    more = ["and more."] if len(errors) > MAX_NAMED_ERRORS else []
    # An unknown field may have any name.
    return escape(" ".join(texts + more))


def _shorten(text: str) -> str:
    if len(text) <= MAX_ERROR_CHARS:
        return text
    return f"{text[: MAX_ERROR_CHARS - ERROR_END_CHARS]}...{text[-ERROR_END_CHARS:]}"


def _flatten(messages: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield marshmallow's messages with the path of their field, such as `trail_path[3].latitude`."""
    if isinstance(messages, dict):
        for name, inner in messages.items():
            step = f"[{name}]" if isinstance(name, int) else f".{name}" if path else name
            yield from _flatten(inner, path if name == "_schema" else path + step)
    else:
        for message in messages:
            yield path, message
