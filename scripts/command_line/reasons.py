"""Why a document is rejected, in words: a line of an import, a source, the manifest of a backup."""

from collections.abc import Iterator
from typing import Any

from marshmallow import Schema, ValidationError, fields

from schemas.source import MAX_NAMED_ERRORS
from scripts.command_line.output import escape

# Only the beginning and the end of a longer error are shown: the name of an unknown field may have megabytes.
MAX_ERROR_CHARS, ERROR_END_CHARS = 300, 100
MISSING = str(fields.Field.default_error_messages["required"])
UNKNOWN = Schema().error_messages["unknown"]


def describe_errors(error: ValidationError) -> str:
    """Return the first errors of a document as one text, errors about missing fields last."""
    # marshmallow names unknown fields in the order of a set, which differs from process to process.
    errors = sorted(_flatten(error.messages, ""), key=lambda e: (e[1] == MISSING, e[0] if e[1] == UNKNOWN else ""))
    texts = [_shorten(f"{path}: {message}" if path else message) for path, message in errors[:MAX_NAMED_ERRORS]]
    more = ["and more."] if len(errors) > MAX_NAMED_ERRORS else []
    # An unknown field may have any name.
    return escape(" ".join(texts + more))


def _shorten(text: str) -> str:
    if len(text) <= MAX_ERROR_CHARS:
        return text
    return f"{text[: MAX_ERROR_CHARS - ERROR_END_CHARS]}...{text[-ERROR_END_CHARS:]}"


def _flatten(messages: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield marshmallow's messages with the path of their field, such as `trail_path[3].latitude`."""
    if isinstance(messages, dict):
        for name, inner in messages.items():
            step = f"[{name}]" if isinstance(name, int) else f".{name}" if path else name
            yield from _flatten(inner, path if name == "_schema" else path + step)
    else:
        for message in messages:
            yield path, message
