"""The files of reports in GridFS (bucket `app.store.reports.BUCKET`).

A file's `_id` is `FLEET <tab> REPORT_DATE <tab> PERIOD <tab> NAME <tab> OBJECT_ID`. It shows to which report a file
belongs and when it was created, so that incomplete files of a killed command can be found.
"""

import csv
import hashlib
import html
import io
from collections.abc import Iterable, Iterator
from typing import Any

from bson import ObjectId
from gridfs import GridFSBucket
from pymongo import ASCENDING

from app.store import MAX_DOCUMENT_BYTES, Document, Store
from app.store.reports import BUCKET, FILES
from schemas.periods import MS_PER_HOUR, now_ms
from schemas.report import ReportWindow

# When a report is built again, its earlier files are stored for an hour longer: clients may still be reading them.
RETENTION_MS = MS_PER_HOUR
# No identifier contains a tab.
SEPARATOR = "\t"


def write_file(store: Store, fleet: str, window: ReportWindow, name: str, chunks: Iterable[bytes]) -> Document:
    """Write a file. Returns its entry in the report's document (schema StoredFile)."""
    filename = f"{_prefix(fleet, *window)}{name}"
    file_id, digest, size = f"{filename}{SEPARATOR}{ObjectId()}", hashlib.sha256(), 0
    with GridFSBucket(store.db, BUCKET).open_upload_stream_with_id(file_id, filename) as stream:
        for chunk in chunks:
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return {"file_id": file_id, "bytes": size, "digest": digest.hexdigest()}


def read_rows(store: Store, file_id: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV file. Raises gridfs.errors.NoFile or CorruptGridFile."""
    stream: Any = GridFSBucket(store.db, BUCKET).open_download_stream(file_id)
    # A name may be longer than Python's default limit.
    csv.field_size_limit(MAX_DOCUMENT_BYTES)
    yield from csv.reader(io.TextIOWrapper(stream, "utf-8-sig", newline=""))


def mark_replaced(store: Store, report: Document) -> None:
    """Record that the files of a report are no longer used from now on."""
    ids = [report[name]["file_id"] for name in FILES if name in report]
    change = {"$set": {"metadata.left_at": now_ms()}}
    store.db[f"{BUCKET}.files"].update_many({"_id": {"$in": ids}}, change)


def remove_files_of(store: Store, fleet: str, window: ReportWindow) -> None:
    """Remove all files of a report."""
    remove_files(store, _find_file_ids(store, _prefix(fleet, *window)))


def find_unused_files(store: Store, fleet: str) -> set[str]:
    """Return the ids of the fleet's files that no report refers to. Another command may be writing the newer ones."""
    reports = store.reports.find({"fleet": fleet}, {"_id": 0, "csv": 1, "page": 1})
    used = {report[name]["file_id"] for report in reports for name in FILES}
    return _find_file_ids(store, _prefix(fleet)) - used


def find_unused_files_with(store: Store, fleet: str, driver_id: str) -> set[str]:
    """Return the unused files that may contain a driver: the ids of drivers are in both files of a report."""
    chunks = store.db[f"{BUCKET}.chunks"]
    file_ids = set[str]()
    for file_id in find_unused_files(store, fleet):
        data = b"".join(chunk["data"] for chunk in chunks.find({"files_id": file_id}, sort=[("n", ASCENDING)]))
        # A file that a killed command did not finish may end within a character.
        text = data.decode(errors="replace")
        if driver_id in text or driver_id in html.unescape(text) or driver_id.replace('"', '""') in text:
            file_ids.add(file_id)
    return file_ids


def remove_all_unused_files(store: Store, fleet: str) -> None:
    """Remove the fleet's files that no report refers to, also those that clients or other commands still use."""
    remove_files(store, find_unused_files(store, fleet))


def remove_unused_files(store: Store, fleet: str) -> None:
    """Remove the fleet's files that no report refers to: those of killed commands, and those replaced an hour ago."""
    unused = {file_id for file_id in find_unused_files(store, fleet) if _age_ms(file_id) > RETENTION_MS}
    match = {"_id": {"$in": list(unused)}, "metadata.left_at": {"$gt": now_ms() - RETENTION_MS}}
    replaced_recently = {file["_id"] for file in store.db[f"{BUCKET}.files"].find(match, {"_id": 1})}
    remove_files(store, unused - replaced_recently)


def _age_ms(file_id: str) -> float:
    return now_ms() - ObjectId(file_id.rpartition(SEPARATOR)[2]).generation_time.timestamp() * 1000


def _find_file_ids(store: Store, prefix: str) -> set[str]:
    """Return the ids with a prefix, including those of incomplete files. Indexes: (_id), (files_id, n)."""
    # The upper bound is the prefix with its last character, the separator, replaced by the next character.
    id_range = {"$gte": prefix, "$lt": prefix[:-1] + chr(ord(SEPARATOR) + 1)}
    files = store.db[f"{BUCKET}.files"].find({"_id": id_range}, {"_id": 1})
    return {file["_id"] for file in files}.union(
        store.db[f"{BUCKET}.chunks"].distinct("files_id", {"files_id": id_range})
    )


def remove_files(store: Store, file_ids: set[str]) -> None:
    """Remove the files with these ids, also incomplete ones."""
    store.db[f"{BUCKET}.files"].delete_many({"_id": {"$in": list(file_ids)}})
    store.db[f"{BUCKET}.chunks"].delete_many({"files_id": {"$in": list(file_ids)}})


def _prefix(*parts: str) -> str:
    """Return the beginning of the ids of a fleet's files, or of a report's files."""
    return "".join(part + SEPARATOR for part in parts)
