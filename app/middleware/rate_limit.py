"""The rate limits: requests of a fleet, of a driver, and without a valid key, counted by Flask-Limiter.

Requests are counted in fixed windows; docs/configuration.md says what that means for a limit. Workers and hosts share
their counts in Redis; without Redis, the one worker counts in its memory. While Redis fails, requests are served
without being counted, and the log has an error at most once a minute.
"""

import logging
import math
import time
import weakref
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, g
from flask_limiter import ApplicationLimit, Limiter, RequestLimit
from flask_limiter import RateLimitExceeded as LimitBreached
from limits.storage import RedisSentinelStorage, RedisStorage
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, TimeoutError
from redis.retry import Retry

from app import errors
from app.circuit_breaker import CircuitBreaker, CircuitOpen
from app.config import Config, ConfigError
from app.services import get_scope, get_services

SECONDS_BETWEEN_ERRORS = 60
# When a failure of each limiter was logged last (time.monotonic()).
_logged_at = weakref.WeakKeyDictionary[Limiter, float]()
# Every request first waits for Redis, which has to be as close as MongoDB.
REDIS_TIMEOUT_SECONDS = 0.5
# Counts a request of a counter; the first request opens its window. Returns the count and the time (ms) until the
# window closes.
COUNT_SCRIPT = b"""
local count = redis.call("INCRBY", KEYS[1], ARGV[2])
if count == tonumber(ARGV[2]) then
    redis.call("EXPIRE", KEYS[1], ARGV[1])
end
return {count, redis.call("PTTL", KEYS[1])}
"""
# The prefix of the URI schemes of the storages with a circuit breaker; `limits` selects a storage by its scheme.
GUARDED = "guarded+"


