"""NDJSON in: lines of bounded size from a plain or gzip file, each a document of a schema or rejected with a reason."""

import codecs
import contextlib
import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, NoReturn, cast

import bson
import click
import orjson
from marshmallow import Schema, ValidationError, fields

# Contract §9.
MAX_LINE_BYTES = 15_000_000
MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
# What the store keeps beside a line: fleet and _id.
OWN_BYTES = 1024
OVERSIZED_CHARS = 1_000
# BSON takes less than twice the room of any JSON that is in shape, so that smaller lines need no measuring.
MEASURED_BYTES = 4_000_000
GZIP_MAGIC = b"\x1f\x8b"
# A reason names so many faults of a line at the most.
MAX_FAULTS = 5
MISSING = str(fields.Field.default_error_messages["required"])
# Every integer of fewer digits fits 64 bits.
LONG_NUMBER = b"0" * 19
DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)


class Rejected(Exception):
    """A line out of shape; the message is the reason."""


class Line(NamedTuple):
    """A line, from 1; of one that is oversized only the beginning is kept."""

    number: int
    content: bytes
    oversized: bool


class Input:
    """A file being read; `consumed` is how many of its bytes, as they lie on disk, were read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        # A pipe has neither a size nor a position.
        self._has_position = self._file.seekable()

    def __enter__(self) -> "Input":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def consumed(self) -> int:
        return self._file.tell() if self._has_position else 0

    def lines(self) -> Iterator[Line]:
        """Yield the lines that are not empty. Raises click.ClickException for a file that cannot be read to its end."""
        number = 0
        try:
            stream = self._stream()
            # With room for the line's end.
            while content := stream.readline(MAX_LINE_BYTES + 2):
                number += 1
                if not content.endswith(b"\n"):
                    _skip_line(stream)
                content = content.rstrip(b"\r\n")
                if len(content) > MAX_LINE_BYTES:
                    yield Line(number, content, oversized=True)
                elif content := content.strip(b" \t"):
                    yield Line(number, content, oversized=False)
        except (OSError, EOFError, zlib.error) as error:
            raise click.ClickException(
                f"{self.path} cannot be read past line {number}: {error}. Part of it is loaded; import it again, whole."
            ) from None

    def _stream(self) -> BinaryIO:
        if self._file.peek(2).startswith(GZIP_MAGIC):
            return cast(BinaryIO, gzip.GzipFile(fileobj=self._file))
        return self._file


def _skip_line(stream: IO[bytes]) -> None:
    while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def parse(line: Line, schema: Schema) -> dict[str, Any]:
    """Return the document that a line holds. Raises Rejected."""
    if line.oversized:
        raise Rejected(f"Longer than {MAX_LINE_BYTES} bytes.")
    if line.content.startswith(codecs.BOM_UTF8):
        raise Rejected("Not JSON: begins with a byte order mark; save the file as UTF-8 without one.")
    try:
        found = _decode(line.content)
    except UnicodeDecodeError:
        raise Rejected("Not UTF-8.") from None
    except RecursionError:
        raise Rejected("Not JSON of this shape: nested too deeply.") from None
    except ValueError as error:
        raise Rejected(f"Not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Rejected("Not a JSON object.")
    try:
        document: dict[str, Any] = schema.load(found)
    except ValidationError as error:
        raise Rejected(_reason(error)) from None
    if len(line.content) > MEASURED_BYTES:
        check_size(document)
    return document


def check_size(document: dict[str, Any]) -> None:
    """Raise Rejected for a document that MongoDB would not store."""
    if len(bson.encode(document)) + OWN_BYTES > MAX_DOCUMENT_BYTES:
        raise Rejected(f"Larger than MongoDB's {MAX_DOCUMENT_BYTES} bytes a document.")


def _decode(content: bytes) -> Any:
    """Return the value of a JSON text. Raises Rejected, or ValueError or RecursionError.

    orjson is ten times as fast as json, but keeps quiet about duplicate keys and makes floats of integers past 64 bits.
    Without escapes in the text, a key was lost where the value has fewer quotes than the text; without 19 digits in a
    row there is no such integer. Whatever is in doubt goes the slow way.
    """
    if b"\\" not in content and LONG_NUMBER not in content.translate(DIGITS_TO_ZERO):
        with contextlib.suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):
            found = orjson.loads(content)
            if orjson.dumps(found).count(b'"') == content.count(b'"'):
                return found
    found = _DECODER.decode(content.decode())
    if b"\\u" in content and _has_lone_surrogate(found):
        raise Rejected("Holds a lone surrogate, which is no character.")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise Rejected(f"Holds the key {json.dumps(twice)} twice.")
    return found


def _refuse(constant: str) -> NoReturn:
    raise Rejected(f"Not JSON: {constant} is not a finite number.")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse)


def _has_lone_surrogate(found: Any) -> bool:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _reason(error: ValidationError) -> str:
    # What is wrong tells more than what is missing.
    faults = sorted(_faults(error.messages, ""), key=lambda fault: MISSING in fault)
    more = [f"and {len(faults) - MAX_FAULTS} more."] if len(faults) > MAX_FAULTS else []
    return " ".join(faults[:MAX_FAULTS] + more)


def _faults(messages: Any, path: str) -> Iterator[str]:
    if isinstance(messages, dict):
        for key, inner in messages.items():
            step = f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
            yield from _faults(inner, path if key == "_schema" else path + step)
    else:
        for message in messages:
            yield f"{path}: {message}" if path else message


class Rejects:
    """The rejected lines of an input, in a file that replaces the one of an earlier import when all is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.count = path, 0
        self._partial = path.with_name(path.name + ".partial")
        self._out: IO[str] | None = None

    def add(self, line: Line, reason: str) -> None:
        """Write a rejected line down. Raises click.ClickException where the file cannot be written."""
        text = line.content.decode(errors="replace")
        row = {"line": line.number, "reason": reason, "input": text[:OVERSIZED_CHARS] if line.oversized else text}
        try:
            if self._out is None:
                self._out = self._partial.open("w")
            self._out.write(json.dumps(row) + "\n")
        except OSError as error:
            raise click.ClickException(
                f"Line {line.number} is out of shape ({reason}), and {self.path} cannot be written: {error.strerror}. "
                "Give another folder with --rejects."
            ) from None
        self.count += 1

    def finish(self) -> None:
        """Put the file in place, or remove the one of an earlier import when nothing was rejected."""
        if self._out is not None:
            self._out.close()
            self._partial.replace(self.path)
        else:
            self.path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave the file of an earlier import as it is."""
        if self._out is not None:
            self._out.close()
            with contextlib.suppress(OSError):
                self._partial.unlink()
