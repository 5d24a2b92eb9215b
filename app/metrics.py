"""Metrics for Prometheus: counts and durations of requests and of MongoDB operations.

Labels are routes, methods, statuses and MongoDB commands, which have few values. Fleets, drivers, keys and addresses
are never labels, because they have any number of values. The log has fleets, keys and addresses.
"""

import functools
import time
from http import HTTPStatus

from flask import Response, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram
from pymongo import monitoring

PREFIX = "driver_analytics"
# The route of a request for an unknown path or with a method that the path does not support.
UNKNOWN_ROUTE = "(unknown path)"
# The methods that are labels. Clients may send any other, so those share one label.
METHODS = ("GET", "HEAD", "OPTIONS", "POST")
OTHER_METHOD = "other"
# In seconds. A typical request takes a millisecond, and the database at most 2 seconds.
DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
# The values of the label `limit`: the rate limit of a fleet, that of a driver, and that of a client address.
LIMITS = ("fleet", "driver", "address")
REFUSED_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS)


class Metrics(monitoring.CommandListener):
    """The counters and histograms of a process, and their registry.

    They listen to the commands that a client sends. A command for which no server was available is not sent.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter = functools.partial(Counter, namespace=PREFIX, registry=registry)
        histogram = functools.partial(Histogram, namespace=PREFIX, registry=registry, buckets=DURATION_BUCKETS)
        self.requests = counter("http_requests", "Requests that got a response.", ("route", "method", "status"))
        self.request_seconds = histogram(
            "http_request_duration_seconds",
            "Time from the first hook of a request to its response. Sending a file takes place afterwards.",
            ("route",),
        )
        self.refusals = counter(
            "rate_limit_refusals",
            "Requests refused by a rate limit: that of a fleet, of a driver, or of an address without a valid key.",
            ("limit",),
        )
        self.failures = counter(
            "authentication_failures",
            "Requests without a valid key, including those refused by the rate limit of their address.",
        )
        self.uncounted = counter(
            "uncounted_requests", "Requests that were not counted because the storage of the rate limit failed."
        )
        self.store_seconds = histogram(
            "store_operation_duration_seconds",
            "Time of a MongoDB operation, by command, and by outcome: ok, or the name of the error.",
            ("command", "outcome"),
        )
        for limit in LIMITS:
            self.refusals.labels(limit)

    def observe(self, response: Response) -> None:
        """Count and time the request of a response, and whether it was refused."""
        rule, method, status = request.url_rule, request.method, response.status_code
        route = rule.rule if rule else UNKNOWN_ROUTE
        self.requests.labels(route, method if method in METHODS else OTHER_METHOD, status).inc()
        self.request_seconds.labels(route).observe(time.perf_counter() - g.started)
        if "api_key" in g:
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self.refusals.labels(g.scope.kind).inc()
            # `rate_limit.add_headers` has added it if the request was counted.
            elif "RateLimit" not in response.headers:
                self.uncounted.inc()
        elif status in REFUSED_STATUSES:
            self.failures.inc()
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self.refusals.labels("address").inc()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """Do nothing. The event at the end of a command has its duration."""

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Time a command that succeeded."""
        self.store_seconds.labels(event.command_name, "ok").observe(event.duration_micros / 1e6)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Time a command that failed, with the name of the error in MongoDB or in PyMongo."""
        outcome = event.failure.get("codeName") or event.failure.get("errtype") or "unknown"
        self.store_seconds.labels(event.command_name, outcome).observe(event.duration_micros / 1e6)
