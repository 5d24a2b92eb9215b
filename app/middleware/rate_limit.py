"""The rate limits: requests of a fleet, and failed authentications of a client address, counted by Flask-Limiter.

The windows are fixed: one opens with the first request and closes a period later. A limit is exact within a window;
across the edge of two windows up to twice as many requests can pass within one period. Redis is the storage that
workers and hosts share; without it the one worker counts in its memory. While Redis fails, requests are served
uncounted, and the log says so once a minute.
"""

import logging
import math
import time
from typing import Any, NamedTuple

from flask import Flask, Response, current_app, g
from flask_limiter import ApplicationLimit, Limiter
from flask_limiter import RateLimitExceeded as LimitBreached
from limits import RateLimitItem
from limits.storage import RedisSentinelStorage, RedisStorage
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, TimeoutError
from redis.retry import Retry

from app import errors
from app.circuit_breaker import CircuitBreaker, CircuitOpen
from app.config import Config, ConfigError

POLICY = "fleet"
SECONDS_BETWEEN_WARNINGS = 60
# Redis is as near as the store, and a request waits for it before anything else.
REDIS_TIMEOUT_SECONDS = 0.5
# Counts in the window of a key, which a first request opens. Returns the count, and for how long (ms) it stays open.
COUNT = b"""
local count = redis.call("INCRBY", KEYS[1], ARGV[2])
if count == tonumber(ARGV[2]) then
    redis.call("EXPIRE", KEYS[1], ARGV[1])
end
return {count, redis.call("PTTL", KEYS[1])}
"""
# The Redis storages of `limits` behind a circuit breaker have its schemes with this before them.
GUARDED = "guarded+"


class RateLimitStatus(NamedTuple):
    """What a caller has left of a limit.

    The window has surely closed at `reset_at` (epoch seconds), which is `retry_after_seconds` (at least 1) from now.
    """

    limit: RateLimitItem
    remaining: int
    reset_at: int
    retry_after_seconds: int


class Window(NamedTuple):
    """The window of a key in which a request was counted; it closes at `closes_at` (epoch seconds)."""

    key: str
    requests: int
    closes_at: float


class GuardedRedis(RedisStorage):
    """Redis behind a circuit breaker: while it does not respond, one request at a time waits for it.

    A request takes one round trip: what Flask-Limiter reads of a window comes with the count.
    """

    STORAGE_SCHEME = [f"{GUARDED}redis", f"{GUARDED}rediss", f"{GUARDED}redis+unix"]

    def __init__(self, uri: str, **options: Any) -> None:
        super().__init__(uri.removeprefix(GUARDED), **options)
        self._breaker = CircuitBreaker(lambda error: isinstance(error, ConnectionError | TimeoutError))
        self._count = self.get_connection().register_script(COUNT)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count, and return the count. Raises CircuitOpen, or redis-py's errors."""
        with self._breaker.guard():
            count, remaining_ms = self._count([self.prefixed_key(key)], [expiry, amount])
        g.rate_limit_window = Window(key, count, time.time() + remaining_ms / 1000)
        return int(count)

    def get(self, key: str) -> int:
        """Return the count of the window in which the request was counted."""
        return self._window(key).requests

    def get_expiry(self, key: str) -> float:
        """Return the time (epoch seconds) at which the window in which the request was counted closes."""
        return self._window(key).closes_at

    def _window(self, key: str) -> Window:
        window: Window = g.rate_limit_window
        if window.key != key:
            raise KeyError(key)
        return window


class GuardedSentinel(GuardedRedis, RedisSentinelStorage):
    """The same for the Redis that Sentinel names."""

    STORAGE_SCHEME = [f"{GUARDED}redis+sentinel"]


