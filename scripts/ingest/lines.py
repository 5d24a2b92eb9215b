"""Reading NDJSON files, plain or gzip: each line is parsed to a document, or rejected with a reason."""

import codecs
import contextlib
import gzip
import itertools
import json
import os
import re
import secrets
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any, BinaryIO, NamedTuple, NoReturn, Self, cast

import click
import orjson
from marshmallow import Schema, ValidationError

from scripts.materialize.sources import check_size
from scripts.output import echo
from scripts.private_files import open_private

STDIN = Path("-")
MAX_LINE_BYTES = 15_000_000
# Few, because each may have MAX_LINE_BYTES.
MAX_QUEUED_LINES = 16
# The part of an oversized line in the file of rejected lines.
OVERSIZED_CHARS = 1_000
GZIP_MAGIC = b"\x1f\x8b"
# Up to this size of a line, an error names its duplicate field. It takes a second parser.
MAX_NAMED_BYTES = 1_000_000
# A valid line has fewer, because the shortest point of a trail takes 54 bytes. The 5 million that a line of 15 MB may
# have would take up to 700 MB of memory.
MAX_CONTAINERS = 300_000
# All that comes before the next object or list, strings included, and its bracket. A string may end with the line.
NEXT_CONTAINER = re.compile(rb'[^"\[{]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"?[^"\[{]*+)*+([\[{])?', re.DOTALL)
# Integers with fewer digits fit in 64 bits.
LONG_NUMBER = b"0" * 19
DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)


class Line(NamedTuple):
    """A line with its number, from 1. The content of an oversized line is only its beginning."""

    number: int
    content: bytes
    oversized: bool


class Input:
    """An open file. `consumed` is the number of bytes read so far; for a gzip file, compressed bytes.

    The path `-` is standard input. `is_pipe` is true for whatever cannot seek and may pause between lines.
    """

    def __init__(self, path: Path) -> None:
        # A file object of its own: Python fails at its end if a thread still reads from sys.stdin.
        self._file = open(sys.stdin.fileno(), "rb", closefd=False) if path == STDIN else path.open("rb")  # noqa: SIM115
        self.name = "stdin" if path == STDIN else path.name
        self._place = self.name if path == STDIN else path
        self.size = os.fstat(self._file.fileno()).st_size
        self.is_pipe, self._is_at_end = not self._file.seekable(), False

    def __enter__(self) -> "Input":
        return self

    def __exit__(self, *error: object) -> None:
        # While a thread waits for the next line of a pipe, closing the pipe would wait for that thread.
        if self._is_at_end or not self.is_pipe:
            self._file.close()

    @property
    def consumed(self) -> int:
        return 0 if self.is_pipe else self._file.tell()

    def lines(self) -> Iterator[Line]:
        """Yield the lines that are not empty. Raises click.ClickException if the file cannot be read to its end."""
        number = 0
        try:
            stream = self._stream()
            # Two bytes more for the line's end, \r\n.
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
            place, loaded = (f" past line {number}", "The lines before may be") if number else ("", "Nothing of it was")
            raise click.ClickException(
                f"{self._place} cannot be read{place}: {error}. {loaded} loaded. Import the complete file again."
            ) from None
        finally:
            self._is_at_end = True

    def _stream(self) -> BinaryIO:
        if self._file.peek(2).startswith(GZIP_MAGIC):
            return cast(BinaryIO, gzip.GzipFile(fileobj=self._file))
        return self._file


def with_pauses(lines: Iterator[Line], seconds: float) -> Iterator[Line | None]:
    """Yield the lines, and None whenever no line has come for `seconds`.

    A thread reads the lines. An error of the iterator is raised here.
    """
    queue: Queue[Line | BaseException | None] = Queue(MAX_QUEUED_LINES)

    def read() -> None:
        try:
            for line in lines:
                queue.put(line)
            queue.put(None)
        except BaseException as error:
            queue.put(error)

    # A daemon, because it may wait for a line when the command ends.
    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            item = queue.get(timeout=seconds)
        except Empty:
            yield None
            continue
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
        yield item


