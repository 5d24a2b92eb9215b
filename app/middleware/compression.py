"""Compression of responses with zstd or gzip."""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

from flask import Response, request
from isal import isal_zlib

from app.conditional import get_encoded_etag
from app.responses import choose_encoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Prefixes of the media types to compress.
COMPRESSIBLE = ("application/json", "application/geo+json", "application/gpx+xml", "application/problem+json", "text/")
# zlib's `wbits` for the gzip format.
GZIP_WBITS = 31
# By the names in `responses.ENCODINGS`. Higher levels take several times as long and save at most a tenth of
# the bytes.
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": functools.partial(zstd.compress, level=1),
    "gzip": functools.partial(isal_zlib.compress, level=2, wbits=GZIP_WBITS),
}
# Static files are the same for everyone, and few.
MAX_CACHED_FILES = 100
# The same encodings for streamed responses.
STREAM_COMPRESSORS: dict[str, Callable[[], Any]] = {
    "zstd": functools.partial(zstd.ZstdCompressor, level=1),
    "gzip": functools.partial(isal_zlib.compressobj, level=2, wbits=GZIP_WBITS),
}


def compress(response: Response) -> None:
    """Compress a response with an encoding that the request accepts. A compressed response gets its own ETag."""
    headers = response.headers
    # Werkzeug's headers raise and catch an exception for each absent name, which is slow.
    header_values, not_modified = dict(iter(headers)), response.status_code == HTTPStatus.NOT_MODIFIED
    if not not_modified and not header_values.get("Content-Type", "").startswith(COMPRESSIBLE):
        return
    headers["Vary"] = f"{header_values['Vary']}, Accept-Encoding" if "Vary" in header_values else "Accept-Encoding"
    accepted = request.environ.get("HTTP_ACCEPT_ENCODING")
    if not accepted or not_modified or "Content-Encoding" in header_values:
        return
    encoding, min_bytes = choose_encoding(accepted)
    if encoding is None:
        return
    if response.is_streamed:
        response.response = _compress_parts(response.response, STREAM_COMPRESSORS[encoding]())
        headers.pop("Content-Length", None)
    else:
        body = response.get_data()
        if len(body) < min_bytes:
            return
        is_static = header_values.get("Cache-Control", "").startswith("public")
        response.set_data(compress_static(encoding, body) if is_static else COMPRESSORS[encoding](body))
    headers["Content-Encoding"] = encoding
    etag, weak = response.get_etag()
    if etag is not None:
        response.set_etag(get_encoded_etag(etag, encoding), bool(weak))


@functools.lru_cache(MAX_CACHED_FILES)
def compress_static(encoding: str, body: bytes) -> bytes:
    """Return the body of a static file in an encoding. It is compressed once."""
    return COMPRESSORS[encoding](body)


def _compress_parts(parts: Iterable[Any], compressor: Any) -> Iterator[bytes]:
    for part in parts:
        if compressed := compressor.compress(part):
            yield compressed
    yield compressor.flush()
