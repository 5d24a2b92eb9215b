"""The access log: one line for each request."""

import time

from flask import Response, g, request

from app.services import get_services


def write(response: Response) -> None:
    """Log a request at INFO. The line has the route instead of the path, which may contain anything."""
    credential, scope = g.get("api_key") or g.get("report_link"), g.get("scope")
    get_services().log.info(
        "request",
        method=request.method,
        route=request.url_rule and request.url_rule.rule,
        status=response.status_code,
        duration_ms=round((time.perf_counter() - g.started) * 1000, 1),
        bytes=response.content_length,
        fleet=scope and scope.fleet,
        scope=scope and scope.kind,
        key_id=credential and credential.key_id,
        client=g.get("client"),
    )
