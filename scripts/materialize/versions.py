"""Rendered JSON, the versions of what is rendered, and whether two documents are the same."""

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson
from bson.int64 import Int64
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


def is_same(value: Any, stored: Any) -> bool:
    """Return whether a value is stored as it is, with the same fields and types, in any order of the fields.

    Absent is not null, and neither 1.0 nor true is 1. Integers of 32 and of 64 bits are the same type.
    """
    if isinstance(value, dict) and isinstance(stored, dict):
        return value.keys() == stored.keys() and all(is_same(value[name], stored[name]) for name in value)
    if isinstance(value, list) and isinstance(stored, list):
        return len(value) == len(stored) and all(map(is_same, value, stored))
    # 0.0 equals -0.0, but is another text.
    return bool(_type_of(value) is _type_of(stored) and value == stored) and (
        not isinstance(value, float) or repr(value) == repr(stored)
    )


def _type_of(value: Any) -> type:
    return int if type(value) is Int64 else type(value)
