"""The rate limit: calls of a fleet, counted in a storage that all workers and hosts share.

The windows are fixed: one opens with a fleet's first call and closes a period later. That is exact within a window;
across the edge of two windows up to twice the limit can pass within one period. A call costs one operation of the
storage, and one more where a worker does not know yet when the window closes. With the storage down the service goes
on, uncounted, and the log says so; while the storage hangs one thread at a time waits for it.
"""

import functools
import math
import threading
import time
from typing import Any, NamedTuple

import pymongo
from flask import Flask, Response, current_app, g
from limits import RateLimitItem
from limits.storage import MemoryStorage, MongoDBStorage, RedisStorage, Storage, storage_from_string
from pymongo import MongoClient
from redis.exceptions import ConnectionError, NoScriptError, TimeoutError

from app.circuit_breaker import CircuitBreaker
from app.config import Config, ConfigError
from app.db import bounded_client
from app.errors import RateLimitExceeded
from app.logs import get_log

POLICY = "fleet"
SECONDS_BETWEEN_WARNINGS = 60
# Redis is as near as the store, and a call waits for it before anything else.
REDIS_TIMEOUT_SECONDS = 0.5
# Counters in MongoDB leave time for the answer.
MONGODB_TIMEOUT_SECONDS = 0.5
# limits asks Redis for whole seconds, which Redis rounds.
REDIS_ROUNDING_SECONDS = 0.5
# A window takes 300 bytes; addresses have one too, and a client may come from very many.
MAX_KNOWN_WINDOWS = 10_000


class Standing(NamedTuple):
    """Where a fleet or an address stands after a call: whether that was within the limit, and how many are left.

    The window has surely closed at `reset_at` (epoch seconds), `wait_seconds` (at least 1) after the call.
    """

    limit: RateLimitItem
    within: bool
    remaining: int
    reset_at: int
    wait_seconds: int


class Limiter:
    """Counts calls in a storage. `rounding` is by how many seconds the storage may tell a window's end too early."""

    def __init__(self, storage: Storage, rounding: float = 0.0) -> None:
        self.storage, self._rounding = storage, rounding
        self._windows: dict[str, tuple[float, int]] = {}
        self._told_of_failure = -math.inf
        # Each storage raises errors of its own.
        self._breaker = CircuitBreaker(lambda error: True)

    def count(self, limit: RateLimitItem, *identity: str) -> Standing | None:
        """Count a call, and return where that leaves its caller; None where the storage fails."""
        try:
            with self._breaker.guard():
                count, now, closes_at = self._count(limit.key_for(*identity), limit.get_expiry())
        except Exception as error:
            self._tell_of_failure(error)
            return None
        # A window that is open closes within its period.
        left, wait = limit.amount - count, min(math.floor(closes_at - now) + 1, limit.get_expiry())
        return Standing(limit, left >= 0, max(0, left), int(closes_at) + 1, max(1, wait))

    def _count(self, key: str, period: int) -> tuple[int, float, float]:
        count, now = self.storage.incr(key, period), time.time()
        closes_at, counted = self._windows.get(key, (0.0, 0))
        if count == 1:
            closes_at = now + period
        elif closes_at <= now or count < counted:
            # Another worker opened this window: counts only grow within one.
            closes_at = self.storage.get_expiry(key) + self._rounding
        if len(self._windows) >= MAX_KNOWN_WINDOWS:
            self._windows.clear()
        self._windows[key] = closes_at, count
        return count, now, closes_at

    def _tell_of_failure(self, error: Exception) -> None:
        """Say in the log, once a minute and worker, that calls are not counted."""
        if (now := time.monotonic()) - self._told_of_failure >= SECONDS_BETWEEN_WARNINGS:
            self._told_of_failure = now
            get_log().warning("the rate limit's storage fails, serving uncounted", error=str(error))


def register(app: Flask, config: Config, client: MongoClient[Any]) -> None:
    """Make what counts the requests of `app`. Raises ConfigError."""
    try:
        app.extensions["rate_limiter"] = _limiter(config, client)
    except ConfigError:
        raise
    except Exception:
        # Each storage raises errors of its own, some of them with the URI.
        raise ConfigError("RATELIMIT_STORAGE_URI cannot be used: no storage can be opened with it.") from None


