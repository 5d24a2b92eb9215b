"""The reports of a fleet, and their files in GridFS."""

from collections.abc import Iterator

from gridfs import GridFSBucket

from app.store import Document, InvalidDocument, Store
from schemas.introspection import fields_of, make_document_check
from schemas.stored import StoredReport

# GridFS stores a bucket in two collections: NAME.files and NAME.chunks.
BUCKET = "report_files"
# The files of a report, as fields of its document.
FILES = ("csv", "page")
is_valid_document = make_document_check(StoredReport, fields_of(StoredReport))


def get_report(store: Store, fleet: str, report_date: str) -> Document | None:
    """Return the report (schema StoredReport) of a fleet and date, or None. Index: (fleet, report_date).

    Raises InvalidDocument.
    """
    match = {"fleet": fleet, "report_date": report_date}
    report = store.reports.find_one(match, {"_id": 0})
    if report is not None and not is_valid_document(report):
        raise InvalidDocument(store.reports, match)
    return report


def read_file(store: Store, file: Document) -> Iterator[bytes]:
    """Yield the content of a report's file (schema StoredFile), one chunk of GridFS at a time.

    PyMongo reads up to 16 MB ahead. Index: (files_id, n). Raises PyMongoError, for example CorruptGridFile.
    """
    stream = GridFSBucket(store.db, BUCKET).open_download_stream(file["file_id"])
    while chunk := stream.readchunk():
        yield chunk
