"""What every request passes before its view and after it: one concern a module, in the order of this file.

Nothing here knows a resource, and no view imports from here.
"""

from flask import Flask, Response, current_app

from app.config import Config
from app.middleware import access_log, auth, compression, headers, rate_limit, request_id
from app.middleware.deadline import Deadline
from app.middleware.raw_path import RawPath


def register(app: Flask, config: Config) -> None:
    """Put the middleware around the views of `app`. Raises ConfigError."""
    app.before_request(_before_request)
    app.after_request(_after_request)
    # Flask-Limiter's own hook, which counts the request, runs after `_before_request`, which finds its fleet.
    rate_limit.register(app, config)
    app.wsgi_app = RawPath(Deadline(app.wsgi_app))  # type: ignore[method-assign]


def _before_request() -> None:
    access_log.start()
    request_id.set_request_id()
    auth.authenticate()


def _after_request(response: Response) -> Response:
    rate_limit.add_headers(response)
    compression.compress(response)
    headers.complete(response)
    if metrics := current_app.extensions.get("metrics"):
        metrics.observe(response)
    access_log.write(response)
    return response
