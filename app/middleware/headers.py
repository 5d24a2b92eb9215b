"""The headers of every response, and CORS."""

from flask import Response, g, request

from app.config import API, Config
from app.endpoint import Caching
from app.responses import format_link
from app.services import get_services
from schemas.header import CONDITION, EVERY_RESPONSE, MASK, RATE_LIMIT

DOCUMENT_PATH = f"{API}/openapi.json"
# The headers that a script in a browser may send, and those that it may read. No response has those of a deprecation
# now, but docs/clients.md asks clients to look for them.
CORS_REQUEST_HEADERS = ", ".join(("Authorization", "Content-Type", MASK, CONDITION, "X-Request-ID"))
CORS_RESPONSE_HEADERS = ", ".join(
    (*EVERY_RESPONSE, "ETag", "Content-Disposition", *RATE_LIMIT, "Retry-After", "Deprecation", "Sunset")
)
# How long a browser may keep the response to a preflight request. Chromium keeps none for longer.
PREFLIGHT_SECONDS = 7_200


def add_headers(response: Response) -> None:
    """Add the headers of every response."""
    headers = response.headers
    # Werkzeug's headers raise and catch an exception for each absent name, which is slow.
    present = dict(iter(headers))
    description = format_link(DOCUMENT_PATH, "service-desc")
    headers["Link"] = f"{present['Link']}, {description}" if "Link" in present else description
    if "Cache-Control" not in present:
        headers.add("Cache-Control", Caching.NEVER)
    headers.add("X-Request-ID", g.request_id)
    headers.add("X-Content-Type-Options", "nosniff")
    config = get_services().config
    if config.cors_origins:
        _add_cors_headers(config, response)


def _add_cors_headers(config: Config, response: Response) -> None:
    response.vary.add("Origin")
    origin = request.headers.get("Origin")
    if origin not in config.cors_origins:
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = CORS_RESPONSE_HEADERS
    if request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = "GET, HEAD"
        response.headers["Access-Control-Allow-Headers"] = CORS_REQUEST_HEADERS
        response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)
