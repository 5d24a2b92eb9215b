"""The cursor of the change feed: how far a client has read it, as opaque text with a checksum."""

import base64
import hashlib
import json
from typing import Any, NamedTuple

from marshmallow import Schema, ValidationError

from schemas.fields import Count, EpochMs, Int64, Text
from schemas.query import FLEET

CHECKSUM_BYTES = 8
# How long after the client was last caught up a cursor is valid: a day less than the feed keeps the deletions.
CURSOR_DAYS = 29
START_AGAIN = "Start without a cursor and with an empty copy."
# The message for every invalid cursor. It gives no reason, so it repeats nothing that the client sent.
INVALID = f"Must be a cursor that this service returned for this fleet. {START_AGAIN}"
EXPIRED = f"Must be of a client that was caught up in the last {CURSOR_DAYS} days. {START_AGAIN}"


class FeedCursor(NamedTuple):
    """How far a client has read a feed.

    - `change`, `trip_id`: the client has applied all changes up to this pair, in the order of the pair.
    - `trip_end_time`, `end_trip_id`: the client has applied all trips that became visible up to this pair.
    - `caught_up_change`, `caught_up_at`: the last change of the feed when the client had last applied all of them, or
      began with an empty copy; and when that was.
    - `next_end_time`: the trips that are not in the copy yet end at this time or later, unless they were changed since.

    An empty `trip_id` or `end_trip_id` comes before every other. Times are epoch milliseconds.
    """

    feed_id: str
    caught_up_change: int
    caught_up_at: int
    change: int
    trip_id: str
    trip_end_time: int
    end_trip_id: str
    next_end_time: int


class CursorContent(Schema):
    """The fields of a FeedCursor."""

    feed_id = Text()
    caught_up_change = Count()
    caught_up_at = EpochMs()
    change = Count()
    trip_id = Text()
    trip_end_time = Int64()
    end_trip_id = Text()
    next_end_time = EpochMs()


CONTENT = CursorContent()


def encode_cursor(fleet: str, cursor: FeedCursor) -> str:
    """Return a cursor of the feed of a fleet as text."""
    content = json.dumps(cursor, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_checksum(fleet, content) + content).rstrip(b"=").decode()


def decode_cursor(fleet: str, text: str) -> FeedCursor:
    """Return the cursor that a text contains. Raises marshmallow.ValidationError unless it was made for this fleet.

    The checksum finds mistakes. It has no secret: a cursor gives access to nothing that the key does not.
    """
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[CHECKSUM_BYTES:]
        values = zip(FeedCursor._fields, json.loads(content), strict=True)
        cursor = FeedCursor(**CONTENT.load(dict(values)))
        # Base64 of another alphabet, or with bits that are not used, decodes to the same bytes.
        is_own = encode_cursor(fleet, cursor) == text
    except (ValueError, TypeError, RecursionError, ValidationError):
        is_own = False
    if not is_own:
        raise ValidationError(INVALID)
    return cursor


class CursorParam(Text):
    """A cursor of the feed of the fleet, as a FeedCursor."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        return decode_cursor(data[FLEET], super()._deserialize(value, attr, data, **kwargs))


def _checksum(fleet: str, content: bytes) -> bytes:
    return hashlib.blake2b(fleet.encode() + b"\n" + content, digest_size=CHECKSUM_BYTES).digest()
