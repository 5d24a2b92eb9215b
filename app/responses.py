"""Responses: JSON and other media types, the choice between them, and conditional requests."""

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from flask import Response, current_app, request

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
    """Return a JSON response. `content` has exactly the fields of the response, in their order."""
    return Response(orjson.dumps(content), status, mimetype=mimetype)


def get_base_url() -> str:
    """Return the URL of the service: PUBLIC_BASE_URL, or the scheme and host of the request.

    It is empty if the request has no valid Host and PUBLIC_BASE_URL is not set.
    """
    base_url: str = current_app.extensions["config"].public_base_url
    return base_url or (request.host_url.rstrip("/") if request.host else "")


def not_modified(headers: Mapping[str, str]) -> Response:
    """Return a 304: the client has the current response stored."""
    response = Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    del response.headers["Content-Type"]
    return response


def prefers(media_type: str, *alternatives: str) -> bool:
    """Return whether the request prefers a media type to alternatives, which are in order of specificity.

    Accept has to name the media type, with at least the quality of the first alternative that Accept names.
    """
    if media_type not in request.environ.get("HTTP_ACCEPT", "").lower():
        return False
    qualities: dict[str, float] = {}
    for value, quality in request.accept_mimetypes:
        name = value.partition(";")[0].strip().lower()
        qualities[name] = max(qualities.get(name, 0.0), quality)
    limit = next((qualities[name] for name in alternatives if name in qualities), 0.0)
    return qualities.get(media_type, 0.0) > 0 and qualities[media_type] >= limit


class ConditionalResponder:
    """Makes the response to the current request, or a 304.

    The ETag depends on the fleet, the path and query, the field mask, the media type and the version of the content.
    `vary` has the names of the request headers on which the response depends.
    """

    def __init__(self, fleet: str, mask: str, *, vary: str = MASK_HEADER, media_type: str = JSON) -> None:
        environ = request.environ
        self._is_conditional = "HTTP_IF_NONE_MATCH" in environ
        self._identity = f"{fleet}\n{environ['PATH_INFO']}\n{media_type}\n{mask}\n".encode() + request.query_string
        self._vary, self._media_type = vary, media_type

    def respond(
        self, read: Callable[[Selection], Result], fields: Fields, convert: Callable[[Any], Any] | None = None
    ) -> Response:
        """Return the response with these fields of the result of `read`, or a 304.

        For a conditional request, first reads only the version. `convert` converts the JSON value to another
        representation.
        """
        if self._is_conditional:
            current_etag = self._get_etag(read(Selection(fields, include_content=False)).version)
            if matching_etag := get_matching_etag(current_etag):
                return not_modified(self._headers(matching_etag))
        version, content = read(Selection(fields))
        body = orjson.dumps(content)
        if convert is not None:
            body = orjson.dumps(convert(orjson.loads(body)))
        return Response(body, headers=self._headers(self._get_etag(version)), mimetype=self._media_type)

    def _headers(self, etag: str) -> dict[str, str]:
        return {"ETag": f'"{etag}"', "Cache-Control": CACHE_CONTROL_REVALIDATE, "Vary": self._vary}

    def _get_etag(self, version: str) -> str:
        return hashlib.blake2b(self._identity + b"\n" + version.encode(), digest_size=ETAG_BYTES).hexdigest()
