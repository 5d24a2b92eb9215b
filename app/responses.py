"""Answers: JSON or what a client likes better, and sparing it what it holds."""

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from flask import Request, Response

from app.content_encoding import get_matching_etag
from app.store import Result
from app.store.pagination import Selection
from schemas.header import MaskHeaders, header_names
from schemas.introspection import Fields

(MASK_HEADER,) = header_names(MaskHeaders())
JSON = "application/json"
ETAG_BYTES = 12
CACHE_CONTROL_REVALIDATE = "private, no-cache"


def json_response(content: Any, status: HTTPStatus = HTTPStatus.OK, mimetype: str = JSON) -> Response:
    """Return `content`, which is in served shape and order, as JSON."""
    return Response(orjson.dumps(content), status, mimetype=mimetype)


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


class ConditionalResponder:
    """The entity tags of a request's responses: they follow from fleet, request, mask, media type and the version read.

    `varies` names the request headers that the response depends on.
    """

    def __init__(
        self, request: Request, fleet: str, mask: str, *, varies: str = MASK_HEADER, media_type: str = JSON
    ) -> None:
        environ = request.environ
        self._is_conditional = "HTTP_IF_NONE_MATCH" in environ
        self._identity = f"{fleet}\n{environ['PATH_INFO']}\n{media_type}\n{mask}\n".encode() + request.query_string
        self._varies, self._media_type = varies, media_type

    def respond(
        self, read: Callable[[Selection], Result], fields: Fields, convert: Callable[[Any], Any] | None = None
    ) -> Response:
        """Return the response with these fields of what `read` finds, or an empty 304 where the client has it already.

        `convert` makes another representation of the JSON value.
        """
        if self._is_conditional and (
            held := get_matching_etag(self._tag(read(Selection(fields, include_content=False)).version))
        ):
            return not_modified(self._headers(held))
        version, content = read(Selection(fields))
        body = orjson.dumps(content)
        if convert is not None:
            body = orjson.dumps(convert(orjson.loads(body)))
        return Response(body, headers=self._headers(self._tag(version)), mimetype=self._media_type)

    def _headers(self, tag: str) -> dict[str, str]:
        return {"ETag": f'"{tag}"', "Cache-Control": CACHE_CONTROL_REVALIDATE, "Vary": self._varies}

    def _tag(self, version: str) -> str:
        return hashlib.blake2b(self._identity + b"\n" + version.encode(), digest_size=ETAG_BYTES).hexdigest()