def register(app: Flask, config: Config) -> None:
    """Count the requests of `app`; the hook that authenticates has to be registered before. Raises ConfigError."""
    limiter = Limiter(
        _get_fleet,
        application_limits=[ApplicationLimit(str(config.rate_limit), scope=POLICY)],
        # Flask-Limiter skips requests without an identifier. By default that is the endpoint, which unknown paths lack.
        request_identifier=lambda: "request",
        swallow_errors=True,
        **_storage(config),
    )
    limiter.request_filter(_is_public)
    limiter.logger.addFilter(_is_first_in_a_minute)
    try:
        limiter.init_app(app)
    except Exception:
        # Each storage raises errors of its own, some of them with the URI.
        raise ConfigError("RATELIMIT_STORAGE_URI cannot be used: no storage can be opened with it.") from None
    app.register_error_handler(LimitBreached, _refuse)

    @limiter.shared_limit(str(config.auth_failure_limit), "authentication-failure", key_func=_get_client)
    def count() -> None:
        """Do nothing: calling it counts."""

    app.extensions.update(rate_limiter=limiter, count_failure=count)


def count_failure() -> None:
    """Count a request without a valid key from the client `g.client`. Raises Flask-Limiter's RateLimitExceeded."""
    current_app.extensions["count_failure"]()


def add_headers(response: Response) -> None:
    """Add the headers with the rate limit status of the fleet; none if the request was not counted."""
    status = get_status() if _has_fleet() else None
    if status is not None:
        amount, period, remaining = status.limit.amount, status.limit.get_expiry(), status.remaining
        add = response.headers.add
        add("X-RateLimit-Limit", str(amount))
        add("X-RateLimit-Remaining", str(remaining))
        add("X-RateLimit-Reset", str(status.reset_at))
        add("RateLimit-Policy", f'"{POLICY}";q={amount};w={period}')
        add("RateLimit", f'"{POLICY}";r={remaining};t={status.retry_after_seconds}')


def get_status() -> RateLimitStatus | None:
    """Return what is left of the limit that the request was counted for; None if it was not counted."""
    if "rate_limit_status" not in g:
        g.rate_limit_status = _read_status()
    status: RateLimitStatus | None = g.rate_limit_status
    return status


def _get_fleet() -> str:
    fleet: str = g.key.fleet
    return fleet


def _has_fleet() -> bool:
    return "key" in g


def _is_public() -> bool:
    # Neither a fleet nor a client without a valid key asks.
    return "key" not in g and "client" not in g


def _get_client() -> str:
    # Flask-Limiter skips an empty key: that of a client of a Unix socket, where no proxy names the client.
    return g.client or "unknown"


def _storage(config: Config) -> dict[str, Any]:
    if not config.counts_in_redis:
        return {"storage_uri": "memory://"}
    # An idle connection may have been closed; by default redis-py would wait seconds between its attempts.
    options = {"retry": Retry(NoBackoff(), 1, supported_errors=(ConnectionError,))}
    timeouts = {"socket_timeout": REDIS_TIMEOUT_SECONDS, "socket_connect_timeout": REDIS_TIMEOUT_SECONDS}
    return {"storage_uri": GUARDED + config.ratelimit_storage_uri, "storage_options": options | timeouts}


def _read_status() -> RateLimitStatus | None:
    limiter: Limiter = current_app.extensions["rate_limiter"]
    current = limiter.current_limit
    if current is None:
        return None
    closes_at, remaining = current.window
    now = time.time()
    # A window that is open closes within its period.
    seconds = min(max(1, math.ceil(closes_at - now)), current.limit.get_expiry())
    return RateLimitStatus(current.limit, 0 if current.breached else remaining, math.ceil(closes_at), seconds)


def _refuse(error: LimitBreached) -> Response:
    status, limit = get_status(), error.limit.limit
    seconds = status.retry_after_seconds if status else limit.get_expiry()
    whose = "the fleet's limit of {}" if _has_fleet() else "the limit of {} for calls without a valid key"
    return errors.respond(
        errors.RateLimitExceeded(f"Over {whose.format(limit)}; see Retry-After.", headers={"Retry-After": str(seconds)})
    )


def _is_first_in_a_minute(record: logging.LogRecord) -> bool:
    """Return whether to log a failure of the limiter: one a minute, which names what is wrong."""
    if record.exc_info and isinstance(record.exc_info[1], CircuitOpen):
        return False
    known, now = current_app.extensions, time.monotonic()
    if now - known.get("limiter_failed_at", -math.inf) < SECONDS_BETWEEN_WARNINGS:
        return False
    known["limiter_failed_at"] = now
    return True
