"""Paths as the client sent them, so that an encoded slash stays part of its identifier."""

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.routing import BaseConverter

# What stands for itself in every spelling (RFC 3986, 2.3), and the slash between.
UNRESERVED = re.compile(r"[A-Za-z0-9._~/-]*")


class RawPath:
    """WSGI middleware: the path reaches the routes segment by segment percent-encoded, each in one spelling.

    WSGI servers decode PATH_INFO, after which `a%2Fb` and `a/b` look alike; the request line as sent tells them apart.
    """

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = _sent_path(environ)
        if not UNRESERVED.fullmatch(path):
            path = "/".join(map(_respelled, path.split("/")))
        # Werkzeug drops slashes at the beginning; a doubled one is another path.
        environ["PATH_INFO"] = f"/%2F{path[2:]}" if path.startswith("//") else path
        return self.app(environ, start_response)


class SegmentConverter(BaseConverter):
    """One segment of a path, decoded. Bytes that are no UTF-8 become lone surrogates, which no identifier holds."""

    def to_python(self, value: str) -> str:
        """Return the text that the segment stands for."""
        return unquote_to_bytes(value).decode("utf-8", "surrogateescape")

    def to_url(self, value: str) -> str:
        """Return the segment that stands for the text."""
        return quote(value, safe="")


class RestConverter(BaseConverter):
    """All of the rest of a path, as it came."""

    regex = ".+"
    part_isolating = False


def _respelled(segment: str) -> str:
    return quote_from_bytes(unquote_to_bytes(segment.encode("latin-1")), safe="")


def _sent_path(environ: WSGIEnvironment) -> str:
    target: str = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
    if not target:
        return quote(environ["PATH_INFO"], encoding="latin-1")
    path = target.partition("?")[0]
    # The absolute form, which proxies send, is http://host/path.
    return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]
