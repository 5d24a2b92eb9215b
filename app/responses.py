"""Answers: JSON or what a client likes better, and sparing it what it holds."""

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from flask import Request, Response
from werkzeug.datastructures import Headers

from app.compression import held_tag
from app.store.served import Found, Seen, version_of
from schemas.header import MaskHeaders, header_names

(MASK_HEADER,) = header_names(MaskHeaders())
JSON = "application/json"
NONE: Mapping[str, str] = {}
TAG_BYTES = 12
REVALIDATED = "private, no-cache"


class JsonResponse(Response):
    """An answer with a body of bytes, which need nothing more done to them, and neither do its headers."""

    def __init__(
        self, body: bytes, status: int = HTTPStatus.OK, content_type: str = JSON, headers: Mapping[str, str] = NONE
    ) -> None:
        own = [("Content-Type", content_type), ("Content-Length", str(len(body))), *headers.items()]
        super().__init__([body], status, Headers(own))

    def get_wsgi_headers(self, environ: Any) -> Headers:
        """Return the headers as they are: the body's length is one of them, and none is a URL."""
        return self.headers

    def get_app_iter(self, environ: Any) -> Any:
        """Return the body as it is, or nothing where HEAD asks; there is nothing to be closed after it."""
        return () if environ["REQUEST_METHOD"] == "HEAD" else self.response


def json_response(content: Any, status: HTTPStatus = HTTPStatus.OK, mimetype: str = JSON) -> Response:
    """Return `content`, which is in served shape and order, as JSON."""
    return JsonResponse(orjson.dumps(content), status, mimetype)


def not_modified(headers: Mapping[str, str]) -> Response:
    """Return the empty answer to a client that holds the answer."""
    response = Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    del response.headers["Content-Type"]
    return response


def prefers(request: Request, kind: str, *others: str) -> bool:
    """Return whether the client names a media type, and likes it no less than the first it names of the others."""
    if kind not in request.environ.get("HTTP_ACCEPT", "").lower():
        return False
    liked: dict[str, float] = {}
    for name, quality in request.accept_mimetypes:
        named = name.partition(";")[0].strip().lower()
        liked[named] = max(liked.get(named, 0.0), quality)
    return liked.get(kind, 0.0) > 0 and liked[kind] >= next((liked[other] for other in others if other in liked), 0.0)


class Revalidation:
    """The entity tags of a request's answers: they follow from fleet, request, mask, media type and the data's version.

    `varies` names the headers of the request that the answer depends on.
    """

    def __init__(self, request: Request, fleet: str, mask: str, varies: str = MASK_HEADER, kind: str = JSON) -> None:
        environ = request.environ
        self._asks = "HTTP_IF_NONE_MATCH" in environ
        self._asked = f"{fleet}\n{environ['PATH_INFO']}\n{kind}\n{mask}\n".encode() + request.query_string
        self._varies, self._kind = varies, kind

    @property
    def seen(self) -> Seen | None:
        """What tells whether the client holds the answer of a version; None where it names none."""
        return self._holds if self._asks else None

    def respond(self, found: Found, make: Callable[[Any], Any] | None = None) -> Response:
        """Return the answer, or an empty 304 where the client holds it; `make` makes it of what JSON would have."""
        version, body = found.version, b"" if found.content is None else orjson.dumps(found.content)
        if make is not None and body:
            body = orjson.dumps(make(orjson.loads(body)))
        if version is None:
            version = version_of(body)
        tag = self._tag(version)
        held = held_tag(tag) if found.content is None or found.version is None else None
        headers = {"ETag": f'"{held or tag}"', "Cache-Control": REVALIDATED, "Vary": self._varies}
        if held is None:
            return JsonResponse(body, HTTPStatus.OK, self._kind, headers)
        return not_modified(headers)

    def _holds(self, version: bytes) -> bool:
        return held_tag(self._tag(version)) is not None

    def _tag(self, version: bytes) -> str:
        return hashlib.blake2b(self._asked + b"\n" + version, digest_size=TAG_BYTES).hexdigest()
