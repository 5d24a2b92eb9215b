"""The lines of an NDJSON file, plain or gzip: each is parsed to a record, or rejected with a reason."""

import codecs
import contextlib
import gzip
import json
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn, cast

import click
import orjson
from marshmallow import ValidationError

from scripts.ingest.records import MAX_RECORD_BYTES, TOO_LONG, Record, Rejected
from scripts.materialize.sources import describe_errors

STDIN = Path("-")
GZIP_MAGIC = b"\x1f\x8b"
# What a file may be in place of NDJSON: how its first line begins, what to say, and what makes NDJSON of it.
OTHER_FORMS = (
    (rb"PK\x03\x04", "is a zip archive", "unzip -p"),
    (rb"BZh[1-9]1AY", "is compressed with bzip2", "bunzip2"),
    (rb"\x1f\x8b", "is compressed with gzip twice", "gunzip"),
    (rb"\xff\xfe|\xfe\xff", "is in UTF-16", "iconv -f UTF-16 -t UTF-8"),
    (rb"(\xef\xbb\xbf)?\[\s*(\{|$)", "is one JSON array", "jq -c '.[]'"),
    (rb"(\xef\xbb\xbf)?\{\s*$", "has objects over many lines", "jq -c ."),
    (rb".*?\}[ \t]*+\r\s*+\{", "has lines that end with CR alone", "tr '\\r' '\\n'"),
    (rb".*\},$", "has lines that end with a comma", "sed 's/,$//'"),
)
# Up to this size of a line, an error names its duplicate field. It takes a second parser.
MAX_NAMED_BYTES = 1_000_000
# A valid line has fewer, because the shortest point of a trail takes 54 bytes, and its texts are short. The 5 million
# objects and lists that a line of 15 MB may have would take up to 700 MB of memory.
MAX_BRACKETS = 300_000
# Integers with fewer digits fit in 64 bits.
LONG_NUMBER = b"0" * 19
DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"0" * 9)


class Input:
    """A file, which is read once. `consumed` is the number of bytes read so far; for a gzip file, compressed bytes.

    The path `-` is standard input. `is_pipe` is true for whatever cannot seek and may pause between lines.
    """

    def __init__(self, path: Path) -> None:
        # A file object of its own: Python fails at its end if a thread still reads from sys.stdin.
        self._file = open(sys.stdin.fileno(), "rb", closefd=False) if path == STDIN else path.open("rb")  # noqa: SIM115
        self.name = "stdin" if path == STDIN else path.name
        self.size, self.consumed = os.fstat(self._file.fileno()).st_size, 0
        self.is_pipe = not self._file.seekable()

    def records(self) -> Generator[Record | Rejected]:
        """Parse the lines that are not empty. Raises click.ClickException if the file cannot be read to its end."""
        number = 0
        try:
            with self._file:
                for number, content in enumerate(self._lines(), 1):
                    if content:
                        yield parse(number, content)
        except (OSError, EOFError, zlib.error) as error:
            raise click.ClickException(
                f"{self.name} cannot be read past line {number}: {error}. The lines before may be loaded. Import the "
                "complete file again."
            ) from None

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines without white space around them, and only the beginning of a line that is too long."""
        is_gzip = self._file.peek(2).startswith(GZIP_MAGIC)
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=self._file)) if is_gzip else self._file
        begins = True
        # Two bytes more for the line's end, \r\n.
        while content := stream.readline(MAX_RECORD_BYTES + 2):
            if not content.endswith(b"\n"):
                _skip_line(stream)
            self.consumed = 0 if self.is_pipe else self._file.tell()
            content = content.rstrip(b"\r\n")
            content = content.strip(b" \t") if len(content) <= MAX_RECORD_BYTES else content
            if begins and content:
                begins = False
                self._check_form(content, "gunzip | " if is_gzip else "")
            yield content

    def _check_form(self, line: bytes, unpack: str) -> None:
        """Raise click.ClickException if the first line is that of no NDJSON. `unpack` is what unpacks the file."""
        for beginning, description, command in OTHER_FORMS:
            if re.match(beginning, line, re.DOTALL):
                raise click.ClickException(f"{self.name} {description}: {unpack}{command} writes one object a line.")


def _skip_line(stream: IO[bytes]) -> None:
    while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def parse(number: int, content: bytes) -> Record | Rejected:
    """Return the record of a line, or why it is none. If the line is too long, `content` is only its beginning."""
    try:
        return Record(number, content, _parse(content))
    except ValidationError as error:
        return Rejected(number, content, describe_errors(error))


def _parse(content: bytes) -> Any:
    """Return the value of a JSON text. Raises ValidationError."""
    if len(content) > MAX_RECORD_BYTES:
        raise ValidationError(TOO_LONG)
    if content.startswith(codecs.BOM_UTF8):
        raise ValidationError("Not JSON: starts with a byte order mark. Save the file as UTF-8 without it.")
    if content.count(b"{") + content.count(b"[") > MAX_BRACKETS:
        raise ValidationError(f"Has more than {MAX_BRACKETS} brackets {{ and [.")
    try:
        return _decode(content)
    except UnicodeDecodeError:
        raise ValidationError("Not UTF-8.") from None
    except json.JSONDecodeError as error:
        # The error's own text names a line, which is not that of the file.
        raise ValidationError(f"Not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}.") from None
    except (ValueError, RecursionError):
        raise ValidationError("Not JSON: a number has too many digits, or values are nested too deeply.") from None


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
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValidationError(f"Contains the field {json.dumps(name)} more than once.")
    return value


def _reject_constant(constant: str) -> NoReturn:
    raise ValidationError(f"Not JSON: {constant} is not a finite number.")


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, parse_constant=_reject_constant)
