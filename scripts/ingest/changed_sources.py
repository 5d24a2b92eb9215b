"""From the changes of sources to transactions: which fleet each document belongs to, and what cannot be applied."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from bson.codec_options import CodecOptions
from bson.errors import BSONError
from pymongo.client_session import ClientSession
from pymongo.errors import BulkWriteError, OperationFailure, WriteError

from app.store import Document, DocumentCollection, Store
from scripts.ingest.change_stream import make_hashable
from scripts.materialize.sources import NO_IDENTIFIERS, Identifiers, apply_sources

if TYPE_CHECKING:
    from scripts.ingest.follow_metrics import FollowMetrics

# A transaction ends at whichever limit comes first, as a batch of an import does.
TRANSACTION_IDENTIFIERS = 2_000
TRANSACTION_BYTES = 16_000_000
# The errors that a document may cause.
DOCUMENT_ERRORS = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError,
    BSONError, OperationFailure, click.ClickException,
)  # fmt: skip
BSON_TOO_LARGE = 10334
# An identifier that is not UTF-8 is that of an invalid document, and must not fail the look-up of all others.
LENIENT: CodecOptions[Document] = CodecOptions(unicode_decode_error_handler="replace")
IDENTIFIER_FIELDS = {"drivers": "driver_id", "trips": "trip_id"}
INVALID = "violates the validator of its collection"
LogLeftOut = Callable[[str, str, str, str], None]


class _ChangedDocument(NamedTuple):
    """A document with a changed `_id`: its fleet, its identifier, and its size if it is a source."""

    source_id: Any
    fleet: Any
    identifier: Any
    size: int


class Group(NamedTuple):
    """Identifiers of a fleet for a transaction, which deletes their read models if it is `without_sources`."""

    fleet: str
    identifiers: Identifiers
    without_sources: bool


class Applier:
    """Applies identifiers of a fleet, and leaves out and logs what cannot be applied."""

    def __init__(self, store: Store, metrics: "FollowMetrics", log: Any) -> None:
        self._store, self._metrics, self._log = store, metrics, log

    def log_left_out(self, collection: str, fleet: str, identifier: str, reason: str) -> None:
        """Log and count a document that is left out."""
        self._metrics.invalid.inc()
        names = {"fleet": fleet, IDENTIFIER_FIELDS[collection]: identifier}
        self._log.error("document left out", collection=collection, **names, reason=reason)

    def apply(
        self,
        fleet: str,
        identifiers: Identifiers,
        *,
        compare_all_fields: bool = False,
        without_sources: bool = False,
        before_commit: Callable[[ClientSession], None] | None = None,
    ) -> int:
        """Apply identifiers in a transaction, and return how many had read models that differed.

        `without_sources` deletes their read models, as if there were no source documents. If that fails because of a
        document, the identifiers are divided until the document is found, which is left out. `before_commit` is called
        in the last transaction, if that writes anything.
        """
        try:
            left_out = identifiers if without_sources else NO_IDENTIFIERS
            applied = apply_sources(
                self._store,
                fleet,
                identifiers,
                left_out=left_out,
                compare_all_fields=compare_all_fields,
                before_commit=before_commit,
            )
        except DOCUMENT_ERRORS as error:
            if not _is_of_document(error):
                raise
            if len(list(identifiers)) == 1:
                return self._leave_out(fleet, identifiers, error)
            first, second = _halves(identifiers)
            apply = partial(self.apply, fleet, compare_all_fields=compare_all_fields, without_sources=without_sources)
            return apply(first) + apply(second, before_commit=before_commit)
        for collection, identifier in applied.invalid:
            self.log_left_out(collection, fleet, identifier, INVALID)
        return applied.changed

    def _leave_out(self, fleet: str, identifiers: Identifiers, error: Exception) -> int:
        for collection, identifier in identifiers:
            self.log_left_out(collection, fleet, identifier, _shorten(error))
        try:
            return apply_sources(self._store, fleet, identifiers, left_out=identifiers).changed
        except DOCUMENT_ERRORS as another:
            if not _is_of_document(another):
                raise
            self._log.error("cannot be applied", fleet=fleet, reason=_shorten(another))
            return 0


def find_groups(store: Store, ids: dict[str, list[Any]], log_left_out: LogLeftOut) -> list[Group]:
    """Return the identifiers of the documents with these `_id`, by fleet, each group for a transaction.

    A changed document has two identifiers: that of its read model, which may be of another driver, trip or fleet, and
    that of its source. The read models of trips that have left their fleet are deleted first, because those in the
    other fleet have the same `_id`.
    """
    trips = list(_find_sources(store.trips, ids["trips"]))
    drivers = list(_find_sources(store.drivers, ids["drivers"]))
    details = list(_find(store.trip_details, "_id", "trip_id", ids["trips"]))
    profiles = list(_find(store.driver_periods, "source_id", "driver_id", ids["drivers"]))
    fleets = {make_hashable(trip.source_id): trip.fleet for trip in trips}
    left = [detail for detail in details if fleets.get(make_hashable(detail.source_id), detail.fleet) != detail.fleet]
    documents = {
        "trips": [*_usable("trips", trips, log_left_out), *details],
        "drivers": [*_usable("drivers", drivers, log_left_out), *profiles],
    }
    return [
        *(Group(*part, without_sources=True) for part in _divide({"trips": left, "drivers": []})),
        *(Group(*part, without_sources=False) for part in _divide(documents)),
    ]


def _find_sources(collection: DocumentCollection, ids: list[Any]) -> Iterator[_ChangedDocument]:
    name = IDENTIFIER_FIELDS[collection.name]
    fields = {"fleet": 1, name: 1, "size": {"$bsonSize": "$$ROOT"}}
    pipeline: list[Document] = [{"$match": {"_id": {"$in": ids}}}, {"$project": fields}]
    if ids:
        for source in collection.with_options(LENIENT).aggregate(pipeline):
            yield _ChangedDocument(source["_id"], source.get("fleet"), source.get(name), source["size"])


def _find(collection: DocumentCollection, id_name: str, name: str, ids: list[Any]) -> Iterator[_ChangedDocument]:
    """Yield the read models of the sources with these `_id`. Index: driver_periods (source_id)."""
    if ids:
        # An _id may be null, and most documents have no source_id.
        match = {id_name: {"$in": ids, "$exists": True}}
        for document in collection.find(match, {"fleet": 1, name: 1, id_name: 1}):
            yield _ChangedDocument(document[id_name], document["fleet"], document[name], 0)


def _usable(
    collection: str, sources: Iterable[_ChangedDocument], log_left_out: LogLeftOut
) -> Iterator[_ChangedDocument]:
    for source in sources:
        if isinstance(source.fleet, str) and isinstance(source.identifier, str):
            yield source
        else:
            log_left_out(collection, str(source.fleet), str(source.identifier), "has no fleet or identifier")


def _divide(documents_by_collection: dict[str, list[_ChangedDocument]]) -> Iterator[tuple[str, Identifiers]]:
    """Yield the identifiers of documents by fleet, and within the limits of a transaction."""
    by_fleet: defaultdict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for collection, documents in documents_by_collection.items():
        for document in documents:
            sizes, pair = by_fleet[document.fleet], (collection, document.identifier)
            sizes[pair] = max(sizes.get(pair, 0), document.size)
    for fleet, sizes in by_fleet.items():
        part, total = list[tuple[str, str]](), 0
        for pair, size in sizes.items():
            if part and (len(part) >= TRANSACTION_IDENTIFIERS or total + size > TRANSACTION_BYTES):
                yield fleet, Identifiers.of(part)
                part, total = [], 0
            part.append(pair)
            total += size
        yield fleet, Identifiers.of(part)


def _halves(identifiers: Identifiers) -> tuple[Identifiers, Identifiers]:
    pairs = list(identifiers)
    return Identifiers.of(pairs[: len(pairs) // 2]), Identifiers.of(pairs[len(pairs) // 2 :])


def _is_of_document(error: Exception) -> bool:
    """Return whether it is a document that causes one of DOCUMENT_ERRORS, and not the state of MongoDB."""
    if not isinstance(error, OperationFailure):
        return True
    if error.has_error_label("TransientTransactionError"):
        return False
    return isinstance(error, WriteError | BulkWriteError) or error.code == BSON_TOO_LARGE


def _shorten(error: Exception) -> str:
    """Return what kind of error it is, without the document that a message may quote."""
    return error.format_message() if isinstance(error, click.ClickException) else type(error).__name__
