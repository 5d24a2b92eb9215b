"""Content encodings: the choice of one, and the ETag of a response in each. `responses` decides on a 304."""

import functools

from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header

# The encodings in order of preference.
ENCODINGS = ("zstd", "gzip")
# A smaller response fits into one packet with its headers, so compressing it gains nothing.
MIN_BYTES = 1_000


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
