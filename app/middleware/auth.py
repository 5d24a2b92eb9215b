"""Who is asking. Everything under /api/v1 takes a key, but for the endpoints named here."""

from flask import current_app, g, request
from werkzeug.exceptions import MethodNotAllowed

from app.client_ip import client_of
from app.config import API, Config
from app.database import get_store, guard_store
from app.errors import Forbidden, Unauthorized
from app.middleware.rate_limit import count_failure
from app.report_links import Link, Links
from app.store.api_keys import Key, LiveKeys, get_key_by_id, is_well_formed

LINKED_ENDPOINT = "report.get_report_file"
PUBLIC_ENDPOINTS = frozenset(
    {
        "home.get_home",
        "health.get_health",
        "health.get_liveness",
        "docs.get_document",
        "docs.get_page",
        "docs.get_file",
        LINKED_ENDPOINT,
    }
)
SCHEME = "apikey"


def authenticate() -> None:
    """Find out the fleet of the request, `g.key.fleet`, or the report that its link leads to, `g.link`.

    Raises MethodNotAllowed, Forbidden, Unauthorized, or RateLimitExceeded for a client that failed too often.
    """
    if isinstance(request.routing_exception, MethodNotAllowed):
        # Needs no key and is not counted.
        raise request.routing_exception
    endpoint = request.endpoint
    if endpoint == LINKED_ENDPOINT:
        g.link = _live_link()
    if endpoint in PUBLIC_ENDPOINTS or not is_under_api(request.path):
        return
    scheme, _, key = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    found = _live_key(key.strip()) if scheme.lower() == SCHEME else None
    if found is None:
        g.client = _client()
        count_failure()
        raise Unauthorized
    g.key = found


def _live_key(key: str) -> Key | None:
    live_keys: LiveKeys = current_app.extensions["live_keys"]
    if (known := live_keys.known(key)) or not is_well_formed(key):
        return known
    with guard_store():
        return live_keys.ask(key)


def _client() -> str:
    config: Config = current_app.extensions["config"]
    return client_of(request.remote_addr or "", request.headers.get("X-Forwarded-For", ""), config.trusted_proxies)


def _live_link() -> Link:
    """Return the link that is asked for, whose key still lets in. Raises Forbidden."""
    links: Links = current_app.extensions["links"]
    link = links.read((request.view_args or {}).get("link", ""))
    if link is None:
        raise Forbidden
    with guard_store():
        key = get_key_by_id(get_store(), link.key_id)
    if key is None or key.fleet != link.fleet:
        raise Forbidden
    return link


def is_under_api(path: str) -> bool:
    """Return whether a path belongs to the API, known to it or not."""
    return path == API or path.startswith(f"{API}/")
