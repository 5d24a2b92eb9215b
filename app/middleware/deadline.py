"""The deadline of the MongoDB operations of a request."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pymongo

from app.database import TIMEOUT_SECONDS


class Deadline:
    """WSGI middleware that gives a request TIMEOUT_SECONDS for all MongoDB operations before its response starts."""

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request within the deadline."""
        with pymongo.timeout(TIMEOUT_SECONDS):
            return self.app(environ, start_response)
