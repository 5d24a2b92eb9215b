"""The service: a Flask application that serves driving data from MongoDB.

This package only reads. Commands and everything that writes are in `scripts`, which this package never imports.
"""

import datetime
import functools
import logging
from typing import Any

from flask import Flask
from pymongo import MongoClient

from app import errors, logs, middleware, openapi
from app.circuit_breaker import CircuitBreaker
from app.config import API, Config
from app.database import is_outage, probe, service_client
from app.middleware import auth, rate_limit
from app.middleware.raw_path import SegmentConverter
from app.report_links import ReportLinkSigner
from app.services import EXTENSION, Services
from app.store import Store
from app.views import API_VIEWS, ROOT_VIEWS


def create_app(config: Config | None = None, client: MongoClient[dict[str, Any]] | None = None) -> Flask:
    """Return the application. Call this after a fork, because processes must not share a MongoDB client.

    Without `config`, settings come from the environment. `client` is for a store in the memory of this process. Raises
    ConfigError for an invalid setting.
    """
    config = config or Config.from_environment()
    logs.configure()
    app = _create_routed_app()
    services = app.extensions[EXTENSION] = _make_services(config, client)
    if not config.secret_key:
        services.log.warning("SECRET_KEY is not set: report links are valid only in this process")
    errors.register(app)
    middleware.register(app, services.limiter)
    return app


def _make_services(config: Config, client: MongoClient[dict[str, Any]] | None) -> Services:
    metrics = None
    if config.metrics_bind:
        # prometheus_client reads PROMETHEUS_MULTIPROC_DIR when it is imported: the main process has set it before.
        from app.metrics import Metrics

        metrics = Metrics()
    if client is None:
        client = service_client(config, [metrics] if metrics else [])
    store = Store.of(client[config.mongodb_database])
    breaker = CircuitBreaker(lambda error: is_outage(error, store), probe)
    limiter = rate_limit.make_limiter(config)
    return Services(
        config=config,
        log=logs.make_logger(logging.getLevelNamesMapping()[config.log_level]),
        store=store,
        store_breaker=breaker,
        get_api_key=auth.ApiKeyCache(store, breaker.guard).get,
        report_link_signer=ReportLinkSigner(config),
        limiter=limiter,
        count_auth_failure=rate_limit.make_auth_failure_counter(limiter, config),
        get_openapi_document=functools.partial(openapi_document, config.public_base_url),
        metrics=metrics,
    )


# A day takes the place of the one before.
@functools.lru_cache(2)
def openapi_document(public_base_url: str, today: datetime.date) -> bytes:
    """Return the OpenAPI document of an application with this PUBLIC_BASE_URL, which may be empty.

    The examples of parameters are requests that succeed on this day.
    """
    return openapi.build_document(_create_routed_app(), public_base_url, today)


def _create_routed_app() -> Flask:
    app = Flask("app", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    app.url_map.converters["segment"] = SegmentConverter
    for views in API_VIEWS:
        app.register_blueprint(views.bp, url_prefix=API)
    for views in ROOT_VIEWS:
        app.register_blueprint(views.bp)
    return app
