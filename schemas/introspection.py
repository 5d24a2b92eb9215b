"""What follows from a shape: its fields, their projection, an example, the store's validator, a check of documents."""

import functools
from collections.abc import Callable
from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import OneOf, Range

from schemas.fields import RawObject

# The fields of a shape in their order, each with the fields of what lies below it, if any.
Fields = dict[str, "Fields | None"]

# Projected where nothing is asked for: no document has such a field, so of each there is left an empty one.
NOTHING = "_"


class RawFields(Fields):
    """The fields of an object that may lack any of them."""


@functools.cache
def fields_of(shape: type[Schema]) -> Fields:
    """Return the declared fields of a shape, down to the leaves: the same object each time."""
    found: Fields = {}
    for name, field in shape().fields.items():
        nested = _nested(field)
        below = None if nested is None else fields_of(type(nested))
        found[name] = RawFields(below) if below and isinstance(field, RawObject) else below
    return found


def projection(asked: Fields, prefix: str = "") -> dict[str, int]:
    """Return the MongoDB projection of exactly these fields, down to the leaves: all else is left unread."""
    paths: dict[str, int] = {} if asked else {prefix + NOTHING: 1}
    for name, below in asked.items():
        paths |= {prefix + name: 1} if below is None else projection(below, f"{prefix}{name}.")
    return paths if prefix else {"_id": 0, **paths}


def element_of(shape: type[Schema], name: str) -> type[Schema]:
    """Return the shape of what a field holds, or lists."""
    return type(_nested(_declared(shape)[name]))  # type: ignore[return-value]


def make_document_check(shape: type[Schema], asked: Fields) -> Callable[[Any], bool]:
    """Return what tells whether a document of the store has all these fields of a shape, of their types."""
    parts = [(name, _make_field_check(_declared(shape)[name], below)) for name, below in asked.items()]
    return lambda document: (
        isinstance(document, dict) and all(name in document and part(document[name]) for name, part in parts)
    )


@functools.cache
def _declared(shape: type[Schema]) -> dict[str, fields.Field[Any]]:
    return shape().fields


def _make_field_check(field: fields.Field[Any], asked: Fields | None) -> Callable[[Any], bool]:
    if isinstance(field, fields.List):
        one = _make_field_check(field.inner, asked)
        return lambda value: isinstance(value, list) and all(map(one, value))
    nested, nullable = _nested(field), field.allow_none
    if nested is None:
        types = tuple(field.types)  # type: ignore[attr-defined]
        # To Python, true is an integer.
        takes_bool = bool in types
        return lambda value: (
            nullable if value is None else isinstance(value, types) and isinstance(value, bool) == takes_bool
        )
    if isinstance(field, RawObject):
        return lambda value: isinstance(value, dict)
    whole = make_document_check(type(nested), asked or {})
    return lambda value: (nullable and value is None) or whole(value)


def always_present(field: fields.Field[Any]) -> bool:
    """Return whether every stored document and every answer has the field; an import may lack one with a default."""
    return field.required or field.load_default is None


def example(schema: Schema) -> dict[str, Any]:
    """Return a document of this shape, made of its fields' examples; other lists have one element."""
    return {name: _example(field) for name, field in schema.fields.items()}


def make_json_schema(schema: Schema) -> dict[str, Any]:
    """Return the `$jsonSchema` of a document of this shape."""
    required = [name for name, field in schema.fields.items() if always_present(field)]
    rules: dict[str, Any] = {
        "bsonType": "object",
        "properties": {name: _field_json_schema(field) for name, field in schema.fields.items()},
        "additionalProperties": False,
    }
    return {**rules, "required": required} if required else rules


def _nested(field: fields.Field[Any]) -> Schema | None:
    inner = field.inner if isinstance(field, fields.List) else field
    return inner.schema if isinstance(inner, fields.Nested) else None


def _example(field: fields.Field[Any]) -> Any:
    nested = _nested(field)
    if nested is None or "examples" in field.metadata:
        return field.metadata["examples"][0]
    return [example(nested)] if isinstance(field, fields.List) else example(nested)


def _field_json_schema(field: fields.Field[Any]) -> dict[str, Any]:
    if isinstance(field, fields.List):
        return {"bsonType": "array", "items": _field_json_schema(field.inner)}
    nested = _nested(field)
    if nested is not None:
        rules = make_json_schema(nested)
        return {**rules, "bsonType": ["object", "null"]} if field.allow_none else rules
    types = [*field.bson_types, "null"] if field.allow_none else list(field.bson_types)  # type: ignore[attr-defined]
    rules = {"bsonType": types, **field.json_schema_keywords}  # type: ignore[attr-defined]
    for rule in field.validators:
        if isinstance(rule, OneOf):
            rules |= {"enum": [*rule.choices, None] if field.allow_none else list(rule.choices)}
        elif isinstance(rule, Range):
            rules |= {"minimum": rule.min} if rule.min is not None else {}
            rules |= {"maximum": rule.max} if rule.max is not None else {}
    return rules
