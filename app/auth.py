"""Who is asking. Everything under /api/v1 takes a key, but for the endpoints named here."""

from flask import Flask, Request, g, request
from werkzeug.exceptions import MethodNotAllowed

from app.addresses import client_of
from app.config import API, Config
from app.db import guard_store
from app.errors import Forbidden, Unauthorized
from app.limits import count_failure
from app.links import Link, Links
from app.store import Store
from app.store.keys import Key, LiveKeys, get_key_by_id, is_well_formed

LINKED_ENDPOINT = "report.get_report_file"
PUBLIC_ENDPOINTS = frozenset(
    {"health.get_health", "health.get_liveness", "docs.get_document", "docs.get_page", "docs.get_file", LINKED_ENDPOINT}
)
SCHEME = "apikey"


def register(app: Flask) -> None:
    """Make `app` find out the fleet, `g.key.fleet`, before anything else is decided."""
    store = app.extensions["store"]
    live_keys, links, config = LiveKeys(store), app.extensions["links"], app.extensions["config"]

    @app.before_request
    def authenticate() -> None:
        asked = request._get_current_object()  # type: ignore[attr-defined]
        if isinstance(asked.routing_exception, MethodNotAllowed):
            # Needs no key and is not counted.
            raise asked.routing_exception
        if asked.endpoint == LINKED_ENDPOINT:
            g.link = _live_link(links, store, asked)
        if asked.endpoint in PUBLIC_ENDPOINTS or not is_under_api(asked.path):
            return
        scheme, _, key = asked.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        found = _live_key(live_keys, key.strip()) if scheme.lower() == SCHEME else None
        if found is None:
            g.client = _client(asked, config)
            count_failure(g.client)
            raise Unauthorized
        g.key = found


def _live_key(live_keys: LiveKeys, key: str) -> Key | None:
    if (known := live_keys.known(key)) or not is_well_formed(key):
        return known
    with guard_store():
        return live_keys.ask(key)


def _client(asked: Request, config: Config) -> str:
    return client_of(asked.remote_addr or "", asked.headers.get("X-Forwarded-For", ""), config.trusted_proxies)


def _live_link(links: Links, store: Store, asked: Request) -> Link:
    """Return the link that is asked for, whose key still lets in. Raises Forbidden."""
    link = links.read((asked.view_args or {}).get("link", ""))
    if link is None:
        raise Forbidden
    with guard_store():
        key = get_key_by_id(store, link.key_id)
    if key is None or key.fleet != link.fleet:
        raise Forbidden
    return link


def is_under_api(path: str) -> bool:
    """Return whether a path belongs to the API, known to it or not."""
    return path == API or path.startswith(f"{API}/")
