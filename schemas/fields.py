"""The field types of the schemas.

A field of a document accepts a JSON value of exactly its own type and returns it unchanged, so a document has the same
values in an import file, in MongoDB and in a response. A field of these types is required, unless it has a default or
`required=False`.
"""

import datetime
import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, missing
from marshmallow.validate import OneOf, Range

from schemas.periods import LONG_PERIODS, WEEK

# The type of `default_error_messages` in marshmallow.
Messages = dict[str, str | list[Any] | dict[Any, Any]]

# The range of a BSON integer of 64 bits.
MIN_INT, MAX_INT = -(2**63), 2**63 - 1
# The largest integer up to which a double, and so JavaScript, has all of them.
MAX_SAFE_INT = 2**53 - 1
# The first millisecond of the year 1 and the last of 9999, so that the date of a trip has a year of four digits.
MIN_EPOCH_MS, MAX_EPOCH_MS = -62_135_596_800_000, 253_402_300_799_999
MAX_IDENTIFIER_BYTES = 128
SURROGATE = re.compile("[\ud800-\udfff]")
# The characters of Unicode's category Cc.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
# Any other character, in the OpenAPI document. Generators would write \u0000 as the character itself.
NO_CONTROL = r"[^\x00-\x1f\x7f-\x9f]"
EXAMPLE_REQUEST_ID = "b7d3f1c2a94e4f0d8a6c5e1f2b3a4c5d"


def field_metadata(description: str = "", example: Any = missing) -> dict[str, Any]:
    """Return a field's metadata for the OpenAPI document. The description states the unit of a quantity."""
    metadata = {"description": description} if description else {}
    return metadata if example is missing else {**metadata, "examples": [example]}


