"""Cursors: how far a client has read, as opaque text that only this service can make."""

import base64
import datetime
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from schemas.fields import Messages, Text
from schemas.query import SCOPE

# The signature is short, because a cursor stands in a request line beside twenty identifiers.
CHECKSUM_BYTES, SIGNATURE_BYTES = 8, 12
# The cursor of a list has a date as its ordinal number, in so many bytes after the signature. The position follows.
DAY_BYTES = 3
POSITION = SIGNATURE_BYTES + DAY_BYTES
# How long after the client was last caught up a cursor is valid: a day less than the feed keeps the deletions.
CURSOR_DAYS = 29
# The cursor of a client that has nothing yet: for tools that send each parameter.
START = "start"
START_AGAIN = "Start without a cursor and with an empty copy."
# The message for every invalid cursor. It gives no reason, so it repeats nothing that the client sent.
INVALID = f"Must be a cursor that this service returned for this fleet. {START_AGAIN}"
# The same for the cursor of a list.
INVALID_FOR_LIST = (
    "Must be the next_cursor of a response to the same parameters, of which only limit may differ, and to a key of the "
    "same scope. Start without a cursor."
)
EXPIRED = f"Must be of a client that was caught up in the last {CURSOR_DAYS} days. {START_AGAIN}"


class FeedCursor(NamedTuple):
    """How far a client has read a feed.

    - `signature`: see `sign_cursor`. Until it is verified, each of the other values may be any text or integer.
    - `change`, `trip_id`: the client has applied all changes up to this pair, in the order of the pair.
    - `trip_end_time`, `end_trip_id`: the client has applied all trips that became visible up to this pair.
    - `caught_up_change`, `caught_up_at`: the last change of the feed when the client had last applied all of them, or
      began with an empty copy; and when that was.
    - `next_end_time`: the trips that are not in the copy yet end at this time or later, unless they were changed since.

    An empty `trip_id` or `end_trip_id` comes before every other. Times are epoch milliseconds.
    """

    signature: str
    caught_up_change: int
    caught_up_at: int
    change: int
    trip_id: str
    trip_end_time: int
    end_trip_id: str
    next_end_time: int


class ListCursor(NamedTuple):
    """How far a client has read a list: up to the element at this position.

    - `signature`: see `sign`. Until it is verified, the other values may be any date and text.
    - `day`: the date on which the client began the list.
    - `position`: the key of the last element that was read, in the order of the list.
    """

    signature: bytes
    day: datetime.date
    position: str


def sign(key: str, *values: Any) -> bytes:
    """Return the signature of values that JSON can have, which takes the secret key to make (HMAC-SHA256)."""
    return hmac.digest(key.encode(), json.dumps(values).encode(), "sha256")[:SIGNATURE_BYTES]


def is_signature(signature: bytes, key: str, *values: Any) -> bool:
    """Return whether a value is the signature of the others. Without a key, none is."""
    return bool(key) and hmac.compare_digest(signature, sign(key, *values))


def sign_cursor(key: str, fleet: str, cursor: FeedCursor) -> FeedCursor:
    """Return the cursor with its signature by the key of the feed, or unsigned if there is no feed, and so no key."""
    signature = _encode(sign(key, fleet, *cursor[1:])) if key else ""
    return cursor._replace(signature=signature)


def is_signed(cursor: FeedCursor, key: str, fleet: str) -> bool:
    """Return whether the key of the feed has signed a cursor."""
    return bool(key) and hmac.compare_digest(
        cursor.signature.encode(), sign_cursor(key, fleet, cursor).signature.encode()
    )


def encode_cursor(scope: str, cursor: Sequence[Any]) -> str:
    """Return a cursor for a scope, which is its identity, as text."""
    content = json.dumps(cursor, ensure_ascii=False, separators=(",", ":")).encode()
    checksum = hashlib.blake2b(scope.encode() + b"\n" + content, digest_size=CHECKSUM_BYTES).digest()
    return _encode(checksum + content)


def encode_list_cursor(cursor: ListCursor) -> str:
    """Return a cursor as text. It is short, because it is in the request line beside twenty identifiers."""
    return _encode(cursor.signature + cursor.day.toordinal().to_bytes(DAY_BYTES) + cursor.position.encode())


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """Return what a text encodes. Raises ValueError.

    Base64 of another alphabet, or with bits that are not used, decodes to the same bytes: encode them to compare.
    """
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class CursorParam(Text):
    """A cursor of the feed of the fleet, as a FeedCursor, or None for its start.

    It is invalid unless it was made for this scope. The checksum finds mistakes before the store is read. Only the
    signature finds a cursor that a client has made.
    """

    default_error_messages: Messages = {"other": INVALID}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text == START:
            return None
        try:
            cursor = FeedCursor._make(json.loads(_decode(text)[CHECKSUM_BYTES:]))
            if set(map(type, cursor)) <= {str, int, bool} and encode_cursor(data[SCOPE], cursor) == text:
                return cursor
        except (ValueError, TypeError, RecursionError):
            pass
        raise self.make_error("other")


class ListCursorParam(Text):
    """A cursor of a list, as a ListCursor, or None for the start of the list."""

    default_error_messages: Messages = {"other": INVALID_FOR_LIST}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text == START:
            return None
        if cursor := parse_list_cursor(text):
            return cursor
        raise self.make_error("other")


def parse_list_cursor(text: str) -> ListCursor | None:
    """Return the cursor in a text, or None if there is none."""
    try:
        content = _decode(text)
        signature, day, position = content[:SIGNATURE_BYTES], content[SIGNATURE_BYTES:POSITION], content[POSITION:]
        cursor = ListCursor(signature, datetime.date.fromordinal(int.from_bytes(day)), position.decode())
    except ValueError:
        return None
    return cursor if encode_list_cursor(cursor) == text else None
