"""What requests and answers carry in their headers."""

from typing import Any, ClassVar

from marshmallow import Schema

from schemas.fields import EXAMPLE_REQUEST_ID, Count, Int64, Text


class MaskText(Text):
    """A field mask."""

    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "mask"}


class MaskHeaders(Schema):
    """Of a request that wants less than the whole answer."""

    mask = MaskText(
        "Field mask: the names of the fields to answer with, in that order; `{a,b{c,d}}` stands for a, and for c and d "
        "of b, of each where b is a list. `*` stands for all the others; names that are not known are left out. The "
        "schemas describe whole answers.",
        data_key="X-Fields",
    )


class ConditionalRequestHeaders(Schema):
    """Of a request from a client that holds an earlier answer."""

    held = Text(
        "The `ETag` of the answer that the client holds, or several, separated by commas: where one still holds, the "
        "answer is an empty 304.",
        data_key="If-None-Match",
    )


class ETagHeaders(Schema):
    """Of an answer that a client may keep, and ask again for."""

    tag = Text(
        "What tells this answer from all others to the request; to be sent as If-None-Match.",
        example='"5b0c9d2f8a1e4c7d6f3b2a19"',
        data_key="ETag",
        required=True,
    )


class FileHeaders(Schema):
    """Of a file."""

    disposition = Text(
        "Whether the file is one to save or to show, and a name for it.",
        example="attachment; filename=acme-report-2026-03-16.csv",
        data_key="Content-Disposition",
        required=True,
    )


class ResponseHeaders(Schema):
    """Of every answer."""

    request_id = Text(
        "Identifier of the request: the one sent as X-Request-ID if that has 1 to 64 letters, digits, `.`, `_` or `-`.",
        example=EXAMPLE_REQUEST_ID,
        data_key="X-Request-ID",
        required=True,
    )
    cache_control = Text(
        "Who may keep the answer: `private` is the client alone; with `no-cache` it asks each time whether that "
        "still holds.",
        example="private",
        data_key="Cache-Control",
        required=True,
    )


class RateLimitHeaders(Schema):
    """Of every answer to a valid key, as long as calls can be counted."""

    limit = Count("Calls that the fleet may make in a period.", example=5000, data_key="X-RateLimit-Limit")
    remaining = Count("Calls left in this period.", example=4999, data_key="X-RateLimit-Remaining")
    reset = Count("When the period ends, in epoch seconds.", example=1_773_043_260, data_key="X-RateLimit-Reset")
    policy = Text(
        "The limit as draft-ietf-httpapi-ratelimit-headers-10 has it: q calls a window of w seconds.",
        example='"fleet";q=5000;w=60',
        data_key="RateLimit-Policy",
    )
    state = Text(
        "Where the fleet stands, as the same draft has it: r calls left, t seconds until the window ends.",
        example='"fleet";r=4999;t=60',
        data_key="RateLimit",
    )


class RetryAfterHeaders(Schema):
    """Of an answer that asks to wait."""

    retry_after = Int64("Seconds to wait, at least.", low=1, example=2, data_key="Retry-After", required=True)


class ChallengeHeaders(Schema):
    """Of an answer that asks for a key."""

    challenge = Text("The scheme to use.", example='APIKEY realm="fleet"', data_key="WWW-Authenticate", required=True)


class AllowHeaders(Schema):
    """Of an answer that refuses a method."""

    allow = Text("The methods of this path.", example="GET, HEAD, OPTIONS", data_key="Allow", required=True)


def header_names(*shapes: Schema) -> list[str]:
    """Return the names of the headers of these shapes."""
    return [field.data_key or name for shape in shapes for name, field in shape.fields.items()]
