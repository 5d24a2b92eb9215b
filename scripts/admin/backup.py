"""`driver-analytics backup` and `restore`: all that cannot be derived, in files that mongorestore reads too.

A backup is a folder: of each collection a COLLECTION.bson.gz, its documents as they lie in the store, one after the
other, and a manifest with how many they are and a digest of each file.
"""

import datetime
import gzip
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import click
from bson import decode_file_iter
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import ASCENDING

from app.store import Document, Store
from app.store.reports import BUCKET
from scripts.admin.rollups import rebuild_with_progress
from scripts.mongodb.connection import fleets, open_store

# Keys come last: as long as a restored store is not whole, it lets nobody in. Reports come before their files, which
# stay for an hour after a report is replaced.
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
RAW: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
PRIVATE = 0o700

FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.command()
@FOLDER
def backup(folder: Path) -> None:
    """Write drivers, trips, keys and reports into a new FOLDER, which is there once it is whole.

    Each document is in it as it was committed at some time during the backup; what an import writes meanwhile may be
    in it or not. Read models are not in it: restoring builds them. It holds personal data, and digests of keys, so only
    its owner may read it.
    """
    if folder.exists():
        raise click.ClickException(f"{folder} is there already; name another.")
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(PRIVATE)
    try:
        with open_store(writes=False) as store:
            manifest = _write(store, part)
        part.rename(folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    click.echo(f"{folder}: {_told(manifest)}")


@click.command()
@FOLDER
def restore(folder: Path) -> None:
    """Load what `backup` wrote to FOLDER into an empty database, and build all read models.

    FOLDER is checked first. Keys come last, so that a store that was restored in part, after a kill, lets nobody in:
    drop the database then, and run the command again.
    """
    manifest = check(folder)
    with open_store() as store:
        if any(store.db[name].find_one({}, {"_id": 1}) for name in store.db.list_collection_names()):
            raise click.ClickException(
                f"The database {store.db.name} is not empty; drop it, or set MONGODB_DATABASE to another."
            )
        for name, (index, unique) in FILE_INDEXES.items():
            store.db[name].create_index(index, unique=unique)
        *data, keys = COLLECTIONS
        for name in data:
            _load(store, name, folder, manifest)
        for fleet in fleets(store, None):
            rebuild_with_progress(store, fleet)
        _load(store, keys, folder, manifest)
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


def _write(store: Store, folder: Path) -> Document:
    """Write the files, then the manifest, and return that."""
    manifest: Document = {
        "format": FORMAT,
        "database": store.db.name,
        "began_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "collections": {name: _dump(store, name, _file(folder, name)) for name in COLLECTIONS},
    }
    with (folder / MANIFEST).open("w") as file:
        json.dump(manifest, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)
    return manifest


def _dump(store: Store, name: str, path: Path) -> Document:
    """Write a collection, and return what the manifest tells of it."""
    documents: Any = store.db.get_collection(name, RAW)
    count = 0
    with path.open("xb") as file, _bar(name, documents.estimated_document_count()) as bar:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=GZIP_LEVEL) as packed:
            for document in documents.find({}):
                packed.write(document.raw)
                count += 1
                bar.update(1)
        file.flush()
        os.fsync(file.fileno())
    return {"documents": count, "sha256": _digest(path)}


def _load(store: Store, name: str, folder: Path, manifest: Document) -> None:
    documents: Any = store.db.get_collection(name, RAW)
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
