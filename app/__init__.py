"""The service: a Flask application that reads driving data from MongoDB."""

import functools
from typing import Any

from flask import Flask, Request
from flask.sessions import NullSession, SessionInterface
from pymongo import MongoClient

from app import errors, logs, middleware, openapi
from app.circuit_breaker import CircuitBreaker
from app.config import API, Config, ConfigError
from app.database import is_outage, probe, service_client
from app.middleware.raw_path import RestConverter, SegmentConverter
from app.report_links import Links
from app.store import Store
from app.store.api_keys import LiveKeys
from app.views import BLUEPRINTS, ROOT_BLUEPRINTS


def create_app(config: Config | None = None, client: MongoClient[dict[str, Any]] | None = None) -> Flask:
    """Return the application. Call it after a fork: a MongoDB client must not be shared by processes.

    Settings come from the environment unless given; `client` is for a store that lives in this process. Raises
    ConfigError where a setting cannot be used.
    """
    config = config or Config.from_environment()
    app = _routed_app()
    listeners = []
    if config.metrics_bind:
        # prometheus_client reads PROMETHEUS_MULTIPROC_DIR when it is imported, so the import waits until `serve` has
        # set it.
        from app.middleware import metrics

        app.extensions["metrics"] = measured = metrics.Metrics()
        listeners.append(metrics.StoreListener(measured))
    if client is None:
        if not config.mongodb_uri:
            raise ConfigError("MONGODB_URI is not set; 'driver-analytics serve' starts an embedded MongoDB by itself.")
        client = service_client(config, listeners)
    store = Store.of(client[config.mongodb_database])
    app.extensions.update(config=config, store=store, store_breaker=CircuitBreaker(is_outage, probe))
    app.extensions.update(live_keys=LiveKeys(store), links=Links(config))
    app.extensions["openapi"] = openapi_document(config.public_base_url)
    logs.register(app, config.log_level)
    if not config.secret_key:
        app.extensions["log"].warning("SECRET_KEY is not set: report links hold in this process alone")
    errors.register(app)
    middleware.register(app, config)
    return app


@functools.cache
def openapi_document(public_base_url: str) -> bytes:
    """Return the OpenAPI document of every application that has this setting."""
    return openapi.document(_routed_app(), public_base_url)


class _NoSessions(SessionInterface):
    """A session interface that opens no session: the API has no cookies."""

    session = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        return self.session


def _routed_app() -> Flask:
    app = Flask("app", static_folder=None)
    app.session_interface = _NoSessions()
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    app.url_map.converters |= {"segment": SegmentConverter, "rest": RestConverter}
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix=API)
    for blueprint in ROOT_BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app
