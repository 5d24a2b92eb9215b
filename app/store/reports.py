"""Reports of a fleet: what is built, and the files, which lie in GridFS."""

from collections.abc import Iterator

from gridfs import GridFSBucket

from app.store import Document, InvalidDocument, Store
from schemas.introspection import fields_of, make_document_check
from schemas.stored import StoredReport

# GridFS keeps a bucket in two collections: NAME.files and NAME.chunks.
BUCKET = "report_files"
# What a report consists of.
FILES = ("csv", "page")
is_valid_document = make_document_check(StoredReport, fields_of(StoredReport))


def get_report(store: Store, fleet: str, report_date: str) -> Document | None:
    """Return the report (schema StoredReport) of a fleet and date, once it is built. Index: (fleet, report_date).

    Raises InvalidDocument.
    """
    match = {"fleet": fleet, "report_date": report_date}
    found = store.reports.find_one(match, {"_id": 0})
    if found is not None and not is_valid_document(found):
        raise InvalidDocument(store.reports, match)
    return found


def read_file(store: Store, file: Document) -> Iterator[bytes]:
    """Yield the content of a report's file (schema StoredFile), one chunk of GridFS at a time.

    pymongo reads up to 16 MB ahead. Index: (files_id, n). Raises pymongo's errors, CorruptGridFile among them.
    """
    stream = GridFSBucket(store.db, BUCKET).open_download_stream(file["file_id"])
    while chunk := stream.readchunk():
        yield chunk
