"""The files of reports in GridFS (bucket `app.store.reports.BUCKET`).

A file's `_id` is `FLEET <tab> REPORT_DATE <tab> NAME <tab> OBJECT_ID`. It shows to which report a file belongs and
when it was created, so that incomplete files of a killed command can be found.
"""

import hashlib
import time
from collections.abc import Iterable

from bson import ObjectId
from gridfs import GridFSBucket

from app.store import Document, Store
from app.store.reports import BUCKET, FILES

# When a report is built again, its earlier files are stored for an hour longer: clients may still be reading them.
RETENTION_MS = 3_600_000
# No identifier contains a tab.
SEPARATOR = "\t"


def write_file(store: Store, fleet: str, report_date: str, name: str, chunks: Iterable[bytes]) -> Document:
    """Write a file. Returns its entry in the report's document (schema StoredFile)."""
    filename = f"{_prefix(fleet, report_date)}{name}"
    file_id, digest, size = f"{filename}{SEPARATOR}{ObjectId()}", hashlib.sha256(), 0
    with GridFSBucket(store.db, BUCKET).open_upload_stream_with_id(file_id, filename) as stream:
        for chunk in chunks:
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return {"file_id": file_id, "bytes": size, "digest": digest.hexdigest()}


def mark_replaced(store: Store, report: Document) -> None:
    """Record that the files of a report are no longer used from now on."""
    ids = [report[name]["file_id"] for name in FILES if name in report]
    store.db[f"{BUCKET}.files"].update_many({"_id": {"$in": ids}}, {"$set": {"metadata.left_at": now_ms()}})


def remove_files(store: Store, fleet: str, report_date: str) -> None:
    """Remove all files of a report."""
    _remove(store, _find_file_ids(store, _prefix(fleet, report_date)))


def remove_unused_files(store: Store, fleet: str) -> None:
    """Remove the fleet's files that no report refers to: those of killed commands, and those replaced an hour ago."""
    reports = store.reports.find({"fleet": fleet}, {"_id": 0, "csv": 1, "page": 1})
    used = {report[name]["file_id"] for report in reports for name in FILES}
    # Another command may be writing the newer ones at this moment.
    file_ids = _find_file_ids(store, _prefix(fleet)) - used
    unused = {file_id for file_id in file_ids if _age_ms(file_id) > RETENTION_MS}
    match = {"_id": {"$in": list(unused)}, "metadata.left_at": {"$gt": now_ms() - RETENTION_MS}}
    replaced_recently = {file["_id"] for file in store.db[f"{BUCKET}.files"].find(match, {"_id": 1})}
    _remove(store, unused - replaced_recently)


def now_ms() -> int:
    """Return the time in epoch milliseconds."""
    return int(time.time() * 1000)


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


def _remove(store: Store, file_ids: set[str]) -> None:
    store.db[f"{BUCKET}.files"].delete_many({"_id": {"$in": list(file_ids)}})
    store.db[f"{BUCKET}.chunks"].delete_many({"files_id": {"$in": list(file_ids)}})


def _prefix(*parts: str) -> str:
    """Return the beginning of the ids of a fleet's files, or of a report's files."""
    return "".join(part + SEPARATOR for part in parts)
