"""Answers: JSON, and sparing a client what it holds."""

import hashlib
from http import HTTPStatus
from typing import Any

import orjson
from flask import Request, Response

from app.store.served import Found, Seen, version_of

JSON = "application/json"
TAG_BYTES = 12
REVALIDATED = "private, no-cache"


def json_response(content: Any, status: HTTPStatus = HTTPStatus.OK, mimetype: str = JSON) -> Response:
    """Return `content`, which is in served shape and order, as JSON."""
    return Response(orjson.dumps(content), status=status, mimetype=mimetype)


class Revalidation:
    """The entity tags of a request's answers: they follow from fleet, request and mask, and the version of the data."""

    def __init__(self, request: Request, fleet: str, mask: str) -> None:
        self._request = request
        self._asked = f"{fleet}\n{request.environ['PATH_INFO']}\n{mask}\n".encode() + request.query_string

    @property
    def seen(self) -> Seen | None:
        """What tells whether the client holds the answer of a version; None where it names none."""
        return self._holds if "If-None-Match" in self._request.headers else None

    def respond(self, found: Found) -> Response:
        """Return the answer, or an empty 304 where the client holds it."""
        version, body = found.version, orjson.dumps(found.content) if found.content is not None else b""
        if version is None:
            version = version_of(body)
        if found.content is None or (found.version is None and self._holds(version)):
            response = Response(status=HTTPStatus.NOT_MODIFIED)
            del response.headers["Content-Type"]
        else:
            response = Response(body, mimetype=JSON)
        response.headers["ETag"] = f'"{self._tag(version)}"'
        response.headers["Cache-Control"] = REVALIDATED
        return response

    def _holds(self, version: bytes) -> bool:
        return self._request.if_none_match.contains_weak(self._tag(version))

    def _tag(self, version: bytes) -> str:
        return hashlib.blake2b(self._asked + b"\n" + version, digest_size=TAG_BYTES).hexdigest()
