"""Content encodings: the choice for a request, and the ETag of a response in each encoding."""

import functools

from flask import request
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header

# The encodings in order of preference.
ENCODINGS = ("zstd", "gzip")
# A smaller response fits into one packet with its headers, so compressing it gains nothing.
MIN_BYTES = 1_000


def get_matching_etag(etag: str) -> str | None:
    """Return the ETag in If-None-Match that matches a response in any encoding, or None.

    `etag` is that of the response without an encoding. A 304 has to carry the matching ETag, because the client uses it
    to select its stored response. ETags are without quotes.
    """
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return None
    preferred, _ = choose_encoding(request.environ.get("HTTP_ACCEPT_ENCODING", ""))
    # A cache may have stored several encodings, and needs the one that its client accepts.
    etags = (get_encoded_etag(etag, encoding) for encoding in (preferred, None, *ENCODINGS))
    return next(filter(request.if_none_match.contains_weak, etags), None)


def get_encoded_etag(etag: str, encoding: str | None) -> str:
    """Return the ETag of a response in an encoding; `etag` is that without an encoding."""
    return f"{etag}-{encoding}" if encoding else etag


@functools.lru_cache
def choose_encoding(accept_encoding: str) -> tuple[str | None, int]:
    """Return the encoding for an Accept-Encoding header, or None, and the minimum bytes of a response to encode."""
    accepted = parse_accept_header(accept_encoding, Accept)
    refuses_identity = accepted.find("identity") >= 0 and not accepted.quality("identity")
    encoding = accepted.best_match((*ENCODINGS, "identity"))
    return encoding if encoding in ENCODINGS else None, 0 if refuses_identity else MIN_BYTES
