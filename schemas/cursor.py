"""The cursor of the change feed: a position in the feed of a fleet, as opaque text with a checksum."""

import base64
import hashlib
import json
from typing import NamedTuple

from marshmallow import Schema, ValidationError

from schemas.fields import Count, EpochMs, Int64, Text

CHECKSUM_BYTES = 8
# What a cursor cannot be used for, whatever the reason, so that the message names nothing that the client sent.
INVALID = "Must be a cursor that this service returned for this fleet. Start without a cursor."


class FeedPosition(NamedTuple):
    """How far a client has read a feed.

    The client has read all changes up to (`change`, `trip_id`), in the order of this pair. Its copy has the trips that,
    as of this change, come up to (`trip_end_time`, `end_trip_id`), in the order of that pair. An empty `trip_id` or
    `end_trip_id` comes before every other. The client had no trips before the change `first_change`. `complete_change`
    was the last change when the client had last read all of them. All trips that the client has not read end at
    `next_end_time` or later, unless they were changed since. Times are epoch milliseconds.
    """

    feed_id: str
    first_change: int
    complete_change: int
    change: int
    trip_id: str
    trip_end_time: int
    end_trip_id: str
    next_end_time: int


class CursorContent(Schema):
    """The content of a cursor: a FeedPosition."""

    feed_id = Text(required=True)
    first_change = Count(required=True)
    complete_change = Count(required=True)
    change = Count(required=True)
    trip_id = Text(required=True)
    trip_end_time = Int64(required=True)
    end_trip_id = Text(required=True)
    next_end_time = EpochMs(required=True)


CONTENT = CursorContent()


def encode_cursor(fleet: str, position: FeedPosition) -> str:
    """Return the cursor of a position in the feed of a fleet."""
    content = json.dumps(position, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_checksum(fleet, content) + content).rstrip(b"=").decode()


def decode_cursor(fleet: str, cursor: str) -> FeedPosition:
    """Return the position of a cursor. Raises marshmallow.ValidationError unless it was made for this fleet.

    The checksum is not secret, because a cursor never expires: it finds mistakes. Whoever computes one sees only what
    the key gives access to anyway.
    """
    try:
        content = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[CHECKSUM_BYTES:]
        values = zip(FeedPosition._fields, json.loads(content), strict=True)
        position = FeedPosition(**CONTENT.load(dict(values)))
        # Base64 of another alphabet, or with bits that are not used, decodes to the same bytes.
        is_own = encode_cursor(fleet, position) == cursor
    except (ValueError, TypeError, RecursionError, ValidationError):
        is_own = False
    if not is_own:
        raise ValidationError({"cursor": [INVALID]})
    return position


def _checksum(fleet: str, content: bytes) -> bytes:
    return hashlib.blake2b(fleet.encode() + b"\n" + content, digest_size=CHECKSUM_BYTES).digest()
