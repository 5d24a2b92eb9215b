"""A peer: the FastAPI application with the usual additions: a rate limit, ETags, request ids and a request log."""

import hashlib
import logging
import os
import secrets
import sys
import time

import orjson
import structlog
from fast import Fleet, create_app
from fastapi import Depends, HTTPException, Request
from limits import parse
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string
from starlette.datastructures import Headers, MutableHeaders

rate = parse(os.environ["RATE_LIMIT"])
# redis-py is also the client of the service. By default, `limits` uses another asynchronous client.
storage = storage_from_string(f"async+{os.environ['RATELIMIT_STORAGE_URI']}", implementation="redispy")
limiter = FixedWindowRateLimiter(storage)
# The settings that structlog's documentation recommends for performance.
structlog.configure(
    cache_logger_on_first_use=True,
    wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper("iso"),
        structlog.processors.JSONRenderer(serializer=orjson.dumps),
    ],
    logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
)
log = structlog.get_logger()


async def count(request: Request, fleet: Fleet):
    """Count a request for the rate limit of its fleet, which all endpoints share."""
    request.state.fleet = fleet
    if not await limiter.hit(rate, fleet):
        raise HTTPException(429, headers={"Retry-After": str(rate.get_expiry())})


class ConditionalGet:
    """Adds an ETag, a digest of the body, and sends 304 if the request has the same ETag."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = None

        async def send_with_etag(message):
            nonlocal start
            # Keep the start of the response until the body comes, which FastAPI sends in one piece.
            if message["type"] == "http.response.start":
                start = message
                return
            if start["status"] == 200:
                # The fastest digest of hashlib, because processors have instructions for it.
                etag = f'"{hashlib.sha256(message["body"]).hexdigest()}"'
                if etag in Headers(scope=scope).get("if-none-match", ""):
                    start, message = {**start, "status": 304, "headers": []}, {**message, "body": b""}
                MutableHeaders(scope=start).append("ETag", etag)
            await send(start)
            await send(message)

        await self.app(scope, receive, send_with_etag)


class RequestLog:
    """Logs a line for each request, with the request id of the client or a random one."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500
        request_id = Headers(scope=scope).get("x-request-id") or secrets.token_hex(16)

        async def send_with_id(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).append("X-Request-ID", request_id)
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            log.info(
                "request",
                method=scope["method"],
                route=getattr(scope.get("route"), "path", None),
                status=status,
                duration_ms=round((time.perf_counter() - started) * 1000, 1),
                fleet=scope.get("state", {}).get("fleet"),
                request_id=request_id,
            )


app = create_app([Depends(count)])
app.add_middleware(ConditionalGet)
# Added last, so that it is the outer middleware and sees the final response.
app.add_middleware(RequestLog)
