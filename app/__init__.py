"""The service: a Flask application that reads driving data from MongoDB."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from flask import Flask, Request, Response
from flask.sessions import NullSession, SessionInterface
from pymongo import MongoClient
from werkzeug.routing import Map, MapAdapter, Rule

from app import auth, compression, errors, headers, limits, logs, metrics, openapi
from app.circuit_breaker import CircuitBreaker
from app.config import API, Config, ConfigError
from app.db import deadline, is_outage, probe, service_client
from app.links import Links
from app.paths import EncodedPaths, RestConverter, SegmentConverter
from app.store import Store
from app.views import BLUEPRINTS

# A path has up to 8 kB.
MAX_KNOWN_PATHS = 1_000


def create_app(config: Config | None = None, client: MongoClient[dict[str, Any]] | None = None) -> Flask:
    """Return the application. Call it after a fork: a MongoDB client must not be shared by processes.

    Settings come from the environment unless given; `client` is for a store that lives in this process. Raises
    ConfigError where a setting cannot be used.
    """
    config = config or Config.from_environment()
    measured = metrics.Metrics() if config.metrics_bind else None
    if client is None:
        if not config.mongodb_uri:
            raise ConfigError("MONGODB_URI is not set; 'driver-analytics serve' starts an embedded MongoDB by itself.")
        client = service_client(config, metrics.listeners(measured))
    app = _routed_app()
    app.wsgi_app = EncodedPaths(app.wsgi_app)  # type: ignore[method-assign]
    app.extensions.update(config=config, store=Store.of(client[config.mongodb_database]))
    app.extensions.update(store_breaker=CircuitBreaker(is_outage, probe), links=Links(config))
    app.extensions["openapi"] = openapi_document(config.public_base_url)
    # Hooks run in this order before a request: auth goes before the limits, whose key is the fleet. After it they run
    # in the opposite order: the log comes last.
    logs.register(app, config.log_level)
    if not config.secret_key:
        app.extensions["log"].warning("SECRET_KEY is not set: report links hold in this process alone")
    metrics.register(app, measured)
    headers.register(app, config)
    compression.register(app)
    auth.register(app)
    limits.register(app, config, client)
    errors.register(app)
    return app


@functools.cache
def openapi_document(public_base_url: str) -> bytes:
    """Return the OpenAPI document of every application that has this setting."""
    return openapi.document(_routed_app(), public_base_url)


class _NoSessions(SessionInterface):
    session = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        return self.session


class _Path(MapAdapter):
    """Where a request goes. No route goes by host or scheme, which Werkzeug works out at every request."""

    def __init__(self, routes: Map, path: str, method: str) -> None:
        super().__init__(routes, "", "/", None, "http", path, method)

    def match(self, *args: Any, **options: Any) -> Any:
        return _match(self.map, self.path_info, self.default_method)


# Clients ask the same paths again. What leads nowhere is an error, and is not kept.
@functools.lru_cache(MAX_KNOWN_PATHS)
def _match(routes: Map, path: str, method: str) -> tuple[Rule, Mapping[str, Any]]:
    return MapAdapter.match(_Path(routes, path, method), return_rule=True)


class _Service(Flask):
    # None is kept, and so none need be looked for at each request.
    session_interface = _NoSessions()

    def full_dispatch_request(self) -> Response:
        with deadline():
            return super().full_dispatch_request()

    # Flask looks at each of these steps for what blueprints have of their own: here all hooks are the application's.

    def preprocess_request(self) -> None:
        for hook in self.before_request_funcs[None]:
            hook()

    def process_response(self, response: Response) -> Response:
        for hook in reversed(self.after_request_funcs[None]):
            response = hook(response)
        return response

    def do_teardown_request(self, exc: BaseException | None = None) -> None:
        pass

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        # Nothing here is asynchronous; Flask looks anew at every hook of every request.
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        return _Path(self.url_map, request.path, request.method) if request else None


def _routed_app() -> Flask:
    app = _Service("app", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False
    app.url_map.converters |= {"segment": SegmentConverter, "rest": RestConverter}
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix=API)
    return app
