"""`driver-analytics backup` and `restore`: the data that cannot be derived, in files that mongorestore can read too.

A backup is a folder. It contains a file COLLECTION.bson.gz for each collection, with its documents in BSON one after
another, and a manifest with the number of documents and the digest of each file, and with the settings of fleets.
"""

import contextlib
import datetime
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from pymongo import ASCENDING

from app.store import Document, Store
from app.store.reports import BUCKET
from scripts.admin.manifest import (
    BACKUP_FORMAT,
    COLLECTIONS,
    MANIFEST,
    RAW,
    SETTINGS,
    digest_file,
    get_path,
    read_documents,
    read_manifest,
)
from scripts.admin.rollups import rebuild_with_progress
from scripts.command_line.batches import batches_by_size
from scripts.command_line.output import create_private, echo, make_bar, temporary_folder
from scripts.materialize.fleet_settings import set_settings
from scripts.mongodb.connection import find_fleets, open_store, say_empty

# GridFS creates these indexes at its first write, but not if there are files already.
FILE_INDEXES = {
    f"{BUCKET}.files": ([("filename", ASCENDING), ("uploadDate", ASCENDING)], False),
    f"{BUCKET}.chunks": ([("files_id", ASCENDING), ("n", ASCENDING)], True),
}
GZIP_LEVEL = 1
# A batch ends at whichever limit comes first.
BATCH_BYTES, BATCH_DOCUMENTS = 16_000_000, 10_000
FOLDER = click.argument("folder", type=click.Path(path_type=Path))


@click.command()
@FOLDER
def backup(folder: Path) -> None:
    """Back up drivers, groups, trips, keys, reports and the settings of fleets: time zone and implausible trips.

    The command writes them to a new FOLDER, which appears when the backup is complete.

    The backup has each document in a state that was committed while the backup ran. Changes by an import at the same
    time may or may not be part of it. Read models are not part of it, because 'restore' builds them. A backup contains
    personal data and digests of keys, so only its owner can read the folder.

    An invalid document, such as one that was written with bypassDocumentValidation, is backed up and restored as it is.
    """
    # A link to nothing does not exist.
    if os.path.lexists(folder):
        raise click.ClickException(f"{folder} already exists. Choose another folder.")
    with open_store(writes=False, any_format=True) as store, _create(folder) as partial:
        manifest = _write(store, partial)
        if not any(entry["documents"] for entry in manifest["collections"].values()):
            say_empty(store)
    echo(f"{folder}: {_format_counts(manifest)}")


@contextlib.contextmanager
def _create(folder: Path) -> Iterator[Path]:
    """Create a folder that gets its name when the block ends without an error, and yield its path until then.

    Raises click.ClickException if it cannot be written.
    """
    try:
        with temporary_folder(folder.with_name(f"{folder.name}.part")) as partial:
            yield partial
            partial.rename(folder)
        _sync(folder.parent)
    except OSError as error:
        raise click.ClickException(
            f"{folder} cannot be written: {error.strerror}. Give FOLDER a path in a folder that you can write to."
        ) from None


@click.command()
@FOLDER
def restore(folder: Path) -> None:
    """Load a backup into an empty database.

    The command checks all files in FOLDER, loads the data and builds all read models. It loads the keys last, so that
    nobody can use the API before the restore is complete. If the command was killed, drop the database and run it
    again.
    """
    manifest = read_manifest(folder)
    with open_store() as store:
        if any(store.db[name].find_one({}, {"_id": 1}) for name in store.db.list_collection_names()):
            raise click.ClickException(
                f"The database {store.db.name} is not empty. Drop it, or set MONGODB_DATABASE to another database."
            )
        for name, (index, unique) in FILE_INDEXES.items():
            store.db[name].create_index(index, unique=unique)
        *data, keys = COLLECTIONS
        for name in data:
            _load(store, name, folder, manifest)
        for fleet, settings in manifest["settings"].items():
            set_settings(store, fleet, **settings)
        # A fleet whose last driver was erased may have reports only. Every fleet has a fleet state.
        for fleet in sorted({*find_fleets(store), *store.reports.distinct("fleet")}):
            rebuild_with_progress(store, fleet)
        _load(store, keys, folder, manifest)
    echo(f"{folder}: {_format_counts(manifest)} restored")


def _write(store: Store, folder: Path) -> Document:
    """Write the files, then the manifest. Returns the manifest."""
    manifest: Document = {
        "format": BACKUP_FORMAT,
        "database": store.db.name,
        "began_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "settings": {
            fleet["_id"]: {name: fleet[name] for name in SETTINGS if name in fleet} for fleet in store.fleets.find()
        },
        "collections": {name: _dump(store, name, get_path(folder, name)) for name in COLLECTIONS},
    }
    with create_private(folder / MANIFEST) as file:
        json.dump(manifest, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)
    return manifest


def _dump(store: Store, name: str, path: Path) -> Document:
    """Write a collection. Returns its entry in the manifest."""
    documents: Any = store.db.get_collection(name, RAW)
    count = 0
    with create_private(path, "xb") as file, make_bar(name, documents.estimated_document_count()) as bar:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=GZIP_LEVEL) as compressed:
            for document in documents.find({}):
                compressed.write(document.raw)
                count += 1
                bar.update(1)
        file.flush()
        os.fsync(file.fileno())
    return {"documents": count, "sha256": digest_file(path)}


def _load(store: Store, name: str, folder: Path, manifest: Document) -> None:
    documents: Any = store.db.get_collection(name, RAW)
    with make_bar(name, manifest["collections"][name]["documents"]) as bar:
        sized = ((document, len(document.raw)) for document in read_documents(get_path(folder, name)))
        for batch in batches_by_size(sized, BATCH_DOCUMENTS, BATCH_BYTES):
            documents.insert_many(batch, ordered=False, bypass_document_validation=True)
            bar.update(len(batch))


def _sync(folder: Path) -> None:
    """Write a folder's entries to the disk, so that they survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _format_counts(manifest: Document) -> str:
    counts = {name: entry["documents"] for name, entry in manifest["collections"].items()}
    return ", ".join(f"{counts[name]} {name}" for name in ("drivers", "trips", "reports", "keys"))
