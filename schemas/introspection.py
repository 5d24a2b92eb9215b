"""Derivations from a schema: its fields, and an example."""

import functools
from typing import Any

from marshmallow import Schema, fields

from schemas.fields import RawObject

# The names of a schema's fields in their order, each with the fields of the nested schema or None.
Fields = dict[str, "Fields | None"]


class RawFields(Fields):
    """The fields of an object in which any of them may be absent (schemas.fields.RawObject)."""


class SelectedFields(Fields):
    """What a field mask leaves of the fields of an object: some of them, or all in another order."""


@functools.cache
def fields_of(schema: type[Schema]) -> Fields:
    """Return the declared fields of a schema with those of nested schemas. Each call returns the same object."""
    result: Fields = {}
    for name, field in schema().fields.items():
        nested = nested_schema(field)
        below = None if nested is None else fields_of(type(nested))
        result[name] = RawFields(below) if below and isinstance(field, RawObject) else below
    return result


def always_present(field: fields.Field[Any]) -> bool:
    """Return whether every response and every document that is written has the field."""
    return field.required or field.load_default is None


def example(schema: Schema) -> dict[str, Any]:
    """Return an example document, made of the examples of the fields. A list without an example has one element."""
    return {name: _example(field) for name, field in schema.fields.items()}


def nested_schema(field: fields.Field[Any]) -> Schema | None:
    """Return the schema of an object, or of the objects in a list, or None for other fields."""
    inner = field.inner if isinstance(field, fields.List) else field
    return inner.schema if isinstance(inner, fields.Nested) else None


def _example(field: fields.Field[Any]) -> Any:
    nested = nested_schema(field)
    if nested is None or "examples" in field.metadata:
        return field.metadata["examples"][0]
    return [example(nested)] if isinstance(field, fields.List) else example(nested)
