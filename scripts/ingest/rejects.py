"""What a load rejects: the check of a record, and the file that lists the rejected ones."""

import contextlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import click
from marshmallow import Schema, ValidationError

from app.store import Document, Store
from scripts.command_line.output import echo
from scripts.command_line.private_files import open_private
from scripts.command_line.reasons import describe_errors
from scripts.materialize.doubts import Doubts

# The longest JSON of a driver or trip.
MAX_RECORD_BYTES = 15_000_000
TOO_LONG = f"Longer than {MAX_RECORD_BYTES} bytes."
# The file has only the beginning of a longer record, and of each record after it has reached this size.
MAX_WHOLE_BYTES, BEGINNING_CHARS = 100_000_000, 1_000
# A driver, and a UTC day as a number: only the transaction knows the date, because it reads the fleet's time zone.
UtcDay = tuple[str, int]


class Record(NamedTuple):
    """A JSON value that should be a driver or a trip, its JSON text, and its number in the input, from 1."""

    number: int
    content: bytes
    value: Any


class Accepted(NamedTuple):
    """A valid record with its number and JSON text, what is written, the `get_utc_day` of that, and its events."""

    number: int
    content: bytes
    document: Any
    utc_day: UtcDay | None
    events: int = 0


class Rejected(NamedTuple):
    """A record that is not loaded: its number and JSON text, and the reason.

    `hint` is a sentence on what may be wrong with the whole input, or empty.
    """

    number: int
    content: bytes
    reason: str
    hint: str = ""


class RecordType(NamedTuple):
    """Drivers or trips: the option of `import`, the schema, and the functions that prepare and write documents.

    `write` returns why documents are left out, by their index. `get_utc_day` returns the driver and the UTC day of a
    prepared document, if any; it approximates the fleet's date and only limits batches. `doubt` notes whether written
    documents, by their numbers in the input, are plausible.
    """

    option: str
    schema: Schema
    prepare: Callable[[str, Document], Any]
    write: Callable[[Store, str, Sequence[Any]], dict[int, str]]
    get_utc_day: Callable[[Any], UtcDay | None]
    doubt: Callable[[Doubts, Store, str, Mapping[int, Any]], None]


def check(record: Record, fleet: str, record_type: RecordType) -> Accepted | Rejected:
    """Return the document of a record, or why it is invalid."""
    number, content, value = record
    if not isinstance(value, dict):
        return Rejected(number, content, "Not a JSON object.")
    try:
        parsed = record_type.schema.load(value)
        document = record_type.prepare(fleet, parsed)
    except ValidationError as error:
        return Rejected(number, content, describe_errors(error))
    return Accepted(number, content, document, record_type.get_utc_day(document), len(parsed.get("events", ())))


class Rejects:
    """The rejected records of an input: a file, which replaces that of an earlier load when the input has been read.

    Without a path, they go to standard error. If the load of a pipe stops early, `is_pipe` keeps its rejected records,
    because the records before are loaded and may not come again.
    """

    def __init__(self, path: Path | None, *, is_pipe: bool = False) -> None:
        self.path, self.count, self._is_pipe, self._size = path, 0, is_pipe, 0
        # The number of the first rejected record, and its reason as JSON, because it may have a control character.
        self.first = ""
        self.hint = ""
        # Another import of the same file may run at the same time.
        self._partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial") if path else None
        self._out: IO[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *error: object) -> None:
        if error_type is None:
            self.finish()
        else:
            self.abandon()

    def add(self, number: int, content: bytes, reason: str, hint: str = "") -> None:
        """Write a rejected record. Raises click.ClickException if the file cannot be written."""
        text = content.decode(errors="replace")
        is_whole = len(content) <= MAX_RECORD_BYTES and self._size <= MAX_WHOLE_BYTES
        row = json.dumps({"line": number, "reason": reason, "input": text if is_whole else text[:BEGINNING_CHARS]})
        self._size += len(row)
        try:
            if self._partial is None:
                echo(row, err=True)
            else:
                # Line buffered, so that the file has those of a pipe as they come.
                self._out = self._out or open_private(self._partial, "a", buffering=1)
                self._out.write(row + "\n")
        except OSError as error:
            raise click.ClickException(
                f"Line {number} is invalid ({reason}), and {self.path} cannot be written: {error.strerror}. "
                "Choose another folder with --rejects."
            ) from None
        if not self.count:
            self.first, self.hint = f"line {number}, {json.dumps(reason)}", hint
        self.count += 1

    def describe(self) -> str:
        """Return how many lines were rejected, where they are listed, and why the first one was."""
        location = f", listed in {self.path}. The first: {self.first}" if self.count and self.path else ""
        return f"{self.count} rejected{location}"

    def finish(self) -> None:
        """Move the file to its place, or remove that of an earlier import if no line was rejected.

        A line that is rejected later is added to the file. Raises click.ClickException if its place cannot be written.
        """
        try:
            if self._out and self._partial and self.path:
                self._out.close()
                self._partial.replace(self.path)
                self._out, self._partial = None, self.path
            elif self.path and not self.count:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            self.abandon()
            raise click.ClickException(
                f"{self.path} cannot be written: {error.strerror}. Choose another folder with --rejects."
            ) from None

    def abandon(self) -> None:
        """Discard the rejected lines, except those of a pipe. The file of an earlier import is not changed."""
        if self._out and self._partial and self.path:
            # The error that ended the import is the one to report.
            with contextlib.suppress(OSError):
                self._out.close()
            with contextlib.suppress(OSError):
                if self._is_pipe:
                    self._partial.replace(self.path)
                else:
                    self._partial.unlink()