def count() -> None:
    """Count the request of a fleet, whatever becomes of it. Raises RateLimitExceeded past the limit."""
    if "key" not in g:
        return
    limiter: Limiter = current_app.extensions["rate_limiter"]
    standing = g.standing = limiter.count(current_app.extensions["config"].rate_limit, POLICY, g.key.fleet)
    if standing and not standing.within:
        raise _exceeded(standing, "the fleet's limit of {}")


def tell(response: Response) -> None:
    """Add the headers that tell the client where it stands."""
    standing: Standing | None = g.get("standing")
    if standing is None:
        return
    limit, remaining, add = standing.limit, standing.remaining, response.headers.add
    add("X-RateLimit-Limit", str(limit.amount))
    add("X-RateLimit-Remaining", str(remaining))
    add("X-RateLimit-Reset", str(standing.reset_at))
    add("RateLimit-Policy", f'"{POLICY}";q={limit.amount};w={limit.get_expiry()}')
    add("RateLimit", f'"{POLICY}";r={remaining};t={standing.wait_seconds}')


def count_failure(address: str) -> None:
    """Count a call without a valid key from a client address. Raises RateLimitExceeded past the limit."""
    limiter: Limiter = current_app.extensions["rate_limiter"]
    limit: RateLimitItem = current_app.extensions["config"].auth_failure_limit
    standing = limiter.count(limit, "authentication-failure", address)
    if standing and not standing.within:
        raise _exceeded(standing, "the limit of {} for calls without a valid key")


def _exceeded(standing: Standing, limit: str) -> RateLimitExceeded:
    return RateLimitExceeded(
        f"Over {limit.format(standing.limit)}; see Retry-After.", headers={"Retry-After": str(standing.wait_seconds)}
    )


class _ThreadRedisStorage(RedisStorage):
    """Counters in Redis, over one connection a thread.

    What redis-py does to find a connection and run a script costs more than Redis takes.
    """

    STORAGE_SCHEME = ["thread-redis"]

    def initialize_storage(self, uri: str) -> None:
        super().initialize_storage(uri)
        self._of_thread = threading.local()
        self._command = functools.lru_cache(MAX_KNOWN_WINDOWS)(self._packed_command)

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count, and return the count. Raises redis-py's errors."""
        try:
            connection: Any = self._of_thread.connection
        except AttributeError:
            connection = self._of_thread.connection = self.storage.connection_pool.get_connection()
        try:
            connection.send_packed_command(self._command(key, expiry, amount), check_health=False)
            return int(connection.read_response())
        except NoScriptError:
            pass
        except TimeoutError:
            connection.disconnect()
            raise
        except ConnectionError:
            # Redis was started anew, or closed what it held for idle.
            connection.disconnect()
        return super().incr(key, expiry, amount)

    def _packed_command(self, key: str, expiry: int, amount: int) -> list[bytes]:
        pack = self._of_thread.connection.pack_command
        words = ("EVALSHA", self.lua_incr_expire.sha, 1, self.prefixed_key(key), expiry, amount)
        packed: list[bytes] = pack(*words)
        return packed


class _ClientStorage(MongoDBStorage):
    """Counters in MongoDB through a client that is open already; whoever opened it closes it."""

    STORAGE_SCHEME = ["mongodb-client"]

    def _init_mongo_client(self, uri: str | None, **options: Any) -> MongoClient[Any]:
        client: MongoClient[Any] = options["client"]
        return client

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count, and return the count. Raises pymongo's errors."""
        with pymongo.timeout(MONGODB_TIMEOUT_SECONDS):
            return super().incr(key, expiry, amount)

    def __del__(self) -> None:
        pass


def _limiter(config: Config, client: MongoClient[Any]) -> Limiter:
    uri = config.ratelimit_storage_uri
    if uri.startswith("redis"):
        timeouts = {"socket_timeout": REDIS_TIMEOUT_SECONDS, "socket_connect_timeout": REDIS_TIMEOUT_SECONDS}
        storage: Any = storage_from_string if "sentinel" in uri.partition(":")[0] else _ThreadRedisStorage
        return Limiter(storage(uri, **timeouts), REDIS_ROUNDING_SECONDS)
    # A store in memory lives in one process, and so may the counters.
    if uri.startswith("memory") or not (uri or config.mongodb_uri):
        return Limiter(MemoryStorage())
    if uri:
        client = bounded_client(uri, "RATELIMIT_STORAGE_URI")
    # A database of its own, so that the service needs no right to write to the data.
    options: dict[str, Any] = {"client": client}
    return Limiter(_ClientStorage("", f"{config.mongodb_database}_limits", **options))
