"""The rate limit: calls of a fleet, counted by Flask-Limiter in a storage that all workers and hosts share.

The windows are fixed: one opens with a fleet's first call and closes a period later. That is exact within a window and
costs one operation a call; across the edge of two windows up to twice the limit can pass within one period.
"""

import math
import time
from typing import Any

from flask import Flask, Response, current_app, g, request
from flask_limiter import Limiter
from flask_limiter.constants import ConfigVars
from limits import RateLimitItem
from limits.storage import MongoDBStorage
from pymongo import MongoClient

from app.config import Config
from app.db import OPERATION_TIMEOUT_MS, connect
from app.errors import RateLimitExceeded

POLICY = "fleet"


def register(app: Flask, config: Config, client: MongoClient[Any]) -> None:
    """Count every authenticated call of `app`, whatever becomes of it, and tell the client where it stands."""
    # By default a call of an unknown path, which has no endpoint, is not counted.
    app.config[ConfigVars.REQUEST_IDENTIFIER] = lambda: request.endpoint or "unknown"
    app.extensions["rate_limiter"] = limiter = Limiter(
        key_func=lambda: g.key.fleet,
        app=app,
        application_limits=[str(config.rate_limit)],
        strategy="fixed-window",
        # With its storage down the service goes on serving, uncounted.
        swallow_errors=True,
        **_storage(config, client),
    )

    @limiter.request_filter
    def is_exempt() -> bool:
        return "key" not in g

    @app.after_request
    def tell(response: Response) -> Response:
        if (limit := limiter.current_limit) is None:
            return response
        try:
            reset_time, remaining = limit.window
        except Exception:
            app.logger.exception("rate limit storage failed; answering without its headers")
            return response
        amount, (reset_at, wait) = limit.limit.amount, _reopens(reset_time)
        response.headers["X-RateLimit-Limit"] = str(amount)
        response.headers["X-RateLimit-Remaining"] = str(remaining)
        response.headers["X-RateLimit-Reset"] = str(reset_at)
        response.headers["RateLimit-Policy"] = f'"{POLICY}";q={amount};w={limit.limit.get_expiry()}'
        response.headers["RateLimit"] = f'"{POLICY}";r={remaining};t={wait}'
        if limit.breached:
            response.headers["Retry-After"] = str(wait)
        return response


def count_failure(address: str) -> None:
    """Count a call without a valid key from a client address. Raises RateLimitExceeded past the limit."""
    limiter = current_app.extensions["rate_limiter"].limiter
    limit: RateLimitItem = current_app.extensions["config"].auth_failure_limit
    identity = ("authentication-failure", address)
    try:
        within = limiter.hit(limit, *identity)
        window = None if within else limiter.get_window_stats(limit, *identity)
    except Exception:
        current_app.logger.exception("rate limit storage failed; serving uncounted")
        return
    if window is not None:
        _, wait = _reopens(window.reset_time)
        raise RateLimitExceeded(
            f"Over the limit of {limit} for calls without a valid key; see Retry-After.",
            headers={"Retry-After": str(wait)},
        )


def _reopens(reset_time: float) -> tuple[int, int]:
    """Return when a window has surely closed: in epoch seconds, and in whole seconds from now, at least 1."""
    reset_at = int(reset_time) + 1
    return reset_at, max(1, math.ceil(reset_at - time.time()))


class _ClientStorage(MongoDBStorage):
    """Counters in MongoDB through a client that is open already; whoever opened it closes it."""

    STORAGE_SCHEME = ["mongodb-client"]

    def _init_mongo_client(self, uri: str | None, **options: Any) -> MongoClient[Any]:
        client: MongoClient[Any] = options["client"]
        return client

    def __del__(self) -> None:
        pass


def _storage(config: Config, client: MongoClient[Any]) -> dict[str, Any]:
    uri = config.ratelimit_storage_uri
    if not uri and not config.mongodb_uri:
        # A store in memory lives in one process, and so may the counters.
        return {"storage_uri": "memory://"}
    if uri and not uri.startswith("mongodb"):
        return {"storage_uri": uri}
    if uri:
        client = connect(uri, timeoutMS=OPERATION_TIMEOUT_MS)
    # A database of its own, so that the service needs no right to write to the data.
    options = {"client": client, "database_name": f"{config.mongodb_database}_limits"}
    return {"storage_uri": "mongodb-client://", "storage_options": options}
