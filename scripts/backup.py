"""`driver-analytics backup` and `restore`: all that cannot be derived, in files that mongorestore reads too.

A backup is a folder: of each collection a COLLECTION.bson.gz, its documents as they lie in the store, one after the
other, and a manifest with how many they are and a digest of each file.
"""

import contextlib
import datetime
import gzip
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import click
from bson import decode_file_iter
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import ASCENDING

from app.store import Document
from app.store.reports import BUCKET
from scripts.derive import writing
from scripts.rollups import rebuild_fleet
from scripts.store import LEASE_SECONDS, Store, Writer, fleets, open_store

# Keys come last: as long as a restored store is not whole, it lets nobody in.
COLLECTIONS = ("drivers", "trips", "reports", f"{BUCKET}.files", f"{BUCKET}.chunks", "keys")
# GridFS makes these when it first writes, and not where it finds files.
FILE_INDEXES = {
    f"{BUCKET}.files": ([("filename", ASCENDING), ("uploadDate", ASCENDING)], False),
    f"{BUCKET}.chunks": ([("files_id", ASCENDING), ("n", ASCENDING)], True),
}
MANIFEST = "manifest.json"
FORMAT = 1
GZIP_LEVEL = 1
BATCH_BYTES = 16_000_000
RENEW_SECONDS = LEASE_SECONDS / 6
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
PRIVATE = 0o700

FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.command()
@FOLDER
def backup(folder: Path) -> None:
    """Write drivers, trips, keys and reports into a new FOLDER, which is there once it is whole.

    Commands that write to a fleet wait until it is done. What is served of drivers and trips is not in it: restoring
    derives that. It holds personal data and, of keys, digests; so it is for its owner's eyes alone.
    """
    if folder.exists():
        raise click.ClickException(f"{folder} is there already; name another.")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(PRIVATE)
    try:
        with open_store(prepared=False) as db, contextlib.ExitStack() as stack:
            writers = [stack.enter_context(Writer(db, fleet)) for fleet in fleets(db, None)]
            manifest = _write(db, part, _renewing(writers))
        part.rename(folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    click.echo(f"{folder}: {_told(manifest)}")


@click.command()
@FOLDER
def restore(folder: Path) -> None:
    """Load what `backup` wrote to FOLDER into an empty database, and derive all else.

    FOLDER is checked first. Keys come last, so that a store that was restored in part, after a kill, lets nobody in:
    drop the database then, and run the command again.
    """
    manifest = check(folder)
    with open_store() as db:
        if any(db[name].find_one({}, {"_id": 1}) for name in db.list_collection_names()):
            raise click.ClickException(
                f"The database {db.name} is not empty; drop it, or set MONGODB_DATABASE to another."
            )
        for name, (index, unique) in FILE_INDEXES.items():
            db[name].create_index(index, unique=unique)
        *data, keys = COLLECTIONS
        for name in data:
            _load(db, name, folder, manifest)
        for fleet in fleets(db, None):
            with writing(db, fleet) as writer:
                rebuild_fleet(db, fleet, writer)
        _load(db, keys, folder, manifest)
    click.echo(f"{folder}: {_told(manifest)} restored")


def check(folder: Path) -> Document:
    """Return the manifest of a folder whose files are as they were written. Raises click.ClickException."""
    try:
        manifest: Document = json.loads((folder / MANIFEST).read_text())
        if manifest["format"] != FORMAT:
            raise click.ClickException(f"{folder} has the format {manifest['format']}; this command reads {FORMAT}.")
        digests = {name: manifest["collections"][name]["sha256"] for name in COLLECTIONS}
    except (OSError, ValueError, LookupError, TypeError):
        raise click.ClickException(f"{folder} is not a whole backup: it has no {MANIFEST} that can be read.") from None
    for name, digest in digests.items():
        if not _file(folder, name).is_file() or _digest(_file(folder, name)) != digest:
            raise click.ClickException(f"{_file(folder, name)} is not as it was written; use another backup.")
    return manifest


def _write(db: Store, folder: Path, renew: Callable[[], None]) -> Document:
    """Write the files, then the manifest, and return that."""
    manifest: Document = {
        "format": FORMAT,
        "database": db.name,
        "began_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "collections": {name: _dump(db, name, _file(folder, name), renew) for name in COLLECTIONS},
    }
    with (folder / MANIFEST).open("w") as file:
        json.dump(manifest, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)
    return manifest


def _dump(db: Store, name: str, path: Path, renew: Callable[[], None]) -> Document:
    """Write a collection, and return what the manifest tells of it."""
    documents: Any = db.get_collection(name, RAW)
    count = 0
    with path.open("xb") as file, _bar(name, documents.estimated_document_count()) as bar:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=GZIP_LEVEL) as packed:
            for document in documents.find({}):
                packed.write(document.raw)
                count += 1
                bar.update(1)
                renew()
        file.flush()
        os.fsync(file.fileno())
    return {"documents": count, "sha256": _digest(path)}


def _load(db: Store, name: str, folder: Path, manifest: Document) -> None:
    documents: Any = db.get_collection(name, RAW)
    with gzip.open(_file(folder, name)) as file, _bar(name, manifest["collections"][name]["documents"]) as bar:
        for batch in _batches(decode_file_iter(cast(BinaryIO, file), RAW)):
            documents.insert_many(batch, ordered=False)
            bar.update(len(batch))


def _batches(documents: Iterator[RawBSONDocument]) -> Iterator[list[RawBSONDocument]]:
    batch, size = list[RawBSONDocument](), 0
    for document in documents:
        batch.append(document)
        size += len(document.raw)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _renewing(writers: list[Writer]) -> Callable[[], None]:
    """Return what, called again and again, keeps the right to write to fleets."""
    renewed_at = time.monotonic()

    def renew() -> None:
        nonlocal renewed_at
        if time.monotonic() - renewed_at > RENEW_SECONDS:
            for writer in writers:
                writer.renew()
            renewed_at = time.monotonic()

    return renew


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.bson.gz"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    """Have what a folder names outlive a loss of power."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _bar(label: str, length: int) -> Any:
    return click.progressbar(length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty())


def _told(manifest: Document) -> str:
    counts = {name: about["documents"] for name, about in manifest["collections"].items()}
    return ", ".join(f"{counts[name]} {name}" for name in ("drivers", "trips", "reports", "keys"))
