"""The manifest of a backup, and the check of the files that it names, which takes place before a restore begins."""

import gzip
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import click
from bson import decode_file_iter
from bson.codec_options import CodecOptions
from bson.errors import InvalidBSON
from bson.raw_bson import RawBSONDocument
from marshmallow import ValidationError, fields
from marshmallow.validate import Length, OneOf, Regexp

from app.store import MAX_DOCUMENT_BYTES, SOURCES, Document
from app.store.reports import BUCKET
from schemas.fields import Choice, Count, FleetName, Int64, Object, Text
from schemas.plausibility import POLICIES
from schemas.source import SourceSchema
from scripts.command_line.options import TimeZone
from scripts.materialize.sources import describe_errors

# Keys come last, so that nobody can use the API while a restore is incomplete. Reports come before their files: a file
# stays for an hour after its report is replaced, so the backup has the files of all its reports.
COLLECTIONS = (*SOURCES, "reports", f"{BUCKET}.files", f"{BUCKET}.chunks", "keys")
MANIFEST = "manifest.json"
BACKUP_FORMAT = 4
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)


class _Settings(SourceSchema):
    """What a backup has of the state of a fleet. The rest of it begins from scratch."""

    time_zone = TimeZone(required=False)
    implausible_trips = Choice(choices=POLICIES, required=False)


class _Entry(SourceSchema):
    """A collection: the number of its documents, and the digest of its file."""

    documents = Count()
    sha256 = Text(validate=Regexp("[0-9a-f]{64}$", error="Must be 64 digits of a hexadecimal number."))


class _Manifest(SourceSchema):
    """A backup. Only people read `database` and `began_at`."""

    format = Int64()
    database, began_at = Text(), Text()
    settings = fields.Dict(FleetName(), Object(_Settings), required=True)
    collections = fields.Dict(
        Text(validate=OneOf(COLLECTIONS)),
        Object(_Entry),
        required=True,
        validate=Length(equal=len(COLLECTIONS), error=f"Must have {', '.join(COLLECTIONS)}."),
    )


SETTINGS = tuple(_Settings().fields)


def read_manifest(folder: Path) -> Document:
    """Return the manifest of a backup, whose files are as it says. Raises click.ClickException."""
    path = folder / MANIFEST
    try:
        with open_file(path) as file:
            manifest = json.loads(file.read().decode())
    except (OSError, ValueError, RecursionError):
        raise click.ClickException(
            f"{folder} is not a complete backup: {MANIFEST} is missing or cannot be read."
        ) from None
    stored_format = manifest.get("format") if isinstance(manifest, dict) else None
    if Int64.accepts(type(stored_format)) and stored_format != BACKUP_FORMAT:
        raise click.ClickException(
            f"{folder} has the format {stored_format!r}, but this command reads only the format {BACKUP_FORMAT}."
        )
    try:
        manifest = _Manifest().load(manifest)
    except ValidationError as error:
        raise click.ClickException(f"{path} is invalid: {describe_errors(error)} Use another backup.") from None
    for name, entry in manifest["collections"].items():
        _check_file(get_path(folder, name), entry)
    return cast(Document, manifest)


def get_path(folder: Path, name: str) -> Path:
    """Return the path of the file of a collection."""
    return folder / f"{name}.bson.gz"


def open_file(path: Path) -> BufferedReader:
    """Open a file to read. Raises OSError if it is no file, such as a link or a pipe, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return open(descriptor, "rb")


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file. Raises OSError as `open_file` does."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_documents(path: Path) -> Iterator[RawBSONDocument]:
    """Yield the documents of a file. Raises click.ClickException if it cannot be read."""
    try:
        with open_file(path) as file, gzip.open(file) as unpacked:
            yield from decode_file_iter(cast(BinaryIO, _DocumentFile(unpacked)), RAW)
    except (InvalidBSON, EOFError, zlib.error, OSError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}. Use another backup.") from None


class _DocumentFile(NamedTuple):
    """A file of documents, of which no more than a document is read at once: a damaged one may claim gigabytes."""

    file: gzip.GzipFile

    def read(self, size: int) -> bytes:
        """Return the next bytes. Raises InvalidBSON for more than a document can have."""
        if size > MAX_DOCUMENT_BYTES:
            raise InvalidBSON(f"a document of {size} bytes is larger than MongoDB's limit")
        return self.file.read(size)


def _check_file(path: Path, entry: Document) -> None:
    """Raise click.ClickException unless a file has the digest and the number of documents of its entry."""
    try:
        is_unchanged = digest_file(path) == entry["sha256"]
    except OSError:
        is_unchanged = False
    if not is_unchanged:
        raise click.ClickException(f"{path} is missing or was changed since the backup. Use another backup.")
    count = sum(1 for _ in read_documents(path))
    if count != entry["documents"]:
        raise click.ClickException(
            f"{path} has {count} documents, but {MANIFEST} says {entry['documents']}. Use another backup."
        )
