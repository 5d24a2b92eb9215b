"""The access log: one line a request."""

import time

from flask import Response, g, request

from app.logs import get_log


def start() -> None:
    """Set `g.started`, the time at which the request began."""
    g.started = time.perf_counter()


def write(response: Response) -> None:
    """Log the request of a response, at INFO. The line names the route, not the path, which may hold anything."""
    key = g.get("api_key") or g.get("report_link")
    get_log().info(
        "request",
        method=request.method,
        route=request.url_rule and request.url_rule.rule,
        status=response.status_code,
        duration_ms=round((time.perf_counter() - g.started) * 1000, 1),
        bytes=response.content_length,
        fleet=key and key.fleet,
        key_id=key and key.key_id,
        client=g.get("client"),
    )
