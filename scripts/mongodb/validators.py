"""The validators of the collections, which follow from the schemas of `schemas/stored.py`."""

from collections.abc import Callable
from sys import float_info
from typing import Any

from marshmallow import Schema
from marshmallow.fields import Field, List
from marshmallow.validate import Length, OneOf, Range

from schemas import fields
from schemas.driver import GroupNames
from schemas.stored import IDENTIFIERS, STORED
from schemas.trip import EVENT_NAMES, OVERSPEEDING, SPEEDS, Event

Expression = dict[str, Any]


def _make_validator(name: str) -> dict[str, Any]:
    """Return the validator of a collection: a JSON schema, and expressions for the rules that this cannot have."""
    schema = STORED[name]()
    rules = _make_json_schema(schema)
    # A source has an expression for its _id.
    rules["properties"]["_id"] = {}
    expressions = [_is_identity(IDENTIFIERS[name])] if name in IDENTIFIERS else []
    for field_name, field in schema.fields.items():
        expressions += [make(f"${field_name}") for kind, make in EXPRESSIONS.items() if isinstance(field, kind)]
    if name == "trips":
        expressions += TRIP_TIMES
    return {"$jsonSchema": rules, **({"$expr": {"$and": expressions}} if expressions else {})}


def _make_json_schema(schema: Schema) -> dict[str, Any]:
    required = [name for name, field in schema.fields.items() if fields.always_present(field)]
    rules: dict[str, Any] = {
        "bsonType": "object",
        "properties": {name: _make_field_schema(field) for name, field in schema.fields.items()},
        "additionalProperties": False,
        **({"anyOf": EVENT_TYPES} if isinstance(schema, Event) else {}),
    }
    return {**rules, "required": required} if required else rules


def _make_field_schema(field: Field[Any]) -> dict[str, Any]:
    if isinstance(field, List):
        most = [("maxItems", rule.max) for rule in field.validators if isinstance(rule, Length)]
        return {"bsonType": "array", "items": _make_field_schema(field.inner), **dict(most)}
    if nested := fields.nested_schema(field):
        return _make_json_schema(nested)
    rules: dict[str, Any] = {**field.json_schema_keywords}  # type: ignore[attr-defined]
    for kind in reversed(type(field).mro()):
        rules |= KEYWORDS.get(kind, {})
    if field.allow_none:
        rules["bsonType"] = [*rules["bsonType"], "null"]
    for rule in field.validators:
        if isinstance(rule, OneOf):
            rules["enum"] = list(rule.choices)
        elif isinstance(rule, Range):
            bounds = {"minimum": rule.min, "maximum": rule.max}
            rules |= {name: bound for name, bound in bounds.items() if bound is not None}
    return rules


def _text(path: str) -> Expression:
    """Return an expression for a string, which is empty for a value of another type."""
    return {"$cond": [{"$eq": [{"$type": path}, "string"]}, path, ""]}


def _is_identity(name: str) -> Expression:
    """Return an expression for the `_id` that `make_id` returns."""
    return {"$eq": ["$_id", {"$concat": [_text("$fleet"), "/", _text(f"${name}")]}]}


def _has_at_most_bytes(path: str) -> Expression:
    """Return an expression that limits an identifier in bytes: `maxLength` counts characters."""
    return {"$lte": [{"$strLenBytes": _text(path)}, fields.MAX_IDENTIFIER_BYTES]}


def _are_names(path: str) -> Expression:
    """Return an expression for `GroupNames`: each within the limit in bytes, and none twice."""
    names = {"$cond": [{"$isArray": path}, path, []]}
    sizes = {"$map": {"input": names, "in": _has_at_most_bytes("$$this")}}
    return {"$and": [{"$allElementsTrue": [sizes]}, {"$eq": [{"$size": names}, {"$size": {"$setUnion": [names]}}]}]}


def _is_date_or_null(path: str) -> Expression:
    """Return an expression for a date that exists: the pattern of `Date` also matches 2026-02-30."""
    date = {"dateString": path, "format": "%Y-%m-%d", "onError": None}
    text = {"$dateToString": {"date": {"$dateFromString": date}, "format": "%Y-%m-%d"}}
    exists = {"$and": [{"$eq": [path, text]}, {"$gte": [path, "0001-01-01"]}]}
    # In an expression, a field that is absent does not equal null.
    return {"$or": [{"$eq": [{"$ifNull": [path, None]}, None]}, exists]}


# The keywords of each field type beside those that OpenAPI has, too.
KEYWORDS: dict[type, dict[str, Any]] = {
    fields.Text: {"bsonType": ["string"]},
    # In PCRE, `$` also matches before a line break at the end.
    fields.Identifier: {"pattern": r"^(?!\.{1,2}\z)[^\x{0}-\x{1f}\x{7f}-\x{9f}]+\z"},
    fields.FleetName: {"pattern": r"^(?!\.{1,2}\z)[^/\x{0}-\x{1f}\x{7f}-\x{9f}]+\z"},
    fields.Date: {"maxLength": 10},
    fields.Int64: {"bsonType": ["int", "long"]},
    # Finite. NaN is less than any number in MongoDB.
    fields.Number: {"bsonType": ["int", "long", "double"], "minimum": -float_info.max, "maximum": float_info.max},
    fields.Flag: {"bsonType": ["bool"]},
}
# What `check_type` of an event checks.
EVENT_TYPES = [
    {
        "properties": {
            "event_type": {"enum": [number]},
            "event_name": {"enum": [name]},
            "event_data": {"minProperties": size, "maxProperties": size},
        }
    }
    for number, name in EVENT_NAMES.items()
    for size in [len(SPEEDS) if number == OVERSPEEDING else 0]
]
# For each field type the expression of its rules, which gets the path of the field.
EXPRESSIONS: dict[type, Callable[[str], Expression]] = {
    fields.Identifier: _has_at_most_bytes,
    fields.Date: _is_date_or_null,
    GroupNames: _are_names,
}
EVENTS = {"$cond": [{"$isArray": "$events"}, "$events", []]}
EVENT_TIMES = {"$gte": ["$$this.event_end_timestamp", "$$this.event_start_timestamp"]}
# A trip and its events do not end before they start: `check_times` of their schemas.
TRIP_TIMES: list[Expression] = [
    {"$gte": ["$trip_end_time", "$trip_start_time"]},
    {"$allElementsTrue": {"$map": {"input": EVENTS, "in": EVENT_TIMES}}},
]
VALIDATORS = {name: _make_validator(name) for name in STORED}
