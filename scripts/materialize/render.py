"""Rendered JSON and versions, as read models hold them."""

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson
from marshmallow import Schema

VERSION_BYTES = 8


def to_json(schema: Schema, document: Any) -> str:
    """Return the JSON text of a document as the schema dumps it."""
    return orjson.dumps(schema.dump(document)).decode()


def version_of(*content: Any) -> str:
    """Return the version of some JSON values: 16 hexadecimal digits, others for other values."""
    return version_of_texts([orjson.dumps(content)])


def version_of_texts(texts: Iterable[bytes]) -> str:
    """Return the version of some texts."""
    digest = hashlib.blake2b(digest_size=VERSION_BYTES)
    for text in texts:
        digest.update(text)
    return digest.hexdigest()
