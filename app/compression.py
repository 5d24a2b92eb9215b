"""Answers compressed as the client accepts it, and the tags that tell one encoding of an answer from another."""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

from flask import Response, request
from isal import isal_zlib
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# A shorter answer fits one packet with its headers as it is.
MIN_BYTES = 1_000
# What media types begin with that are compressed.
COMPRESSED = ("application/json", "application/geo+json", "application/problem+json", "text/")
# Of zlib's formats, gzip.
GZIP = 31
# By preference. Higher levels cost several times as much and save a tenth of the bytes at the most.
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": functools.partial(zstd.compress, level=1),
    "gzip": functools.partial(isal_zlib.compress, level=2, wbits=GZIP),
}


# The same, a part at a time.
STREAMS: dict[str, Callable[[], Any]] = {
    "zstd": functools.partial(zstd.ZstdCompressor, level=1),
    "gzip": functools.partial(isal_zlib.compressobj, level=2, wbits=GZIP),
}


def compress(response: Response) -> None:
    """Compress a response as the request accepts it, and give a compressed one with an ETag a tag of its own."""
    headers = response.headers
    # As a dict, since Werkzeug raises and catches an error for each that is not there.
    named, held = dict(iter(headers)), response.status_code == HTTPStatus.NOT_MODIFIED
    if not held and not named.get("Content-Type", "").startswith(COMPRESSED):
        return
    if "Vary" in named:
        headers["Vary"] = f"{named['Vary']}, Accept-Encoding"
    else:
        headers.add("Vary", "Accept-Encoding")
    accepted = request.environ.get("HTTP_ACCEPT_ENCODING")
    if not accepted or held or "Content-Encoding" in named:
        return
    encoding, smallest = _choice(accepted)
    if encoding is None:
        return
    if response.is_streamed:
        response.response = _compressed(response.response, STREAMS[encoding]())
        headers.pop("Content-Length", None)
    else:
        body = response.get_data()
        if len(body) < smallest:
            return
        response.set_data(ENCODINGS[encoding](body))
    headers["Content-Encoding"] = encoding
    tag, weak = response.get_etag()
    if tag is not None:
        response.set_etag(_tag(tag, encoding), bool(weak))


def _compressed(parts: Iterable[Any], compressor: Any) -> Iterator[bytes]:
    for part in parts:
        if compressed := compressor.compress(part):
            yield compressed
    yield compressor.flush()


def held_tag(tag: str) -> str | None:
    """Return the tag of what the client holds already of the answer tagged `tag`, in whichever encoding, or None.

    It is for the 304 to carry: with it the client finds what it is to go on using. Tags are without quotes.
    """
    if "HTTP_IF_NONE_MATCH" not in request.environ:
        return None
    preferred, _ = _choice(request.environ.get("HTTP_ACCEPT_ENCODING", ""))
    # A cache that holds several is told of the one that its client takes.
    tags = (_tag(tag, encoding) for encoding in (preferred, None, *ENCODINGS))
    return next(filter(request.if_none_match.contains_weak, tags), None)


def _tag(tag: str, encoding: str | None) -> str:
    return f"{tag}-{encoding}" if encoding else tag


@functools.lru_cache
def _choice(accepted: str) -> tuple[str | None, int]:
    """Return which encoding an Accept-Encoding asks for, and the bytes from which on an answer gets it."""
    wanted = parse_accept_header(accepted, Accept)
    must = wanted.find("identity") >= 0 and not wanted.quality("identity")
    encoding = wanted.best_match((*ENCODINGS, "identity"))
    return encoding if encoding in ENCODINGS else None, 0 if must else MIN_BYTES
