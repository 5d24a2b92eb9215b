"""Routing on the path as the client sent it, so that an encoded slash stays part of an identifier."""

from collections.abc import Iterable
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.routing import BaseConverter


class RawPath:
    """WSGI middleware that sets PATH_INFO to the path with each segment percent-encoded in one normal form.

    WSGI servers decode PATH_INFO, so that `a%2Fb` and `a/b` become equal. This middleware restores the difference from
    the request line.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Set PATH_INFO and handle the request."""
        path = "/".join(map(_normalize, _get_raw_path(environ).split("/")))
        # Werkzeug removes doubled slashes at the start, but such a path has to be a 404.
        environ["PATH_INFO"] = f"/%2F{path[2:]}" if path.startswith("//") else path
        return self.app(environ, start_response)


class SegmentConverter(BaseConverter):
    """Decodes a segment of a path. Bytes that are not UTF-8 become lone surrogates, which no identifier may contain."""

    def to_python(self, value: str) -> str:
        """Return the decoded segment."""
        return unquote_to_bytes(value).decode("utf-8", "surrogateescape")


def _normalize(segment: str) -> str:
    return quote_from_bytes(unquote_to_bytes(segment.encode("latin-1")), safe="")


def _get_raw_path(environ: WSGIEnvironment) -> str:
    target: str = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
    if not target:
        return quote(environ["PATH_INFO"], encoding="latin-1")
    path = target.partition("?")[0]
    # Clients of proxies send the absolute form, http://host/path.
    return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]
