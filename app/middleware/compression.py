"""Compression of responses, with zstd or gzip, as the client accepts it."""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

from flask import Response, request
from isal import isal_zlib

from app.content_encoding import choose_encoding, get_encoded_etag

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# What media types begin with that are compressed.
COMPRESSED = ("application/json", "application/geo+json", "application/problem+json", "text/")
# Of zlib's formats, gzip.
GZIP = 31
# As in `app.content_encoding`. Higher levels cost several times as much and save a tenth of the bytes at the most.
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
    named, not_modified = dict(iter(headers)), response.status_code == HTTPStatus.NOT_MODIFIED
    if not not_modified and not named.get("Content-Type", "").startswith(COMPRESSED):
        return
    if "Vary" in named:
        headers["Vary"] = f"{named['Vary']}, Accept-Encoding"
    else:
        headers.add("Vary", "Accept-Encoding")
    accepted = request.environ.get("HTTP_ACCEPT_ENCODING")
    if not accepted or not_modified or "Content-Encoding" in named:
        return
    encoding, smallest = choose_encoding(accepted)
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
        response.set_etag(get_encoded_etag(tag, encoding), bool(weak))


def _compressed(parts: Iterable[Any], compressor: Any) -> Iterator[bytes]:
    for part in parts:
        if compressed := compressor.compress(part):
            yield compressed
    yield compressor.flush()
