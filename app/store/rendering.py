"""Responses made from rendered JSON, unchanged or pruned by a field mask."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from orjson import Fragment

from schemas.introspection import Fields, SelectedFields
from schemas.mask import make_pruner


def join_fragments(*objects: str) -> str:
    """Return the rendered JSON of an object that has the fields of several, at least one of them each."""
    return objects[0] if len(objects) == 1 else f"{{{','.join(text[1:-1] for text in objects)}}}"


def render_list(fields: Fields | None, objects: Sequence[str]) -> list[Any]:
    """Return values for orjson from the rendered JSON of objects, as `make_renderer` makes them."""
    if not isinstance(fields, SelectedFields):
        return list(map(Fragment, objects))
    # One call for all objects takes two thirds of the time of a call for each.
    pruned: list[Any] = make_pruner(fields)(orjson.loads(f"[{','.join(objects)}]"))
    return pruned


def make_renderer(fields: Fields | None) -> Callable[[str], Any]:
    """Return a function that makes a value for orjson from the rendered JSON of an object.

    The JSON is used unchanged, unless `fields` are SelectedFields. Then it is parsed, and the value has only these
    fields, in their order.
    """
    if not isinstance(fields, SelectedFields):
        return Fragment
    prune = make_pruner(fields)
    return lambda text: prune(orjson.loads(text))
