"""The headers that every response carries, and CORS."""

from flask import Response, current_app, g, request

from app.config import Config
from schemas.header import (
    ConditionalRequestHeaders,
    ETagHeaders,
    FileHeaders,
    MaskHeaders,
    RateLimitHeaders,
    ResponseHeaders,
    RetryAfterHeaders,
    header_names,
)

# Its responses hold links that need no key: no cache may store them, or an error in their place.
REPORT_LINKS_ENDPOINT = "report.get_report_links"
# What a browser's script may send, and what it may read of a response.
CORS_REQUEST_HEADERS = ", ".join(
    ("Authorization", "Content-Type", *header_names(MaskHeaders(), ConditionalRequestHeaders()), "X-Request-ID")
)
CORS_RESPONSE_HEADERS = ", ".join(
    header_names(ResponseHeaders(), ETagHeaders(), FileHeaders(), RateLimitHeaders(), RetryAfterHeaders())
)


def complete(response: Response) -> None:
    """Add the headers that every response carries."""
    headers = response.headers
    # As a dict, since Werkzeug raises and catches an error for each that is not there.
    if "Cache-Control" not in dict(iter(headers)):
        headers.add("Cache-Control", "no-store" if request.endpoint == REPORT_LINKS_ENDPOINT else "private")
    headers.add("X-Request-ID", g.request_id)
    headers.add("X-Content-Type-Options", "nosniff")
    config: Config = current_app.extensions["config"]
    if config.cors_origins:
        _allow_origin(config, response)


def _allow_origin(config: Config, response: Response) -> None:
    response.vary.add("Origin")
    origin = request.headers.get("Origin")
    if origin not in config.cors_origins:
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = CORS_RESPONSE_HEADERS
    if request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = "GET, HEAD"
        response.headers["Access-Control-Allow-Headers"] = CORS_REQUEST_HEADERS
