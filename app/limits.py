"""The rate limit: calls of a fleet, counted by Flask-Limiter in a storage that all workers and hosts share.

The windows are fixed: one opens with a fleet's first call and closes a period later. That is exact within a window;
across the edge of two windows up to twice the limit can pass within one period. A call costs an operation of the
storage to count and two to tell the client. With the storage down the service goes on, uncounted, and the log says so.
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

from app.config import Config, ConfigError
from app.db import bounded_client
from app.errors import RateLimitExceeded

POLICY = "fleet"
SECONDS_BETWEEN_WARNINGS = 60
# Redis is as near as the store, and a call waits for it before anything else.
REDIS_TIMEOUT_SECONDS = 0.5
# limits asks Redis for whole seconds, which it rounds, and adds them to a clock rounded down.
REDIS_ROUNDING_SECONDS = 1.5


def register(app: Flask, config: Config, client: MongoClient[Any]) -> None:
    """Count every authenticated call of `app`, whatever becomes of it, and tell the client where it stands."""
    # By default a call of an unknown path, which has no endpoint, is not counted.
    app.config[ConfigVars.REQUEST_IDENTIFIER] = lambda: request.endpoint or "unknown"
    storage = _storage(config, client)
    try:
        limiter = Limiter(
            key_func=lambda: g.key.fleet,
            app=app,
            application_limits=[str(config.rate_limit)],
            strategy="fixed-window",
            swallow_errors=True,
            **storage,
        )
    except Exception:
        # Each storage raises errors of its own, some of them with the URI.
        raise ConfigError("RATELIMIT_STORAGE_URI cannot be used: no storage can be opened with it.") from None
    app.extensions["rate_limiter"] = limiter

    @limiter.request_filter
    def is_exempt() -> bool:
        return "key" not in g

    @app.after_request
    def tell(response: Response) -> Response:
        if "key" not in g:
            return response
        # Of a call that could not be counted, Flask-Limiter knows no limit.
        if (limit := limiter.current_limit) is None:
            _tell_of_failure(None)
            return response
        try:
            reset_time, remaining = limit.window
        except Exception as error:
            _tell_of_failure(error)
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
    except Exception as error:
        _tell_of_failure(error)
        return
    if window is not None:
        _, wait = _reopens(window.reset_time)
        raise RateLimitExceeded(
            f"Over the limit of {limit} for calls without a valid key; see Retry-After.",
            headers={"Retry-After": str(wait)},
        )


def _tell_of_failure(error: Exception | None) -> None:
    """Say in the log, once a minute and worker, that calls are not counted."""
    last = current_app.extensions.get("rate_limit_failure_told", -math.inf)
    if (now := time.monotonic()) - last >= SECONDS_BETWEEN_WARNINGS:
        current_app.extensions["rate_limit_failure_told"] = now
        current_app.logger.warning("the rate limit's storage fails, serving uncounted: %s", error or "not reached")


def _reopens(reset_time: float) -> tuple[int, int]:
    """Return when a window has surely closed: in epoch seconds, and in whole seconds from now, at least 1."""
    if current_app.extensions["config"].ratelimit_storage_uri.startswith("redis"):
        reset_time += REDIS_ROUNDING_SECONDS
    return int(reset_time) + 1, max(1, math.floor(reset_time - time.time()) + 1)


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
    if uri.startswith("redis"):
        timeouts = {"socket_timeout": REDIS_TIMEOUT_SECONDS, "socket_connect_timeout": REDIS_TIMEOUT_SECONDS}
        return {"storage_uri": uri, "storage_options": timeouts}
    if uri.startswith("memory"):
        return {"storage_uri": uri}
    if uri:
        client = bounded_client(uri, "RATELIMIT_STORAGE_URI")
    # A database of its own, so that the service needs no right to write to the data.
    options = {"client": client, "database_name": f"{config.mongodb_database}_limits"}
    return {"storage_uri": "mongodb-client://", "storage_options": options}
