"""The records of a load: what is valid is written, and what is not goes to the file of rejected records."""

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import click
from marshmallow import Schema, ValidationError

from app.store import Document, Store
from schemas.driver import ImportedDriver
from schemas.periods import MS_PER_HOUR, now_ms
from schemas.trip import ImportedTrip
from scripts.command_line.output import create_private, echo
from scripts.ingest.doubts import Doubts
from scripts.materialize.days import days_of
from scripts.materialize.sources import describe_errors
from scripts.materialize.write_sources import PreparedTrip, prepare_driver, prepare_trip, write_drivers, write_trips

# The longest JSON of a driver or trip.
MAX_RECORD_BYTES = 15_000_000
TOO_LONG = f"Longer than {MAX_RECORD_BYTES} bytes."
# A trip that has not ended cannot have been processed. The clock of another system may be ahead of that of this host.
MAX_FUTURE_MS = MS_PER_HOUR
# The file has only the beginning of a longer record, and of each record after it has reached this size.
MAX_WHOLE_BYTES, BEGINNING_CHARS = 100_000_000, 1_000
# Of the random part of a name.
NAME_BYTES = 4


class Record(NamedTuple):
    """A JSON value that should be a driver or a trip, its JSON text, and its number in the input, from 1."""

    number: int
    content: bytes
    value: Any


class Accepted(NamedTuple):
    """A valid record: its number and JSON text, the prepared document, and its number of events."""

    number: int
    content: bytes
    document: Any
    events: int = 0


class Rejected(NamedTuple):
    """A record that is not loaded: its number and JSON text, and the reason."""

    number: int
    content: bytes
    reason: str


class RecordType(NamedTuple):
    """Drivers or trips: the name, the schema, and the functions that prepare and write documents.

    `write` returns why documents are left out, by their index. `doubt` notes whether written documents, by their
    numbers in the input, are plausible.
    """

    name: str
    schema: Schema
    prepare: Callable[[str, Document], Any]
    write: Callable[[Store, str, Sequence[Any]], dict[int, str]]
    doubt: Callable[[Doubts, Store, str, Mapping[int, Any]], None]


def _prepare_ended_trip(fleet: str, trip: Document) -> PreparedTrip:
    """Return the documents of a trip (schema ImportedTrip). Raises ValidationError if it ends in the future."""
    if trip["trip_end_time"] > now_ms() + MAX_FUTURE_MS:
        raise ValidationError({"trip_end_time": ["Must not be more than an hour in the future."]})
    return prepare_trip(fleet, trip)


def _doubt_trips(doubts: Doubts, store: Store, fleet: str, trips: Mapping[int, PreparedTrip]) -> None:
    for number, trip in trips.items():
        doubts.check(trip.source, number)
    numbers = {trip.source["trip_id"]: number for number, trip in trips.items()}
    doubts.check_overlaps(store, fleet, numbers, days_of(trip.detail for trip in trips.values()))


DRIVERS = RecordType(
    name="drivers",
    schema=ImportedDriver(),
    prepare=prepare_driver,
    write=write_drivers,
    doubt=lambda *drivers: None,
)
TRIPS = RecordType(
    name="trips",
    schema=ImportedTrip(),
    prepare=_prepare_ended_trip,
    write=write_trips,
    doubt=_doubt_trips,
)


def check(record: Record, fleet: str, record_type: RecordType) -> Accepted | Rejected:
    """Return the document of a record, or why it is invalid."""
    number, content, value = record
    if not isinstance(value, dict):
        return Rejected(number, content, "Not a JSON object.")
    try:
        parsed = record_type.schema.load(value)
        document = record_type.prepare(fleet, parsed)
    except ValidationError as error:
        return Rejected(number, content, _find_other_type(value, record_type) or describe_errors(error))
    return Accepted(number, content, document, len(parsed.get("events", ())))


def _find_other_type(value: Document, record_type: RecordType) -> str:
    """Return a reason if what is invalid for its own type is valid for the other one, or else an empty text."""
    other = next(other for other in (DRIVERS, TRIPS) if other != record_type)
    with contextlib.suppress(ValidationError):
        other.schema.load(value)
        return f"Looks like one of the {other.name}. Give the file as --{other.name}."
    return ""


class Rejects:
    """The rejected records of an input: a file, which replaces that of an earlier load; without a path standard error.

    The file has each record as soon as it is rejected, and exists only if one is. It is a new one, with another name
    if another program has created one in between.
    """

    def __init__(self, path: Path | None) -> None:
        self.path, self.count, self._size = path, 0, 0
        # The number of the first rejected record, and its reason as JSON, because it may have a control character.
        self.first = ""
        self._out: IO[str] | None = None

    def __enter__(self) -> Self:
        if self.path:
            with self._explaining():
                self.path.unlink(missing_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        if self._out:
            with self._explaining():
                self._out.close()

    def add(self, number: int, content: bytes, reason: str) -> None:
        """Write a rejected record. Raises click.ClickException if the file cannot be written."""
        text = content.decode(errors="replace")
        is_whole = len(content) <= MAX_RECORD_BYTES and self._size <= MAX_WHOLE_BYTES
        row = json.dumps({"line": number, "reason": reason, "input": text if is_whole else text[:BEGINNING_CHARS]})
        self._size += len(row)
        self.first = self.first or f"line {number}, {json.dumps(reason)}"
        self.count += 1
        if self.path is None:
            echo(row, err=True)
            return
        with self._explaining():
            self._out = self._out or self._create(self.path)
            self._out.write(row + "\n")

    def _create(self, path: Path) -> IO[str]:
        try:
            return create_private(path, buffering=1)
        except FileExistsError:
            # Another user may have created it to read the records, or another command writes to it.
            self.path = path.with_suffix(f".{secrets.token_hex(NAME_BYTES)}{path.suffix}")
            return create_private(self.path, buffering=1)

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Raise click.ClickException for an error of the file, and remove what was written of it."""
        try:
            yield
        except OSError as error:
            self._discard()
            raise click.ClickException(
                f"{self.path} cannot be written: {error.strerror}. Choose another folder with --rejects."
            ) from None

    def _discard(self) -> None:
        if self._out and self.path:
            with contextlib.suppress(OSError):
                self.path.unlink()
            with contextlib.suppress(OSError):
                self._out.close()
            self._out = None

    def describe(self) -> str:
        """Return how many lines were rejected, where they are listed, and why the first one was."""
        location = f", listed in {self.path}. The first: {self.first}" if self.count and self.path else ""
        return f"{self.count} rejected{location}"