def _declare(description: str, example: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a field, which is required unless it has a default or says otherwise.

    The default is also the example, unless there is another one.
    """
    if example is missing:
        example = kwargs.get("load_default") or missing
    return {"metadata": field_metadata(description, example), "required": "load_default" not in kwargs, **kwargs}


class _StrictField(fields.Field[Any]):
    types: ClassVar[frozenset[type]]
    # Keywords beside those that follow from the validators: for MongoDB's validator and OpenAPI, and for OpenAPI only.
    json_schema_keywords: ClassVar[dict[str, Any]] = {}
    openapi_keywords: ClassVar[dict[str, Any]] = {}

    def __init__(self, description: str = "", *, example: Any = missing, **kwargs: Any) -> None:
        super().__init__(**_declare(description, example, **kwargs))

    @classmethod
    def accepts(cls, value_type: type) -> bool:
        """Return whether values of a type are valid, apart from their range."""
        # A 64-bit integer from MongoDB is a subclass of int. So is a JSON true in Python, but it is not a number.
        return value_type in cls.types or (int in cls.types and issubclass(value_type, int) and value_type is not bool)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        if not self.accepts(type(value)):
            raise self.make_error("invalid")
        return value

    def _serialize(self, value: Any, attr: Any, obj: Any, **kwargs: Any) -> Any:
        return value


class Text(_StrictField, fields.String):
    """A string."""

    types = frozenset({str})
    default_error_messages: Messages = {"invalid": "Must be a string."}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        # JSON may have a surrogate that is alone, which is not a character. Bytes that are not UTF-8, such as é in
        # Latin-1, arrive from a request as surrogates, too.
        if not text.isascii() and SURROGATE.search(text):
            raise ValidationError("Must be UTF-8: it contains a lone surrogate or bytes of another encoding.")
        return text


class Choice(Text):
    """One of several texts. The OpenAPI document has those with a component once, under its name."""

    def __init__(self, description: str = "", *, component: str = "", choices: Sequence[str], **kwargs: Any) -> None:
        self.component = component
        super().__init__(description, validate=OneOf(choices), **kwargs)


class WeekOrMonth(Choice):
    """The type of a period that is ranked and reported on."""

    def __init__(self, description: str, **kwargs: Any) -> None:
        super().__init__(description, component="WeekOrMonth", choices=LONG_PERIODS, example=WEEK, **kwargs)


class ShortText(Text):
    """A text of 1 to 128 bytes of UTF-8 without control characters."""

    json_schema_keywords: ClassVar[dict[str, Any]] = {"minLength": 1, "maxLength": MAX_IDENTIFIER_BYTES}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        size = len(text.encode())
        if not 1 <= size <= MAX_IDENTIFIER_BYTES:
            raise ValidationError(f"Must have 1 to {MAX_IDENTIFIER_BYTES} bytes of UTF-8; it has {size}.")
        if CONTROL.search(text):
            raise ValidationError("Must not contain control characters.")
        return text


class Identifier(ShortText):
    """An opaque identifier: a short text that is neither `.` nor `..`."""

    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": rf"^(?!\.{{1,2}}$){NO_CONTROL}+$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if text in (".", ".."):
            raise ValidationError("Must not be '.' or '..'.")
        return text


class FleetName(Identifier):
    """The name of a fleet: an identifier without a slash, because it begins the `_id` of the fleet's documents."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if "/" in text:
            raise ValidationError("Must not contain a slash.")
        return text


class Date(Text):
    """A date, as a string `YYYY-MM-DD`."""

    pattern = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
    json_schema_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^{pattern.pattern}$"}
    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "date"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not self.pattern.fullmatch(text):
            raise ValidationError("Must be a date written YYYY-MM-DD.")
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            raise ValidationError("Must be a date that exists, written YYYY-MM-DD.") from None
        return text


class _RangeField(_StrictField):
    """A number from `low` to `high`, by default those of its type."""

    low: float | None = None
    high: float | None = None

    def __init__(
        self, description: str = "", *, low: float | None = None, high: float | None = None, **kwargs: Any
    ) -> None:
        self.low, self.high = self.low if low is None else low, self.high if high is None else high
        super().__init__(description, validate=Range(self.low, self.high), **kwargs)


class Int64(_RangeField, fields.Integer):
    """An integer of at most 64 bits. `1.0` is not an integer."""

    types = frozenset({int})
    default_error_messages: Messages = {"invalid": "Must be a whole number."}
    low, high = MIN_INT, MAX_INT


class Count(Int64):
    """A count: an integer from 0, by default one that JavaScript has."""

    low, high = 0, MAX_SAFE_INT


class EpochMs(Int64):
    """Milliseconds since 1970-01-01T00:00:00Z, in the years 1 to 9999."""

    low, high = MIN_EPOCH_MS, MAX_EPOCH_MS


class Number(_RangeField, fields.Float):
    """A finite number: a double, or an integer of at most 64 bits, which is stored as an integer.

    It is loaded as it is, but -0.0 as 0.0: they are equal, and should look equal wherever they are shown.
    """

    types = frozenset({int, float})
    default_error_messages: Messages = {
        "invalid": "Must be a number.",
        "infinite": "Must be a finite number.",
        "large": "Must fit into 64 bits when it is an integer.",
    }

    openapi_keywords: ClassVar[dict[str, Any]] = {"format": "double"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int | float:
        number: int | float = super()._deserialize(value, attr, data, **kwargs)
        if isinstance(number, int):
            if not MIN_INT <= number <= MAX_INT:
                raise self.make_error("large")
        elif not math.isfinite(number):
            raise self.make_error("infinite")
        # Also for zero, which may be -0.0.
        return number or abs(number)


class Amount(Number):
    """A duration or a distance: a number from 0."""

    low = 0


class Latitude(Number):
    """Degrees of latitude, positive to the north."""

    low, high = -90, 90


class Longitude(Number):
    """Degrees of longitude, positive to the east."""

    low, high = -180, 180


class Flag(_StrictField, fields.Boolean):
    """A boolean."""

    types = frozenset({bool})
    default_error_messages: Messages = {"invalid": "Must be true or false."}


class Object(fields.Nested):
    """An object of a schema."""

    def __init__(self, schema: type[Schema], description: str = "", **kwargs: Any) -> None:
        super().__init__(schema, **_declare(description, missing, **kwargs))


class List(fields.List[Any]):
    """A list of values. `example` is an example of the list."""

    def __init__(
        self, inner: fields.Field[Any], description: str = "", *, example: Any = missing, **kwargs: Any
    ) -> None:
        super().__init__(inner, **_declare(description, example, **kwargs))


class Objects(List):
    """A list of objects of a schema."""

    def __init__(self, schema: type[Schema], description: str = "", **kwargs: Any) -> None:
        super().__init__(fields.Nested(schema), description, **kwargs)


class RawObject(Object):
    """An object in which any field may be absent. A field mask selects among the fields, but not below them."""


def always_present(field: fields.Field[Any]) -> bool:
    """Return whether every response and every document that is written has the field."""
    return field.required or field.load_default is None


def nested_schema(field: fields.Field[Any]) -> Schema | None:
    """Return the schema of an object, or of the objects in a list, or None for other fields."""
    inner = field.inner if isinstance(field, fields.List) else field
    return inner.schema if isinstance(inner, fields.Nested) else None


def example(schema: Schema) -> dict[str, Any]:
    """Return an example document, made of the examples of the fields. A list without an example has one element."""
    return {name: _example(field) for name, field in schema.fields.items()}


def _example(field: fields.Field[Any]) -> Any:
    nested = nested_schema(field)
    if nested is None or "examples" in field.metadata:
        return field.metadata["examples"][0]
    return [example(nested)] if isinstance(field, fields.List) else example(nested)
