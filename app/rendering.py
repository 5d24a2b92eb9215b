"""The bodies of responses: what a field mask selects of the content that the store returns, and its conversions."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
from marshmallow import ValidationError

from app.services import get_services
from app.store import Document
from app.store.rendered import PART_LENGTH, RenderedArray, RenderedTrip, RenderedTrips
from schemas.header import MASK
from schemas.mask import Fields, SelectedFields, make_pruner

# Yields a representation of the content in parts. It reads the elements of lists one after the other.
Convert = Callable[[Any], Iterator[bytes]]

# The field whose objects are 100,000 at most, and nearly all of a long trip.
TRAIL = "trail_path"
# What takes the points of long trips makes objects of them, and so does one thread of a worker at a time: together they
# would not be faster, but take the memory of all, and all other threads would wait for each of them.
_TURN = threading.Lock()


def make_body(content: Document, fields: Fields, media_type: str, convert: Convert | None) -> bytes | Iterator[bytes]:
    """Return the body of a response: the content converted, or the fields that a mask selects as JSON, in their order.

    The JSON of long trips comes in parts that are made while they are sent, unless the mask takes their points. Raises
    ValidationError if that, or a conversion, would take the points of trips that are too long to be parsed.
    """
    trips = next((value for value in content.values() if isinstance(value, RenderedTrips)), None)
    if trips is None and not convert:
        return orjson.dumps(select(content, fields))
    takes_points = convert is not None or _selects_within_trails(fields)
    are_long = trips is not None and trips.are_long
    if trips and are_long and takes_points:
        with get_services().store_breaker.guard():
            is_possible = trips.read_all()
        if not is_possible:
            raise _too_long(media_type, is_converted=convert is not None)
    selected = {name: content[name] for name in fields}
    parts = convert({name: _open(value) for name, value in selected.items()}) if convert else _render(selected, fields)
    if are_long and not takes_points:
        return parts
    with _TURN if are_long else contextlib.nullcontext():
        return b"".join(parts)


def select(content: Document, fields: Fields) -> Document:
    """Return the fields of the content that a mask selects, in their order. What a mask prunes is parsed first."""
    return {
        name: make_pruner(below)(orjson.loads(orjson.dumps(content[name])))
        if isinstance(below, SelectedFields)
        else content[name]
        for name, below in fields.items()
    }


def _selects_within_trails(fields: Fields) -> bool:
    """Return whether a mask prunes the points of trails."""
    return any(
        isinstance(below, SelectedFields) and (name == TRAIL or _selects_within_trails(below))
        for name, below in fields.items()
    )


def _too_long(media_type: str, *, is_converted: bool) -> ValidationError:
    reason = "The trips of this page are too long together"
    if is_converted:
        way = "Request each trip by its trip_id, or the page as application/json."
        return ValidationError({"Accept": [f"{reason} for {media_type}. {way}"]})
    way = f"Request each trip by its trip_id, or {TRAIL} with all of its fields in their order."
    return ValidationError({MASK: [f"{reason} to select some fields of their points. {way}"]})


class _Opened:
    """The elements of a list as a conversion reads them: each is parsed when it is its turn."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return map(_parse, self._values)


def _open(value: Any) -> Any:
    return _Opened(value) if isinstance(value, list | RenderedTrips) else value


def _parse(value: Any) -> Any:
    """Return an element of a list as plain values, and the arrays of a trip as RenderedArray."""
    if isinstance(value, RenderedTrip):
        return value.parse()
    if isinstance(value, dict) and any(isinstance(part, RenderedTrip) for part in value.values()):
        return {name: _parse(part) for name, part in value.items()}
    return orjson.loads(orjson.dumps(value))


def _render(value: Any, fields: Fields | None) -> Iterator[bytes]:
    """Yield what a mask selects of a value as JSON, in parts. It takes the trips out of a list of trips."""
    selected = fields if isinstance(fields, SelectedFields) else None
    if isinstance(value, RenderedTrips):
        # A generator expression would keep a trip while the next one is read.
        yield from _render_array(map(functools.partial(_render, fields=fields), value.take()))
    elif isinstance(value, RenderedTrip):
        yield from _encode(value.render()) if selected is None else _render(value.parse(), selected)
    elif isinstance(value, RenderedArray):
        yield from _encode([value.text]) if selected is None else _render_array(_prune(value, selected))
    elif isinstance(value, dict):
        names = [name for name in (value if selected is None else selected) if name in value]
        for index, name in enumerate(names):
            begin = "," if index else "{"
            yield f'{begin}"{name}":'.encode()
            yield from _render(value[name], selected and selected[name])
        yield b"}" if names else b"{}"
    else:
        yield orjson.dumps(make_pruner(selected)(value))


def _prune(array: RenderedArray, selected: SelectedFields) -> Iterator[list[bytes]]:
    prune = make_pruner(selected)
    return ([orjson.dumps(list(map(prune, part)))[1:-1]] for part in array.parse())


def _render_array(elements: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    yield b"["
    for index, parts in enumerate(elements):
        if index:
            yield b","
        yield from parts
    yield b"]"


def _encode(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield texts in parts of limited length."""
    for text in texts:
        for begin in range(0, len(text), PART_LENGTH):
            yield text[begin : begin + PART_LENGTH].encode()
