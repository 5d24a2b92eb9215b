"""Content encodings: which one a client gets, and the ETag of a response in each of them."""

import functools

from flask import request
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header

# By preference.
ENCODINGS = ("zstd", "gzip")
# A shorter response fits one packet with its headers as it is.
MIN_BYTES = 1_000


def get_matching_etag(tag: str) -> str | None:
    """Return the ETag that If-None-Match names of the response tagged `tag`, in whichever encoding, or None.

    A 304 has to carry it: the client finds its stored response by it. Tags are without quotes.
    """
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return None
    preferred, _ = choose_encoding(request.environ.get("HTTP_ACCEPT_ENCODING", ""))
    # A cache may have stored several encodings; it needs the one that its client accepts.
    tags = (get_encoded_etag(tag, encoding) for encoding in (preferred, None, *ENCODINGS))
    return next(filter(request.if_none_match.contains_weak, tags), None)


def get_encoded_etag(tag: str, encoding: str | None) -> str:
    """Return the ETag of the response tagged `tag` in an encoding."""
    return f"{tag}-{encoding}" if encoding else tag


@functools.lru_cache
def choose_encoding(accept_encoding: str) -> tuple[str | None, int]:
    """Return the encoding that an Accept-Encoding header asks for, and from how many bytes on to apply it."""
    accepted = parse_accept_header(accept_encoding, Accept)
    refuses_identity = accepted.find("identity") >= 0 and not accepted.quality("identity")
    encoding = accepted.best_match((*ENCODINGS, "identity"))
    return encoding if encoding in ENCODINGS else None, 0 if refuses_identity else MIN_BYTES
