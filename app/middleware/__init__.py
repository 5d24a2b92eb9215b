"""The processing of every request before its view and of every response after it: one concern a module.

`_before_request` and `_after_request` show the order. Only the links to a report are treated specially, because such a
link takes the place of a key. Views do not import from here.
"""

import time

from flask import Flask, Response, g, request
from flask_limiter import Limiter
from marshmallow import ValidationError

from app.logs import choose_request_id
from app.middleware import access_log, auth, compression, headers, rate_limit
from app.middleware.deadline import Deadline
from app.middleware.raw_path import RawPath
from app.services import get_services

# The headers that Werkzeug parses element by element before a key is checked, and how many characters of each. Clients
# send about 200.
PARSED_HEADERS = ("HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "HTTP_IF_NONE_MATCH")
MAX_PARSED_LENGTH = 1_000


def register(app: Flask, limiter: Limiter) -> None:
    """Register the middleware of `app`. Raises ConfigError."""
    app.before_request(_before_request)
    app.after_request(_after_request)
    # Flask-Limiter registers its own hook, which counts the request. It has to run after authentication sets the fleet.
    rate_limit.register(app, limiter)
    app.wsgi_app = RawPath(Deadline(app.wsgi_app))  # type: ignore[method-assign]


def _before_request() -> None:
    g.started = time.perf_counter()
    g.request_id = choose_request_id(request.environ.get("HTTP_X_REQUEST_ID", ""))
    _shorten_headers()
    _require_host()
    auth.authenticate()


def _shorten_headers() -> None:
    """Leave out what follows the first MAX_PARSED_LENGTH characters of a list, and the element that they end in."""
    for name in PARSED_HEADERS:
        value = request.environ.get(name, "")
        if len(value) > MAX_PARSED_LENGTH:
            request.environ[name] = value[:MAX_PARSED_LENGTH].rpartition(",")[0]


def _require_host() -> None:
    """Raise ValidationError if the request has no Host. HTTP/1.0, which some health checks use, does not need it."""
    if "HTTP_HOST" not in request.environ and request.environ["SERVER_PROTOCOL"] != "HTTP/1.0":
        raise ValidationError({"Host": ["Must be given."]})


def _after_request(response: Response) -> Response:
    rate_limit.add_headers(response)
    compression.compress(response)
    headers.add_headers(response)
    if metrics := get_services().metrics:
        metrics.observe(response)
    access_log.write(response)
    return response
