"""Derivations from a schema: its fields, an example, and MongoDB's validator."""

import functools
from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Length, OneOf, Range

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
        nested = _nested(field)
        below = None if nested is None else fields_of(type(nested))
        result[name] = RawFields(below) if below and isinstance(field, RawObject) else below
    return result


def always_present(field: fields.Field[Any]) -> bool:
    """Return whether every response and every document that is written has the field."""
    return field.required or field.load_default is None


def example(schema: Schema) -> dict[str, Any]:
    """Return an example document, made of the examples of the fields. A list without an example has one element."""
    return {name: _example(field) for name, field in schema.fields.items()}


def make_json_schema(schema: Schema) -> dict[str, Any]:
    """Return the `$jsonSchema` of MongoDB's validator for the documents of a schema."""
    required = [name for name, field in schema.fields.items() if always_present(field)]
    rules: dict[str, Any] = {
        "bsonType": "object",
        "properties": {name: _field_json_schema(field) for name, field in schema.fields.items()},
        "additionalProperties": False,
        **getattr(schema, "validator_keywords", {}),
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
        most = [("maxItems", rule.max) for rule in field.validators if isinstance(rule, Length)]
        return {"bsonType": "array", "items": _field_json_schema(field.inner), **dict(most)}
    nested = _nested(field)
    if nested is not None:
        rules = make_json_schema(nested)
        return {**rules, "bsonType": ["object", "null"]} if field.allow_none else rules
    types = [*field.bson_types, "null"] if field.allow_none else list(field.bson_types)  # type: ignore[attr-defined]
    keywords = {**field.json_schema_keywords, **field.validator_keywords}  # type: ignore[attr-defined]
    rules = {"bsonType": types, **keywords}
    for rule in field.validators:
        if isinstance(rule, OneOf):
            rules |= {"enum": [*rule.choices, None] if field.allow_none else list(rule.choices)}
        elif isinstance(rule, Range):
            rules |= {"minimum": rule.min} if rule.min is not None else {}
            rules |= {"maximum": rule.max} if rule.max is not None else {}
    return rules
