"""Authentication. Every path under /api/v1 requires an API key, unless its endpoint declares another credential.

A cache has the valid keys, so that few requests read one from the database.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from flask import g, request
from werkzeug.exceptions import MethodNotAllowed

from app.client_ip import get_client_ip
from app.config import API
from app.endpoint import Credential, get_credential
from app.errors import REFUSED_LINK_PAGE, Forbidden, Unauthorized
from app.report_links import ReportLink
from app.services import get_services
from app.store import Store
from app.store.api_keys import ApiKey, digest, get_key, get_key_by_id, has_expired, is_well_formed
from app.store.scope import Scope

SCHEME = "apikey"
# A revoked key has to be refused within 5 seconds.
CACHE_TTL_SECONDS = 3
# An entry takes 500 bytes, so the cache takes at most 5 MB.
MAX_CACHED_KEYS = 10_000


class ApiKeyCache:
    """A cache of the valid keys of a store, each for CACHE_TTL_SECONDS. All threads of a process share it.

    `guard` returns the context within which a key is read.
    """

    def __init__(self, store: Store, guard: Callable[[], AbstractContextManager[None]]) -> None:
        self._store, self._guard = store, guard
        self._cached: dict[str, tuple[float, ApiKey]] = {}

    def get(self, key: str) -> ApiKey | None:
        """Return the ApiKey of a valid key, or None. A revoked key is valid for up to CACHE_TTL_SECONDS more."""
        if not is_well_formed(key):
            return None
        now, key_digest = time.time(), digest(key)
        if entry := self._cached.get(key_digest):
            read_at, cached = entry
            # A clock that is set back does not extend the TTL: the age is then negative.
            if 0 <= now - read_at < CACHE_TTL_SECONDS and not has_expired(cached.expires_at):
                return cached
        with self._guard():
            api_key = get_key(self._store, key)
        if api_key:
            # Invalid keys are not cached, so a client without a key cannot fill the cache.
            if len(self._cached) >= MAX_CACHED_KEYS:
                self._cached.clear()
            self._cached[key_digest] = now, api_key
        return api_key


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
    is_under_api = f"{request.path}/".startswith(f"{API}/")
    if credential is Credential.NONE or not is_under_api:
        return
    scheme, _, key = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    api_key = get_services().get_api_key(key.strip()) if scheme.lower() == SCHEME else None
    if api_key is None:
        forwarded_for, trusted = request.headers.get("X-Forwarded-For", ""), get_services().config.trusted_proxies
        g.client = get_client_ip(request.remote_addr or "", forwarded_for, trusted)
        get_services().count_auth_failure()
        raise Unauthorized
    g.api_key = api_key
    g.scope = api_key.scope


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
