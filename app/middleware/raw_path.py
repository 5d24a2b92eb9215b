"""Routing on the path as the client sent it, so that an encoded slash stays part of an identifier."""

import functools
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.routing import BaseConverter

# An encoded byte, or a character that needs encoding: neither unreserved (RFC 3986, section 2.3) nor a slash.
ESCAPABLE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~/-]")

# Each byte, encoded in up to four spellings, or not encoded.
MAX_CACHED_BYTES = 2_000


class RawPath:
    """WSGI middleware that sets PATH_INFO to the path with each segment percent-encoded in one normal form.

    WSGI servers decode PATH_INFO, so that `a%2Fb` and `a/b` become equal. This middleware restores the difference from
    the request line.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Set PATH_INFO and handle the request."""
        path = ESCAPABLE.sub(lambda match: _normalize(match[0]), _get_raw_path(environ))
        # Werkzeug removes doubled slashes at the start, but such a path has to be a 404.
        environ["PATH_INFO"] = f"/%2F{path[2:]}" if path.startswith("//") else path
        return self.app(environ, start_response)


class SegmentConverter(BaseConverter):
    """Decodes a segment of a path. Bytes that are not UTF-8 become lone surrogates, which no identifier may contain."""

    def to_python(self, value: str) -> str:
        """Return the decoded segment."""
        return unquote_to_bytes(value).decode("utf-8", "surrogateescape")

    def to_url(self, value: str) -> str:
        """Return the percent-encoded segment."""
        return quote(value, safe="")


class RestConverter(BaseConverter):
    """Matches the rest of a path, slashes included, without decoding it."""

    regex = ".+"
    part_isolating = False
    # That of werkzeug's converter for the rest of a path: other rules come before it.
    weight = 200


@functools.lru_cache(MAX_CACHED_BYTES)
def _normalize(byte: str) -> str:
    return quote_from_bytes(unquote_to_bytes(byte.encode("latin-1")), safe="")


def _get_raw_path(environ: WSGIEnvironment) -> str:
    target: str = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
    if not target:
        return quote(environ["PATH_INFO"], encoding="latin-1")
    path = target.partition("?")[0]
    # Clients of proxies send the absolute form, http://host/path.
    return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]
