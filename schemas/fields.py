"""The kinds of value that documents and queries are made of.

Document fields take a JSON value of exactly their own type and hand it on unchanged, so a document is imported, stored
and served in one form. Each names the BSON types that the store may hold for it.
"""

import datetime
import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, missing
from marshmallow.validate import OneOf, Range

# As marshmallow types them.
Messages = dict[str, str | list[Any] | dict[Any, Any]]

# BSON's integers have 64 bits.
MIN_INT, MAX_INT = -(2**63), 2**63 - 1
# The ends of the years 1 and 9999: every time of a trip has a date of four digits.
MIN_EPOCH_MS, MAX_EPOCH_MS = -62_135_596_800_000, 253_402_300_799_999
MAX_IDENTIFIER_BYTES = 128
# Unicode's category Cc.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
EXAMPLE_REQUEST_ID = "b7d3f1c2a94e4f0d8a6c5e1f2b3a4c5d"


def field_metadata(description: str = "", example: Any = missing) -> dict[str, Any]:
    """Return a field's metadata: what the value means, its unit included, and an example of it."""
    told = {"description": description} if description else {}
    return told if example is missing else {**told, "examples": [example]}


class _StrictField(fields.Field[Any]):
    types: ClassVar[frozenset[type]]
    bson_types: ClassVar[tuple[str, ...]]
    # What holds beside the validators, as JSON Schema says it: in the store too, and what a client is told alone.
    json_schema_keywords: ClassVar[dict[str, Any]] = {}
    openapi_keywords: ClassVar[dict[str, Any]] = {}

    def __init__(self, description: str = "", *, example: Any = missing, **kwargs: Any) -> None:
        super().__init__(metadata=field_metadata(description, example), **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        # By type(), since a JSON true is no number although Python's True is an int.
        if type(value) not in self.types:
            raise self.make_error("invalid")
        return value

    def _serialize(self, value: Any, attr: Any, obj: Any, **kwargs: Any) -> Any:
        return value


class Text(_StrictField, fields.String):
    """A string of any characters."""

    types = frozenset({str})
    bson_types = ("string",)
    default_error_messages: Messages = {"invalid": "Must be a string."}


class Identifier(Text):
    """An opaque id: 1–128 bytes of UTF-8 without control characters, and not `.` or `..`."""

    json_schema_keywords: ClassVar[dict[str, Any]] = {"minLength": 1, "maxLength": MAX_IDENTIFIER_BYTES}
    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": r"^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f]+$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise ValidationError("Must be UTF-8.") from None
        if not 1 <= size <= MAX_IDENTIFIER_BYTES:
            raise ValidationError(f"Must have 1 to {MAX_IDENTIFIER_BYTES} bytes of UTF-8; it has {size}.")
        if CONTROL.search(text):
            raise ValidationError("Must not hold control characters.")
        if text in (".", ".."):
            raise ValidationError("Must not be '.' or '..'.")
        return text


class Date(Text):
    """A calendar date, `YYYY-MM-DD`, kept as text."""

    pattern = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
    json_schema_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^{pattern.pattern}$"}
    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "date"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if not self.pattern.fullmatch(text):
            raise ValidationError("Must be a date written YYYY-MM-DD.")
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            raise ValidationError("Must be a date that exists, written YYYY-MM-DD.") from None
        return text


class Int64(_StrictField, fields.Integer):
    """An integer of 64 bits at the most, written without a fraction."""

    types = frozenset({int})
    bson_types = ("int", "long")
    default_error_messages: Messages = {"invalid": "Must be a whole number."}

    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "int64"}

    def __init__(self, description: str = "", *, low: int = MIN_INT, high: int = MAX_INT, **kwargs: Any) -> None:
        super().__init__(description, validate=Range(low, high), **kwargs)


class IntegerChoice(Int64):
    """One of some integers."""

    def __init__(self, description: str = "", *, choices: Sequence[int], **kwargs: Any) -> None:
        super().__init__(description, **kwargs)
        self.validators = [OneOf(choices, error=f"Must be one of {', '.join(map(str, choices))}.")]


class Count(Int64):
    """How many: 0 or more."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        super().__init__(description, low=0, **kwargs)


class EpochMs(Int64):
    """Milliseconds since 1970-01-01T00:00:00Z, within the years 1 to 9999."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        super().__init__(description, low=MIN_EPOCH_MS, high=MAX_EPOCH_MS, **kwargs)


class Number(_StrictField, fields.Float):
    """A finite number: a double, or an integer of 64 bits at the most, which stays one."""

    types = frozenset({int, float})
    bson_types = ("int", "long", "double")
    default_error_messages: Messages = {
        "invalid": "Must be a number.",
        "infinite": "Must be a finite number.",
        "large": "Must be within 64 bits when written as an integer.",
    }

    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "double"}

    def __init__(
        self, description: str = "", *, low: float | None = None, high: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(description, validate=Range(low, high), **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int | float:
        number: int | float = super()._deserialize(value, attr, data, **kwargs)
        if isinstance(number, int):
            if not MIN_INT <= number <= MAX_INT:
                raise self.make_error("large")
        elif not math.isfinite(number):
            raise self.make_error("infinite")
        return number


class Amount(Number):
    """A duration or distance: 0 or more."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        super().__init__(description, low=0, **kwargs)


class Latitude(Number):
    """Degrees, north positive."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        super().__init__(description, low=-90, high=90, **kwargs)


class Longitude(Number):
    """Degrees, east positive."""

    def __init__(self, description: str = "", **kwargs: Any) -> None:
        super().__init__(description, low=-180, high=180, **kwargs)


class Bytes(_StrictField):
    """Binary data, in the store alone."""

    types = frozenset({bytes})
    bson_types = ("binData",)


class Flag(_StrictField, fields.Boolean):
    """True or false."""

    types = frozenset({bool})
    bson_types = ("bool",)
    default_error_messages: Messages = {"invalid": "Must be true or false."}


class RawObject(fields.Nested):
    """An object that may lack any of its fields; a mask picks among them and goes no deeper."""


class OneOfNested(fields.Field[Any]):
    """An object of one of several shapes, of which no two have an object in common."""

    def __init__(self, *shapes: type[Schema], **kwargs: Any) -> None:
        self.shapes = shapes
        super().__init__(**kwargs)
