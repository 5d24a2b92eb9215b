"""The deadline of a request."""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pymongo

from app.database import TIMEOUT_SECONDS


class Deadline:
    """WSGI middleware: a request has TIMEOUT_SECONDS for all its MongoDB operations before its response begins."""

    def __init__(self, app: WSGIApplication) -> None:
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        with pymongo.timeout(TIMEOUT_SECONDS):
            return self.app(environ, start_response)
