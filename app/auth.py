"""Who is asking. Everything under /api/v1 takes a key, but for the endpoints named here."""

from flask import Flask, g, request
from werkzeug.exceptions import MethodNotAllowed

from app.config import API
from app.errors import Unauthorized
from app.limits import count_failure
from app.store.keys import LiveKeys

PUBLIC_ENDPOINTS = frozenset({"health.get_health", "docs.get_document", "docs.get_page", "docs.get_file"})
SCHEME = "apikey"


def register(app: Flask) -> None:
    """Make `app` find out the fleet, `g.key.fleet`, before anything else is decided."""
    live_keys = LiveKeys(app.extensions["db"])

    @app.before_request
    def authenticate() -> None:
        asked = request._get_current_object()  # type: ignore[attr-defined]
        if isinstance(asked.routing_exception, MethodNotAllowed):
            # Needs no key and is not counted.
            raise asked.routing_exception
        if asked.endpoint in PUBLIC_ENDPOINTS or not is_under_api(asked.path):
            return
        scheme, _, key = asked.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        found = live_keys.get(key.strip()) if scheme.lower() == SCHEME else None
        if found is None:
            count_failure(asked.remote_addr or "")
            raise Unauthorized
        g.key = found


def is_under_api(path: str) -> bool:
    """Return whether a path belongs to the API, known to it or not."""
    return path == API or path.startswith(f"{API}/")
