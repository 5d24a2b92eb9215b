"""What a request needs, typed: the services of the application, and what the request may see."""

import dataclasses
import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from flask import Flask, current_app, g
from flask_limiter import Limiter
from structlog.typing import FilteringBoundLogger

from app.circuit_breaker import CircuitBreaker
from app.config import Config
from app.report_links import ReportLinkSigner
from app.store import Store
from app.store.api_keys import ApiKey
from app.store.scope import Scope
from app.store.visibility import get_max_visible_end_ms
from schemas.periods import UTC, get_today

if TYPE_CHECKING:
    # prometheus_client is imported only if METRICS_BIND is set: see `create_app`.
    from app.metrics import Metrics

# The name under which Flask keeps the services of an application.
EXTENSION = "driver_analytics"


@dataclasses.dataclass(frozen=True)
class Services:
    """The services of an application, which `create_app` makes, and which all threads share.

    - `store_breaker`: the circuit breaker of the store. Whatever reads from the store runs within its `guard()`.
    - `get_api_key`: returns the ApiKey of a valid key.
    - `limiter`: counts the requests of a fleet or driver. `count_auth_failure` counts a request without a valid key.
    - `get_openapi_document`: the OpenAPI document of a day.
    - `metrics`: None if METRICS_BIND is empty.
    """

    config: Config
    log: FilteringBoundLogger
    store: Store
    store_breaker: CircuitBreaker
    get_api_key: Callable[[str], ApiKey | None]
    report_link_signer: ReportLinkSigner
    limiter: Limiter
    count_auth_failure: Callable[[], None]
    get_openapi_document: Callable[[datetime.date], bytes]
    metrics: "Metrics | None"


def get_services(app: Flask = current_app) -> Services:
    """Return the services of an application, by default of the one that handles the current request."""
    services: Services = app.extensions[EXTENSION]
    return services


def get_scope() -> Scope:
    """Return what the current request may see. Authentication sets it, unless the endpoint is public."""
    scope: Scope = g.scope
    return scope


def get_request_time_zone() -> ZoneInfo:
    """Return the time zone of the fleet whose key the current request has, or UTC without a key."""
    return g.api_key.zone if "api_key" in g else UTC


def get_request_today() -> datetime.date:
    """Return which day it is in the time zone of the request."""
    return get_today(get_request_time_zone())


def get_request_max_end_ms() -> int:
    """Return the latest end (epoch ms) of a trip that the current request may see."""
    return get_max_visible_end_ms(get_services().config.processing_delay_hours)
