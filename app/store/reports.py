"""Reports of a fleet: what is built, and the files, which lie in GridFS."""

from collections.abc import Iterator

from app.store import Document, InvalidDocument, Store
from schemas.derive import fields_of, fits
from schemas.stored import StoredReport

# GridFS keeps a bucket in two collections: NAME.files and NAME.chunks.
BUCKET = "report_files"
# What a report consists of.
FILES = ("csv", "page")
SOUND = fits(StoredReport, fields_of(StoredReport))


def get_report(store: Store, fleet: str, report_date: str) -> Document | None:
    """Return the report (schema StoredReport) of a fleet and date, once it is built. Index: (fleet, report_date).

    Raises InvalidDocument.
    """
    match = {"fleet": fleet, "report_date": report_date}
    found = store.reports.find_one(match, {"_id": 0})
    if found is not None and not SOUND(found):
        raise InvalidDocument(store.reports, match)
    return found


def read_file(store: Store, file: Document) -> Iterator[bytes]:
    """Yield the content of a report's file (schema StoredFile), one chunk of GridFS at a time.

    pymongo's own reader asks for 16 MB at once, of each file that is being read. Index: (files_id, n).
    """
    read = number = 0
    while read < file["bytes"]:
        chunk = store.db[f"{BUCKET}.chunks"].find_one({"files_id": file["file_id"], "n": number}, {"_id": 0, "data": 1})
        if chunk is None:
            raise LookupError(f"Chunk {number} of the report's file {file['file_id']} is missing.")
        yield bytes(chunk["data"])
        read, number = read + len(chunk["data"]), number + 1
