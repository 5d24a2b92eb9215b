"""Conditional requests: ETags, and the 304 for a client that has the current response stored."""

import hashlib
from collections.abc import Mapping
from http import HTTPStatus

from flask import Response, request

from app.responses import ENCODINGS, choose_encoding, empty_response
from app.services import get_scope

ETAG_BYTES = 12


def make_etag(version: str, media_type: str, mask: str) -> str:
    """Return the ETag, without quotes, of the response to the current request in a media type and without an encoding.

    It depends on the version of the content, on what the request may see, on path and query, and on the field mask.
    """
    scope, environ = get_scope().identity, request.environ
    requested = f"{scope}\n{environ['PATH_INFO']}\n{media_type}\n{mask}\n".encode() + request.query_string
    return hashlib.blake2b(requested + b"\n" + version.encode(), digest_size=ETAG_BYTES).hexdigest()


def find_not_modified(etag: str, headers: Mapping[str, str]) -> Response | None:
    """Return a 304 with headers if If-None-Match has the ETag of the response in any encoding, otherwise None.

    `etag` is that of the response without an encoding, without quotes. A 304 has to carry the matching ETag, because
    the client uses it to select its stored response.
    """
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return None
    preferred, _ = choose_encoding(request.environ.get("HTTP_ACCEPT_ENCODING", ""))
    # A cache may have stored several encodings, and needs the one that its client accepts.
    etags = (get_encoded_etag(etag, encoding) for encoding in (preferred, None, *ENCODINGS))
    for matching in filter(request.if_none_match.contains_weak, etags):
        return empty_response(HTTPStatus.NOT_MODIFIED, {**headers, "ETag": f'"{matching}"'})
    return None


def get_encoded_etag(etag: str, encoding: str | None) -> str:
    """Return the ETag of a response in an encoding; `etag` is that without an encoding."""
    return f"{etag}-{encoding}" if encoding else etag
