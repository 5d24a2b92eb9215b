"""Rendered JSON, and the versions of what is rendered."""

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson
from marshmallow import Schema

VERSION_BYTES = 8


def render_json(schema: Schema, document: Any) -> str:
    """Return a document as JSON, with the fields of the schema in its order."""
    return orjson.dumps(schema.dump(document)).decode()


def version_of(*content: Any) -> str:
    """Return the version of JSON values: 16 hexadecimal digits, a hash of the values."""
    return version_of_texts([orjson.dumps(content)])


def version_of_texts(texts: Iterable[bytes]) -> str:
    """Return the version of texts: 16 hexadecimal digits, a hash of them."""
    digest = hashlib.blake2b(digest_size=VERSION_BYTES)
    for text in texts:
        digest.update(text)
    return digest.hexdigest()
