"""The headers of requests and responses, by name."""

from typing import Any, ClassVar

from marshmallow import Schema
from marshmallow.fields import Field

from schemas.fields import EXAMPLE_REQUEST_ID, MAX_SAFE_INT, Count, Int64, Text

# The field mask, and the header of a conditional request.
MASK, CONDITION = "X-Fields", "If-None-Match"
EXAMPLE_ETAG = '"5b0c9d2f8a1e4c7d6f3b2a19"'
# The headers of every response, and those of every response to a counted request with a valid key.
EVERY_RESPONSE = ("X-Request-ID", "Cache-Control", "Link")
RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit")


class MaskText(Text):
    """A field mask."""

    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "mask"}


REQUEST_HEADERS: dict[str, Field[Any]] = {
    MASK: MaskText(
        "Field mask: the fields to return, in this order. `{a,b{c,d}}` selects `a`, and the fields `c` and `d` of `b`; "
        "if `b` is a list, those of each element. `*` selects all other fields. Unknown names are ignored. The schemas "
        "describe responses without a mask, or with `*`.",
        example="*",
        required=False,
    ),
    CONDITION: Text(
        "The `ETag` of a response that you have stored, or several, separated by commas. If one is current, the "
        "response is an empty 304.",
        example=EXAMPLE_ETAG,
        required=False,
    ),
}
RESPONSE_HEADERS: dict[str, Field[Any]] = {
    "X-Request-ID": Text(
        "Identifier of the request: the `X-Request-ID` of the request if that is 1 to 64 letters, digits, `.`, `_` or "
        "`-`; otherwise a new one.",
        example=EXAMPLE_REQUEST_ID,
    ),
    "Cache-Control": Text(
        "Who may store the response. `no-store`: nobody. `private`: only the client. `no-cache`: the client has to "
        "revalidate the stored response before it uses it.",
        example="private, no-cache",
    ),
    "Link": Text(
        "Links to related resources (RFC 8288): this document, as `service-desc`; of a page of a list also the `next`, "
        "the previous (`prev`) and the `first` page, those that exist; of a page of changes only the `next`. If the "
        "links to pages have more than 4,000 bytes, only the `next` is there; if that alone has more, none is.",
        example='<https://api.example.com/api/v1/openapi.json>; rel="service-desc"',
    ),
    "ETag": Text("Version of this response. Send it as `If-None-Match` with the next request.", example=EXAMPLE_ETAG),
    "Content-Disposition": Text(
        "Whether to save or to display the file, and a name for it.",
        example="attachment; filename=acme-report-2026-03-16.csv",
    ),
    "X-RateLimit-Limit": Count(
        "Requests that the fleet, or the driver, may make in a rate limit window.", example=5000, required=False
    ),
    "X-RateLimit-Remaining": Count("Requests left in this rate limit window.", example=4999, required=False),
    "X-RateLimit-Reset": Count(
        "Time at which the rate limit window closes, in epoch seconds.", example=1_773_043_260, required=False
    ),
    "RateLimit-Policy": Text(
        "The limit, as draft-ietf-httpapi-ratelimit-headers-10 defines it: `q` requests in a window of `w` seconds. "
        'The name is `"fleet"`, or with a key of one driver `"driver"`.',
        example='"fleet";q=5000;w=60',
        required=False,
    ),
    "RateLimit": Text(
        "The rate limit status, as the same draft defines it: `r` requests left, `t` seconds until the window closes.",
        example='"fleet";r=4999;t=60',
        required=False,
    ),
    "WWW-Authenticate": Text("The authentication scheme to use.", example='APIKEY realm="fleet"'),
    "Allow": Text("The methods that the path supports.", example="GET, HEAD, OPTIONS"),
    "Retry-After": Int64(
        "Minimum number of seconds to wait before the next request.", low=1, high=MAX_SAFE_INT, example=2
    ),
}
RequestHeaders = Schema.from_dict(REQUEST_HEADERS, name="RequestHeaders")
ResponseHeaders = Schema.from_dict(RESPONSE_HEADERS, name="ResponseHeaders")
