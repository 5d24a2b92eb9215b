"""Who is asking. Everything under /api/v1 takes a key, but for the endpoints named here."""

from flask import current_app, g, request
from werkzeug.exceptions import MethodNotAllowed

from app.client_ip import get_client_ip
from app.config import API, Config
from app.database import get_store, guard_store
from app.errors import Forbidden, Unauthorized
from app.middleware.rate_limit import count_failure
from app.report_links import ReportLink, ReportLinkSigner
from app.store.api_keys import ApiKey, ApiKeyCache, get_key_by_id, is_well_formed

REPORT_FILE_ENDPOINT = "report.get_report_file"
PUBLIC_ENDPOINTS = frozenset(
    {
        "health.get_health",
        "health.get_liveness",
        "docs.get_document",
        "docs.get_page",
        "docs.get_file",
        REPORT_FILE_ENDPOINT,
    }
)
SCHEME = "apikey"


def authenticate() -> None:
    """Find out the fleet of the request, `g.api_key.fleet`, or the report that its link leads to, `g.report_link`.

    Raises MethodNotAllowed, Forbidden, Unauthorized, or RateLimitExceeded for a client that failed too often.
    """
    if isinstance(request.routing_exception, MethodNotAllowed):
        # Needs no key and is not counted.
        raise request.routing_exception
    endpoint = request.endpoint
    if endpoint == REPORT_FILE_ENDPOINT:
        g.report_link = _verify_report_link()
    if endpoint in PUBLIC_ENDPOINTS or not is_under_api(request.path):
        return
    scheme, _, key = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    found = _get_api_key(key.strip()) if scheme.lower() == SCHEME else None
    if found is None:
        g.client = _client()
        count_failure()
        raise Unauthorized
    g.api_key = found


def _get_api_key(key: str) -> ApiKey | None:
    api_key_cache: ApiKeyCache = current_app.extensions["api_key_cache"]
    if (known := api_key_cache.get_cached(key)) or not is_well_formed(key):
        return known
    with guard_store():
        return api_key_cache.fetch(key)


def _client() -> str:
    config: Config = current_app.extensions["config"]
    return get_client_ip(request.remote_addr or "", request.headers.get("X-Forwarded-For", ""), config.trusted_proxies)


def _verify_report_link() -> ReportLink:
    """Return the link that is asked for, whose key still lets in. Raises Forbidden."""
    signer: ReportLinkSigner = current_app.extensions["report_link_signer"]
    link = signer.verify((request.view_args or {}).get("link", ""))
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
