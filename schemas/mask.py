"""Field masks: the fields of a response that a client selects with the header X-Fields.

The grammar and its results, including its peculiarities, are those of Flask-RESTX 1.3.2.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from marshmallow import Schema

from schemas.fields import RawObject, nested_schema

# The names of a schema's fields in their order, each with the fields of the nested schema or None.
Fields = dict[str, "Fields | None"]
# The names in a mask, in its order, each with the nested mask of that name or None.
Mask = dict[str, "Mask | None"]

TOKEN = re.compile(r"[{},]|[\w:*-]+")
WILDCARD = "*"


class RawFields(Fields):
    """The fields of an object in which any of them may be absent (schemas.fields.RawObject)."""


class SelectedFields(Fields):
    """What a field mask leaves of the fields of an object: some of them, or all in another order."""


class MaskError(Exception):
    """A mask that does not match the schema of the response."""

    def __init__(self, message: str = "Mask error: Mask is inconsistent with model") -> None:
        super().__init__(message)


class ParseError(MaskError):
    """A mask with a syntax error."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Mask parse error: {reason}")


@functools.cache
def fields_of(schema: type[Schema]) -> Fields:
    """Return the declared fields of a schema with those of nested schemas. Each call returns the same object."""
    result: Fields = {}
    for name, field in schema().fields.items():
        nested = nested_schema(field)
        below = None if nested is None else fields_of(type(nested))
        result[name] = RawFields(below) if below and isinstance(field, RawObject) else below
    return result


def select_fields(all_fields: Fields, text: str) -> Fields:
    """Return the fields that a mask selects, in the order of the mask. A mask of only spaces selects all.

    If it selects all fields in their order, the result is the original Fields, which needs no pruning, and so for each
    nested object; otherwise it is SelectedFields. Takes linear time. Raises ParseError and MaskError.
    """
    text = text.strip()
    return apply_mask(all_fields, parse(text)) if text else all_fields


def parse(text: str) -> Mask:
    """Parse a mask without spaces around it. Raises ParseError."""
    if text.startswith("{"):
        if not text.endswith("}"):
            raise ParseError("Missing closing bracket")
        text = text[1:-1]
    fields: Mask = {}
    parents: list[Mask] = []
    previous = None
    for token in TOKEN.findall(text):
        match token:
            case "{":
                if previous not in fields:
                    raise ParseError("Unexpected opening bracket")
                parents.append(fields)
                fields[previous] = fields = {}
            case "}":
                if not parents:
                    raise ParseError("Unexpected closing bracket")
                fields = parents.pop()
            case ",":
                if previous in (",", "{", None):
                    raise ParseError("Unexpected comma")
            case name:
                fields[name] = None
        previous = token
    if parents:
        raise ParseError("Missing closing bracket")
    return fields


def apply_mask(all_fields: Fields, mask: Mask) -> Fields:
    """Return the fields that the mask names, in its order, then the others if it names `*`. Raises MaskError."""
    if isinstance(all_fields, RawFields) and any(below is not None for below in mask.values()):
        raise MaskError
    selected: Fields = {}
    for name, below in mask.items():
        if name in all_fields:
            part = all_fields[name]
            if below is not None and part is None:
                raise MaskError
            selected[name] = apply_mask(part, below) if part is not None and below else part
    if WILDCARD in mask:
        selected |= {name: part for name, part in all_fields.items() if name not in selected}
    is_whole = [*selected] == [*all_fields] and not any(isinstance(part, SelectedFields) for part in selected.values())
    return all_fields if is_whole else SelectedFields(selected)


def make_pruner(fields: Fields | None) -> Callable[[Any], Any]:
    """Return a function that prunes an object, a list of objects or None to SelectedFields, in their order.

    Other `fields` are all that there are: the value is returned unchanged.
    """
    if not isinstance(fields, SelectedFields):
        return lambda value: value
    names = tuple(fields)
    pruners = {name: make_pruner(below) for name, below in fields.items() if isinstance(below, SelectedFields)}

    def prune(value: Any) -> Any:
        if isinstance(value, dict):
            part = {name: value[name] for name in names if name in value}
            for name, prune_part in pruners.items():
                if name in part:
                    part[name] = prune_part(part[name])
            return part
        return None if value is None else [prune(item) for item in value]

    return prune