class GuardedRedis(RedisStorage):
    """Redis with a circuit breaker: while it does not respond, only one request at a time waits for it.

    A request takes one round trip, because the script that counts also returns the status of the window.
    """

    STORAGE_SCHEME = [f"{GUARDED}redis", f"{GUARDED}rediss", f"{GUARDED}redis+unix"]

    def __init__(self, uri: str, **options: Any) -> None:
        super().__init__(uri.removeprefix(GUARDED), **options)
        self._breaker = CircuitBreaker(lambda error: isinstance(error, ConnectionError | TimeoutError))
        self._count = self.get_connection().register_script(COUNT_SCRIPT)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Increment a counter and return its value. Raises CircuitOpen or RedisError."""
        with self._breaker.guard():
            count, remaining_ms = self._count([self.prefixed_key(key)], [expiry, amount])
        # By counter: its count, and the time (epoch seconds) at which its window closes.
        g.rate_limit_windows = {key: (count, time.time() + remaining_ms / 1000)}
        return int(count)

    def get(self, key: str) -> int:
        """Return the count of the window in which the request was counted."""
        requests, _ = g.rate_limit_windows[key]
        return int(requests)

    def get_expiry(self, key: str) -> float:
        """Return the time (epoch seconds) at which the window in which the request was counted closes."""
        _, closes_at = g.rate_limit_windows[key]
        return float(closes_at)


class GuardedSentinel(GuardedRedis, RedisSentinelStorage):
    """The same for the Redis that Sentinel selects."""

    STORAGE_SCHEME = [f"{GUARDED}redis+sentinel"]


def make_limiter(config: Config) -> Limiter:
    """Return the extension that counts a request for its fleet or, with a key of a driver, for this driver alone.

    It counts once it is registered.
    """
    rates = {"fleet": str(config.rate_limit), "driver": str(config.driver_rate_limit)}
    limiter = Limiter(
        lambda: get_scope().identity,
        application_limits=[ApplicationLimit(lambda: rates[get_scope().kind], scope="request")],
        # Flask-Limiter does not count requests without an identifier, by default the endpoint. Unknown paths have none.
        request_identifier=lambda: "request",
        swallow_errors=True,
        **_build_storage_options(config),
    )
    limiter.request_filter(_is_public)
    limiter.logger.addFilter(_filter_failure)
    return limiter


def make_auth_failure_counter(limiter: Limiter, config: Config) -> Callable[[], None]:
    """Return a function that counts a request without a valid key from `g.client`.

    It raises Flask-Limiter's RateLimitExceeded.
    """

    @limiter.shared_limit(str(config.auth_failure_limit), "authentication-failure", key_func=_get_client)
    def count_auth_failure() -> None:
        """Do nothing. Flask-Limiter counts each call."""

    return count_auth_failure


def register(app: Flask, limiter: Limiter) -> None:
    """Count the requests of `app`. The hook that authenticates has to be registered first. Raises ConfigError."""
    try:
        limiter.init_app(app)
    except Exception:
        # Each storage raises exceptions of its own, and some messages contain the URI.
        raise ConfigError(
            "RATELIMIT_STORAGE_URI cannot be used: it takes redis://HOST:PORT, or another URI that "
            "docs/configuration.md lists."
        ) from None
    app.register_error_handler(LimitBreached, _refuse)


def add_headers(response: Response) -> None:
    """Add the rate limit status of the fleet or driver. A request that was not counted has no such headers."""
    current = get_services().limiter.current_limit if "api_key" in g else None
    if current is not None:
        policy, amount, window_seconds = get_scope().kind, current.limit.amount, current.limit.get_expiry()
        remaining = 0 if current.breached else current.remaining
        add = response.headers.add
        add("X-RateLimit-Limit", str(amount))
        add("X-RateLimit-Remaining", str(remaining))
        add("X-RateLimit-Reset", str(math.ceil(current.window.reset_time)))
        add("RateLimit-Policy", f'"{policy}";q={amount};w={window_seconds}')
        add("RateLimit", f'"{policy}";r={remaining};t={_get_retry_seconds(current)}')


def _is_public() -> bool:
    # Authentication sets one of them, except for public endpoints and a 405.
    return "api_key" not in g and "client" not in g


def _get_client() -> str:
    # Flask-Limiter does not count an empty name. On a Unix socket without X-Forwarded-For the client is unknown.
    return g.client or "unknown"


def _build_storage_options(config: Config) -> dict[str, Any]:
    if not config.counts_in_redis:
        return {"storage_uri": "memory://"}
    # Retry once, because Redis may have closed an idle connection. By default redis-py waits seconds between attempts.
    options = {"retry": Retry(NoBackoff(), 1, supported_errors=(ConnectionError,))}
    timeouts = {"socket_timeout": REDIS_TIMEOUT_SECONDS, "socket_connect_timeout": REDIS_TIMEOUT_SECONDS}
    return {"storage_uri": GUARDED + config.ratelimit_storage_uri, "storage_options": options | timeouts}


def _get_retry_seconds(current: RequestLimit) -> int:
    """Return the seconds, at least 1, after which the window of a limit has closed."""
    # A window closes after the time of the rate, whatever the clocks say.
    return min(max(1, math.ceil(current.window.reset_time - time.time())), current.limit.get_expiry())


def _refuse(error: LimitBreached) -> Response:
    # A request is counted against one limit: the fleet's, the driver's or the client's.
    (current,), limit = get_services().limiter.current_limits, error.limit.limit
    seconds = _get_retry_seconds(current)
    amount, unit = _format_count(limit.amount, "request"), limit.GRANULARITY.name
    rate = f"{amount} per {unit if limit.multiples == 1 else _format_count(limit.multiples, unit)}"
    exceeded = f"{get_scope().kind}'s limit of {rate}" if "api_key" in g else f"limit of {rate} without a valid key"
    message = f"The {exceeded} is exceeded. Try again in {_format_count(seconds, 'second')}."
    return errors.make_response(errors.RateLimitExceeded(message, headers={"Retry-After": str(seconds)}))


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _filter_failure(record: logging.LogRecord) -> bool:
    """Return whether to log a failure of the limiter: at most one a minute, and never that the circuit is open.

    Replaces the library's message by one that says what the failure means.
    """
    if record.exc_info and isinstance(record.exc_info[1], CircuitOpen):
        return False
    limiter, now = get_services().limiter, time.monotonic()
    if now - _logged_at.get(limiter, -math.inf) < SECONDS_BETWEEN_ERRORS:
        return False
    _logged_at[limiter] = now
    record.msg = "Redis failed: requests are not counted"
    return True
