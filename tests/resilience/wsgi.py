"""The application called over WSGI, in this process and at full speed; RAW_URI is as gunicorn sets it."""

import io
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import orjson


class Answer(NamedTuple):
    """What came back; headers in their order, and repeated ones each by itself."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self):
        return orjson.loads(self.body)

    def header(self, name):
        """Return the value of the first header of that name, in whichever case, or None."""
        return next((value for found, value in self.headers if found.lower() == name.lower()), None)


def ask(app, target, headers=(), method="GET", body=b""):
    """Return the Answer to a request line's target and header lines, each a pair of text in Latin-1."""
    path, _, query = target.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "RAW_URI": target,
        "PATH_INFO": unquote_to_bytes(path.encode("latin-1")).decode("latin-1"),
        "QUERY_STRING": query,
        "SCRIPT_NAME": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    environ.update(_variables(headers))
    began = []
    parts = app.wsgi_app(environ, lambda status, sent, error=None: began.extend((status, sent)))
    try:
        content = b"".join(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    status, sent = began
    return Answer(int(status[:3]), sent, content)


def _variables(headers):
    found = {}
    for name, value in headers:
        variable = name.upper().replace("-", "_")
        if variable not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            variable = f"HTTP_{variable}"
        found[variable] = f"{found[variable]},{value}" if variable in found else value
    return found
