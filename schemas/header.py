"""The headers of requests and responses."""

from typing import Any, ClassVar

from marshmallow import Schema

from schemas.fields import EXAMPLE_REQUEST_ID, MAX_SAFE_INT, Count, Int64, Text


class MaskText(Text):
    """A field mask."""

    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "mask"}


class MaskHeaders(Schema):
    """The header of a request for some of the fields of a response."""

    mask = MaskText(
        "Field mask: the fields to return, in this order. `{a,b{c,d}}` selects `a`, and the fields `c` and `d` of `b`; "
        "if `b` is a list, those of each element. `*` selects all other fields. Unknown names are ignored. The schemas "
        "describe responses without a mask.",
        data_key="X-Fields",
    )


class ConditionalRequestHeaders(Schema):
    """The header of a conditional request."""

    if_none_match = Text(
        "The `ETag` of a response that you have stored, or several, separated by commas. If one is current, the "
        "response is an empty 304.",
        data_key="If-None-Match",
    )


class ETagHeaders(Schema):
    """The header of a response that a client may store and revalidate."""

    etag = Text(
        "Version of this response. Send it as `If-None-Match` with the next request.",
        example='"5b0c9d2f8a1e4c7d6f3b2a19"',
        data_key="ETag",
        required=True,
    )


class FileHeaders(Schema):
    """The header of a file."""

    disposition = Text(
        "Whether to save or to display the file, and a name for it.",
        example="attachment; filename=acme-report-2026-03-16.csv",
        data_key="Content-Disposition",
        required=True,
    )


class ResponseHeaders(Schema):
    """The headers of every response."""

    request_id = Text(
        "Identifier of the request: the `X-Request-ID` of the request if that is 1 to 64 letters, digits, `.`, `_` or "
        "`-`; otherwise a new one.",
        example=EXAMPLE_REQUEST_ID,
        data_key="X-Request-ID",
        required=True,
    )
    cache_control = Text(
        "Who may store the response. `no-store`: nobody. `private`: only the client. `no-cache`: the client has to "
        "revalidate the stored response before it uses it.",
        example="private, no-cache",
        data_key="Cache-Control",
        required=True,
    )
    link = Text(
        "Links to related resources (RFC 8288): this document, as `service-desc`; of a page of a list also the `next`, "
        "the previous (`prev`) and the `first` page, those that exist.",
        example='<https://api.example.com/api/v1/openapi.json>; rel="service-desc"',
        data_key="Link",
        required=True,
    )


class RateLimitHeaders(Schema):
    """The rate limit status of the fleet or driver: in every response to a counted request with a valid key."""

    limit = Count(
        "Requests that the fleet, or the driver, may make in a rate limit window.",
        high=MAX_SAFE_INT,
        example=5000,
        data_key="X-RateLimit-Limit",
    )
    remaining = Count(
        "Requests left in this rate limit window.",
        high=MAX_SAFE_INT,
        example=4999,
        data_key="X-RateLimit-Remaining",
    )
    reset = Count(
        "Time at which the rate limit window closes, in epoch seconds.",
        high=MAX_SAFE_INT,
        example=1_773_043_260,
        data_key="X-RateLimit-Reset",
    )
    policy = Text(
        "The limit, as draft-ietf-httpapi-ratelimit-headers-10 defines it: `q` requests in a window of `w` seconds. "
        'The name is `"fleet"`, or with a key of one driver `"driver"`.',
        example='"fleet";q=5000;w=60',
        data_key="RateLimit-Policy",
    )
    status = Text(
        "The rate limit status, as the same draft defines it: `r` requests left, `t` seconds until the window closes.",
        example='"fleet";r=4999;t=60',
        data_key="RateLimit",
    )


class RetryAfterHeaders(Schema):
    """The header of a response that asks the client to wait."""

    retry_after = Int64(
        "Minimum number of seconds to wait before the next request.",
        low=1,
        high=MAX_SAFE_INT,
        example=2,
        data_key="Retry-After",
        required=True,
    )


class ChallengeHeaders(Schema):
    """The header of a response that asks for a key."""

    challenge = Text(
        "The authentication scheme to use.", example='APIKEY realm="fleet"', data_key="WWW-Authenticate", required=True
    )


class AllowHeaders(Schema):
    """The header of a response to a method that the path does not support."""

    allow = Text("The methods that the path supports.", example="GET, HEAD, OPTIONS", data_key="Allow", required=True)


def header_names(*schemas: Schema) -> list[str]:
    """Return the names of the headers that the schemas declare."""
    return [field.data_key or name for schema in schemas for name, field in schema.fields.items()]
