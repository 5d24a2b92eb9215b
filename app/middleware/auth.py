"""Authentication. Every path under /api/v1 requires an API key, unless its endpoint declares another credential."""

from flask import g, request
from werkzeug.exceptions import MethodNotAllowed

from app.client_ip import get_client_ip
from app.config import API
from app.endpoint import Credential, get_credential
from app.errors import REFUSED_LINK_PAGE, Forbidden, Unauthorized
from app.report_links import ReportLink
from app.services import get_services
from app.store.api_keys import ApiKey, get_key_by_id, is_well_formed
from app.store.scope import Scope

SCHEME = "apikey"


def authenticate() -> None:
    """Set `g.scope`, and `g.api_key` or for a report link `g.report_link`, from the credentials of the request.

    Raises MethodNotAllowed, Forbidden, Unauthorized, or RateLimitExceeded after too many failures of one client.
    """
    if isinstance(request.routing_exception, MethodNotAllowed):
        # A 405 needs no key and does not count against the rate limit.
        raise request.routing_exception
    credential = get_credential()
    if credential is Credential.REPORT_LINK:
        g.report_link = _verify_report_link()
        g.scope = Scope(g.report_link.fleet)
        return
    if credential is Credential.NONE or not is_under_api(request.path):
        return
    scheme, _, key = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    api_key = _get_api_key(key.strip()) if scheme.lower() == SCHEME else None
    if api_key is None:
        g.client = _get_client()
        get_services().count_auth_failure()
        raise Unauthorized
    g.api_key = api_key
    g.scope = api_key.scope


def _get_api_key(key: str) -> ApiKey | None:
    services = get_services()
    api_key = services.api_key_cache.get_cached(key)
    if api_key is not None or not is_well_formed(key):
        return api_key
    with services.store_breaker.guard():
        return services.api_key_cache.fetch(key)


def _get_client() -> str:
    trusted = get_services().config.trusted_proxies
    return get_client_ip(request.remote_addr or "", request.headers.get("X-Forwarded-For", ""), trusted)


def _verify_report_link() -> ReportLink:
    """Return the report link of the request. Raises Forbidden if it or the API key that requested it is not valid."""
    services = get_services()
    link = services.report_link_signer.verify((request.view_args or {}).get("link", ""))
    if link is not None:
        with services.store_breaker.guard():
            key = get_key_by_id(services.store, link.key_id)
        if key is not None and key.scope == Scope(link.fleet):
            return link
    raise Forbidden(page=REFUSED_LINK_PAGE)


def is_under_api(path: str) -> bool:
    """Return whether a path, known or unknown, is under /api/v1."""
    return path == API or path.startswith(f"{API}/")
