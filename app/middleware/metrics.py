"""What the service counts and times, for Prometheus.

Labels are routes, methods, statuses and MongoDB's commands, of which there are few; never fleets, keys or addresses, of
which there may be any number: those stand in the log.
"""

import time
from collections.abc import Iterator
from http import HTTPStatus

import pymongo
from flask import Response, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from pymongo import monitoring
from pymongo.errors import PyMongoError

from app.store import Store
from app.store.trips import get_newest_trip_time

PREFIX = "driver_analytics"
# Also of what is refused for its method.
UNKNOWN_ROUTE = "(unknown path)"
# Clients may make up others.
METHODS = ("GET", "HEAD", "OPTIONS")
OTHER = "other"
# Seconds. A request takes about a millisecond, and the store may take 2 seconds at the most.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
# A scrape waits for the store no longer.
SCRAPE_SECONDS = 1.0
UP = "Whether the store answered this scrape within a second."
# Whose rate limits there are.
LIMITS = ("fleet", "address")
REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS)


class Metrics:
    """The counters and histograms of a process, and their registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            f"{PREFIX}_http_requests",
            "Requests answered.",
            ("route", "method", "status"),
            registry=registry,
        )
        self.request_seconds = Histogram(
            f"{PREFIX}_http_request_duration_seconds",
            "Time from a request's first hook to its answer; a file is sent after that.",
            ("route",),
            registry=registry,
            buckets=BUCKETS,
        )
        self.refusals = Counter(
            f"{PREFIX}_rate_limit_refusals",
            "Requests refused by a rate limit: a fleet's, or an address's without a valid key.",
            ("limit",),
            registry=registry,
        )
        self.failures = Counter(
            f"{PREFIX}_authentication_failures",
            "Requests without a valid key, those refused by the limit of their address included.",
            registry=registry,
        )
        self.uncounted = Counter(
            f"{PREFIX}_uncounted_requests",
            "Requests served without being counted, since the storage of the rate limit failed.",
            registry=registry,
        )
        self.store_seconds = Histogram(
            f"{PREFIX}_store_operation_duration_seconds",
            "Time of an operation of MongoDB, by command, and outcome: ok, or the name of the error.",
            ("command", "outcome"),
            registry=registry,
            buckets=BUCKETS,
        )
        for limit in LIMITS:
            self.refusals.labels(limit)

    def observe(self, response: Response) -> None:
        """Count and time the request of a response."""
        rule, method, status = request.url_rule, request.method, response.status_code
        route = rule.rule if rule else UNKNOWN_ROUTE
        self.requests.labels(route, method if method in METHODS else OTHER, status).inc()
        # As the log has it.
        self.request_seconds.labels(route).observe(time.perf_counter() - g.started)
        if "api_key" in g:
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self.refusals.labels("fleet").inc()
            elif g.rate_limit_status is None:
                self.uncounted.inc()
        elif status in REFUSALS:
            self.failures.inc()
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self.refusals.labels("address").inc()


class StoreListener(monitoring.CommandListener):
    """Times the commands that a client sends. Those that found no server to be sent to are not among them."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds = metrics.store_seconds

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Do nothing: the end tells how long it took."""

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Time a command that was answered."""
        self._seconds.labels(event.command_name, "ok").observe(event.duration_micros / 1e6)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Time a command that was not, or with an error: MongoDB's name of it, or the driver's."""
        outcome = event.failure.get("codeName") or event.failure.get("errtype") or "unknown"
        self._seconds.labels(event.command_name, outcome).observe(event.duration_micros / 1e6)


class StoreCollector(Collector):
    """Whether the store answers, and when a trip was last added; asked when the metrics are scraped."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges; only whether the store answers if it does not do so in time."""
        try:
            with pymongo.timeout(SCRAPE_SECONDS):
                newest = get_newest_trip_time(self._store)
        except PyMongoError:
            yield _gauge("store_up", UP, 0.0)
            return
        yield _gauge("store_up", UP, 1.0)
        if newest is not None:
            yield _gauge("newest_trip_timestamp_seconds", "When a trip was last added to the store.", newest)


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", meaning, value)
