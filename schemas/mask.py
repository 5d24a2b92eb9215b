"""Field masks, the X-Fields header: which fields of an answer a client asks for.

The grammar and its outcomes, oddities included, are those of Flask-RESTX 1.3.2.
"""

import re
from collections.abc import Callable
from typing import Any

from schemas.introspection import Fields, RawFields

# As a mask is written: names in its order, each with the mask of what lies below it, if any.
Mask = dict[str, "Mask | None"]

TOKEN = re.compile(r"[{},]|[\w:*-]+")
WILDCARD = "*"


class MaskError(Exception):
    """A mask that does not fit the answer."""

    def __init__(self, message: str = "Mask error: Mask is inconsistent with model") -> None:
        super().__init__(message)


class ParseError(MaskError):
    """A mask that cannot be read."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Mask parse error: {reason}")


def select_fields(whole: Fields, text: str) -> Fields:
    """Return those of the fields that a mask asks for, in the order asked; all of them for a mask of spaces only.

    A part that is asked for whole is that of `whole` itself. Takes linear time. Raises ParseError and MaskError.
    """
    text = text.strip()
    return apply_mask(whole, parse(text)) if text else whole


def parse(text: str) -> Mask:
    """Return the mask that a text without spaces around it stands for. Raises ParseError."""
    if text.startswith("{"):
        if not text.endswith("}"):
            raise ParseError("Missing closing bracket")
        text = text[1:-1]
    fields: Mask = {}
    above: list[Mask] = []
    previous = None
    for token in TOKEN.findall(text):
        match token:
            case "{":
                if previous not in fields:
                    raise ParseError("Unexpected opening bracket")
                above.append(fields)
                fields[previous] = fields = {}
            case "}":
                if not above:
                    raise ParseError("Unexpected closing bracket")
                fields = above.pop()
            case ",":
                if previous in (",", "{", None):
                    raise ParseError("Unexpected comma")
            case name:
                fields[name] = None
        previous = token
    if above:
        raise ParseError("Missing closing bracket")
    return fields


def apply_mask(whole: Fields, mask: Mask) -> Fields:
    """Return the fields that the mask names, in its order, then the others if it names `*`. Raises MaskError.

    That is `whole` itself where they are all of its fields in its order.
    """
    if isinstance(whole, RawFields) and any(below is not None for below in mask.values()):
        raise MaskError
    asked: Fields = {}
    for name, below in mask.items():
        if name in whole:
            part = whole[name]
            if below is not None and part is None:
                raise MaskError
            asked[name] = apply_mask(part, below) if part is not None and below else part
    if WILDCARD in mask:
        asked |= {name: part for name, part in whole.items() if name not in asked}
    is_whole = list(asked) == list(whole) and all(asked[name] is part for name, part in whole.items())
    return whole if is_whole else asked


def make_pruner(asked: Fields, whole: Fields) -> Callable[[Any], Any]:
    """Return a function that prunes a value of a shape, a list of such or None to the fields asked for, in their order.

    `whole` has all fields of the shape; a part that is asked for whole is left as it is.
    """
    if asked is whole:
        return lambda value: value
    narrower = {name: below for name, below in asked.items() if below is not None and below is not whole[name]}
    parts = {name: make_pruner(below, whole[name] or {}) for name, below in narrower.items()}

    def prune(value: Any) -> Any:
        if isinstance(value, list):
            return [prune(item) for item in value]
        if value is None:
            return None
        return {name: parts[name](value[name]) if name in parts else value[name] for name in asked if name in value}

    return prune
