"""Cursors: how far a client has read, as opaque text that only this service can make."""

import base64
import hashlib
import hmac
import json
from typing import Any, NamedTuple

from marshmallow import ValidationError

from schemas.fields import Text
from schemas.query import FLEET

CHECKSUM_BYTES, SIGNATURE_BYTES = 8, 16
# How long after the client was last caught up a cursor is valid: a day less than the feed keeps the deletions.
CURSOR_DAYS = 29
# The cursor of a client that has nothing yet: for tools that send each parameter.
START = "start"
START_AGAIN = "Start without a cursor and with an empty copy."
# The message for every invalid cursor. It gives no reason, so it repeats nothing that the client sent.
INVALID = f"Must be a cursor that this service returned for this fleet. {START_AGAIN}"
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


def sign(key: str, *values: Any) -> str:
    """Return the signature of values that JSON can have, which takes the secret key to make (HMAC-SHA256)."""
    digest = hmac.digest(key.encode(), json.dumps(values).encode(), "sha256")
    return base64.urlsafe_b64encode(digest[:SIGNATURE_BYTES]).rstrip(b"=").decode()


def sign_cursor(key: str, fleet: str, cursor: FeedCursor) -> FeedCursor:
    """Return the cursor with its signature by the key of the feed, or unsigned if there is no feed, and so no key."""
    return cursor._replace(signature=sign(key, fleet, *cursor[1:]) if key else "")


def is_signed(key: str, fleet: str, cursor: FeedCursor) -> bool:
    """Return whether the cursor has its signature by the key of the feed."""
    return hmac.compare_digest(str(cursor.signature).encode(), sign_cursor(key, fleet, cursor).signature.encode())


def encode_cursor(fleet: str, cursor: FeedCursor) -> str:
    """Return a cursor of the feed of a fleet as text."""
    content = json.dumps(cursor, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_checksum(fleet, content) + content).rstrip(b"=").decode()


def decode_cursor(fleet: str, text: str) -> FeedCursor:
    """Return the cursor that a text contains. Raises marshmallow.ValidationError unless it was made for this fleet.

    The checksum finds mistakes before the feed is read. Only the signature finds a cursor that a client has made.
    """
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[CHECKSUM_BYTES:]
        cursor = FeedCursor(*json.loads(content))
        # Base64 of another alphabet, or with bits that are not used, decodes to the same bytes.
        is_own = set(map(type, cursor)) <= {str, int} and encode_cursor(fleet, cursor) == text
    except (ValueError, TypeError, RecursionError):
        is_own = False
    if not is_own:
        raise ValidationError(INVALID)
    return cursor


class CursorParam(Text):
    """A cursor of the feed of the fleet, as a FeedCursor, or None for its start."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        return None if text == START else decode_cursor(data[FLEET], text)


def _checksum(fleet: str, content: bytes) -> bytes:
    return hashlib.blake2b(fleet.encode() + b"\n" + content, digest_size=CHECKSUM_BYTES).digest()