def _skip_line(stream: IO[bytes]) -> None:
    while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def parse(line: Line, schema: Schema) -> dict[str, Any]:
    """Return the document of a line. Raises ValidationError, whose `data` is the object that violates the schema."""
    if line.oversized:
        raise ValidationError(f"Longer than {MAX_LINE_BYTES} bytes.")
    if line.content.startswith(codecs.BOM_UTF8):
        raise ValidationError("Not JSON: starts with a byte order mark. Save the file as UTF-8 without it.")
    if _has_too_many_containers(line.content):
        raise ValidationError(f"Has more than {MAX_CONTAINERS} objects and lists.")
    try:
        value = _decode(line.content)
    except UnicodeDecodeError:
        raise ValidationError("Not UTF-8.") from None
    except RecursionError:
        raise ValidationError("Not JSON: nested too deeply.") from None
    except ValueError as error:
        raise ValidationError(f"Not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValidationError("Not a JSON object.")
    try:
        document: dict[str, Any] = schema.load(value)
    except ValidationError as error:
        raise ValidationError(error.messages, data=value) from None
    check_size(document, len(line.content))
    return document


def _has_too_many_containers(content: bytes) -> bool:
    """Return whether a JSON text has more than MAX_CONTAINERS objects and lists."""
    if len(content) <= MAX_CONTAINERS or content.count(b"{") + content.count(b"[") <= MAX_CONTAINERS:
        return False
    # Some of the brackets may be in strings.
    steps = itertools.islice(NEXT_CONTAINER.finditer(content), MAX_CONTAINERS + 1)
    return sum(1 for step in steps if step[1]) > MAX_CONTAINERS


def _decode(content: bytes) -> Any:
    """Return the value of a JSON text. Raises ValidationError, ValueError or RecursionError.

    orjson is ten times as fast as json, but accepts duplicate fields and converts integers beyond 64 bits to floats. A
    text without backslashes has a duplicate field if its value is written with fewer quotation marks; a text without 19
    digits in a row has no integer beyond 64 bits. All other texts are parsed by json.
    """
    if b"\\" not in content and LONG_NUMBER not in content.translate(DIGITS_TO_ZERO):
        with contextlib.suppress(orjson.JSONDecodeError, orjson.JSONEncodeError):
            value = orjson.loads(content)
            if orjson.dumps(value).count(b'"') == content.count(b'"'):
                return value
            if len(content) > MAX_NAMED_BYTES:
                raise ValidationError("Contains a field more than once.")
            # The same value again would take as much memory again.
            del value
    return _DECODER.decode(content.decode())


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises ValidationError for a duplicate field."""
    value = dict(pairs)
    if len(value) < len(pairs):
        known = set[str]()
        for name, _ in pairs:
            if name in known:
                raise ValidationError(f"Contains the field {json.dumps(name)} more than once.")
            known.add(name)
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise ValidationError(f"Not JSON: {constant} is not a finite number.")


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, parse_constant=_reject_constant)


class Rejects:
    """The rejected lines of an input: a file, which replaces that of an earlier import when the input has been read.

    Without a path, they go to standard error. If the import of a pipe stops early, `is_pipe` keeps its rejected lines,
    because the lines before are loaded and may not come again.
    """

    def __init__(self, path: Path | None, *, is_pipe: bool = False) -> None:
        self.path, self.count, self._is_pipe = path, 0, is_pipe
        # The number of the first rejected line, and the reason in JSON, because it may contain a control character.
        self.first = ""
        # What may be wrong with all of them.
        self.hints: list[str] = []
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

    def add(self, line: Line, reason: str) -> None:
        """Write a rejected line. Raises click.ClickException if the file cannot be written."""
        text = line.content.decode(errors="replace")
        row = {"line": line.number, "reason": reason, "input": text[:OVERSIZED_CHARS] if line.oversized else text}
        try:
            if self._partial is None:
                echo(json.dumps(row), err=True)
            else:
                # Line buffered, so that the file has the rejected lines of a pipe as they come.
                self._out = self._out or open_private(self._partial, "a", buffering=1)
                self._out.write(json.dumps(row) + "\n")
        except OSError as error:
            raise click.ClickException(
                f"Line {line.number} is invalid ({reason}), and {self.path} cannot be written: {error.strerror}. "
                "Choose another folder with --rejects."
            ) from None
        self.count += 1
        self.first = self.first or f"line {line.number}, {json.dumps(reason)}"

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
