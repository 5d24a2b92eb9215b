"""What is served as it lies in the store: JSON, written once, when what it is made of was written.

`served_spans` has what follows from a driver and the trips, one document a span of time:

- "": the driver, all of the time: the Driver as `text`, and the `buckets` of the trips
- "2026-11-17": a day: its Daily summary as `text`, and the first bucket of its trips, which are the `rows`, in summary
  form, with their `ends`; "2026-11-17#000001" is the next bucket of a day that has more
- "P7D/2026-11-16": a week, from its Monday on: its Weekly summary as `text`

`served_drivers` has the driver list, PAGE_ROWS a page, and at COUNT how long it is. A version changes with what its
document holds. What is being written, or was when a command was killed, is marked stale, and answered from `drivers`
and `trips` instead; so is what is not there, or out of shape.
"""

import functools
import hashlib
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from orjson import Fragment
from pymongo.database import Database

from app.store import Document
from app.store.buckets import VERSION_BYTES

DRIVER = ""
PAGE_ROWS = 100
COUNT = -1

# What comes of documents that are not as they should be.
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError)

T = TypeVar("T")
log = logging.getLogger(__name__)

# Tells whether the client holds the answer of a version.
Seen = Callable[[bytes], bool]


class Found(NamedTuple):
    """An answer: its content, or None where the client holds it; its version, or None where the content tells it."""

    content: Document | None
    version: bytes | None


def from_served(read: Callable[..., T]) -> Callable[..., T | None]:
    """Make `read`, of a database, a fleet and more, return None where what it read is out of shape, and log that."""

    @functools.wraps(read)
    def run(db: Database[Document], fleet: str, *more: Any, **about: Any) -> T | None:
        try:
            return read(db, fleet, *more, **about)
        except MALFORMED:
            log.exception("out of shape, and not used: what is served of fleet %s, %s", fleet, (*more, about))
            return None

    return run


def text_of(document: Document) -> Fragment:
    """Return the JSON text of a document. Raises TypeError where it is none."""
    if not isinstance(document["text"], bytes):
        raise TypeError(f"text is {type(document['text'])}")
    return Fragment(document["text"])


def joined(rows: list[bytes]) -> Fragment:
    """Return the JSON list of what is JSON already."""
    return Fragment(b"[" + b",".join(rows) + b"]")


def week_span(monday: str) -> str:
    """Return the span of the week that begins on a date, which sorts after all days."""
    return f"P7D/{monday}"


def version_of(*contents: bytes) -> bytes:
    """Return the version of some content: 8 bytes, by which two contents differ but for one chance in 2**64."""
    digest = hashlib.blake2b(digest_size=VERSION_BYTES)
    for content in contents:
        digest.update(content)
    return digest.digest()
