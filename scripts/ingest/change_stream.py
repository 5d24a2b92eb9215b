"""The change stream of the sources: which documents other programs changed.

MongoDB limits an event to 16 MB, so the stream has only the `_id` of each document, and `follow` reads the
document again when it applies the change.
"""

import contextlib
import datetime
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import bson
from pymongo.errors import OperationFailure

from app.store import SOURCES, Document, Store
from schemas.periods import now_ms
from scripts.ingest.resume_tokens import ResumeToken

# A batch ends at whichever limit comes first.
BATCH_CHANGES = 2_000
BATCH_SECONDS = 0.1
# How long MongoDB waits for a change before it replies that there is none.
AWAIT_MS = 100
OPERATION_TYPES = ("insert", "update", "replace", "delete")
# Every transaction of the commands changes the state of its fleet first. So the stream tells which changes have their
# read models already.
PIPELINE: list[Document] = [
    {"$match": {"ns.coll": {"$in": [*SOURCES, "fleets"]}}},
    {"$project": dict.fromkeys(("operationType", "ns", "documentKey._id", "lsid", "txnNumber", "wallTime"), 1)},
]
# MongoDB's label of errors after which a stream cannot go on from its resume token, its codes for a token that is no
# longer in the oplog, and those for a value that is no resume token.
LOST_LABEL = "NonResumableChangeStreamError"
LOST_CODES = (280, 286, 9, 15, 260, 40647, 40649, 50795, 50811)


class ResumeTokenLost(Exception):
    """The stream cannot go on from its resume token. The message is the reason."""


class Batch(NamedTuple):
    """Changes: the collection and the `_id` of each document, and the resume token after them.

    `change_count` includes the changes of the commands, which are left out.
    """

    documents: list[tuple[str, Any]]
    change_count: int
    resume_token: ResumeToken


@contextlib.contextmanager
def _naming_lost_tokens() -> Iterator[None]:
    """Replace MongoDB's errors of the block on a token that it cannot find by ResumeTokenLost."""
    try:
        yield
    except OperationFailure as error:
        if error.code in LOST_CODES or error.has_error_label(LOST_LABEL):
            raise ResumeTokenLost(str((error.details or {}).get("errmsg", error))) from error
        raise


class ChangeStream:
    """An open change stream, from a resume token or from now on. Raises ResumeTokenLost."""

    def __init__(self, store: Store, resume_token: ResumeToken | None = None) -> None:
        token = bson.decode(resume_token.token) if resume_token else None
        with _naming_lost_tokens():
            self._stream = store.db.watch(PIPELINE, resume_after=token, max_await_time_ms=AWAIT_MS)
        self._opened_ms = now_ms()
        # The session and the number of the last transaction of a command.
        self._command: tuple[Any, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()

    def read(self) -> Batch:
        """Return the next changes, or none after AWAIT_MS without any. Raises ResumeTokenLost and PyMongoError."""
        documents, count, until_ms = list[tuple[str, Any]](), 0, now_ms()
        change = self._next()
        if change:
            # Otherwise MongoDB would reply to each request with a single change.
            time.sleep(BATCH_SECONDS)
        deadline = time.monotonic() + BATCH_SECONDS
        while change:
            count += 1
            if self._is_of_another_program(change):
                documents.append((change["ns"]["coll"], change["documentKey"]["_id"]))
            until_ms = _epoch_ms(change["wallTime"])
            if count >= BATCH_CHANGES or time.monotonic() > deadline:
                break
            requested_ms = now_ms()
            change = self._next()
            until_ms = until_ms if change else requested_ms
        return Batch(documents, count, self.resume_token(until_ms))

    def resume_token(self, until_ms: int | None = None) -> ResumeToken:
        """Return the token after the last change that was read; for a new stream, the one where it begins."""
        return ResumeToken(bson.encode(self._stream.resume_token or {}), until_ms or self._opened_ms)

    def _next(self) -> Document | None:
        with _naming_lost_tokens():
            change: Document | None = self._stream.try_next()
        if not self._stream.alive:
            raise ResumeTokenLost("the database was dropped")
        if change and change["operationType"] not in OPERATION_TYPES:
            raise ResumeTokenLost(f"the collection {change['ns']['coll']} was dropped or renamed")
        return change

    def _is_of_another_program(self, change: Document) -> bool:
        transaction = (change.get("lsid"), change.get("txnNumber"))
        if change["ns"]["coll"] not in SOURCES:
            self._command = transaction
            return False
        return "txnNumber" not in change or transaction != self._command


def _epoch_ms(time_utc: datetime.datetime) -> int:
    return int(time_utc.replace(tzinfo=datetime.UTC).timestamp() * 1000)
