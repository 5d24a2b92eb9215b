"""The base of the schemas of source documents, and the field for long lists of objects in them, such as a trail."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter, not_
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields
from marshmallow.validate import Length, Range

from schemas.fields import Objects, RawObject

# The errors of a document that its reason names.
MAX_NAMED_ERRORS = 5
# The objects that are validated at once.
CHUNK = 1_000


class SourceSchema(Schema):
    """The schema of a source document, or of an object in one.

    A field with `load_default=None` may be absent from a line of an import file, and from a document that was stored
    before the schema got the field: it is then loaded as null. MongoDB refuses to write a document without it. A
    required field is never absent.

    The cost of finding the errors of a document does not grow with their number: only the first few unknown fields, and
    the first few invalid objects in `Rows`, are errors.
    """

    # The methods with `validates_schema`, for `Rows`.
    rules: ClassVar[tuple[Callable[..., None], ...]] = ()

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Let a field whose default is null when it is loaded have this default when it is dumped, too."""
        if field_obj.load_default is None:
            field_obj.dump_default = None

    def load(self, data: Any, **kwargs: Any) -> Any:
        """Return the loaded data. Raises ValidationError.

        If many fields are unknown, only the first in alphabetical order are errors: one more than a reason names.
        """
        if isinstance(data, Mapping) and len(data) > len(self.fields) + MAX_NAMED_ERRORS:
            unknown = heapq.nsmallest(MAX_NAMED_ERRORS + 1, (name for name in data if name not in self.fields))
            data = {name: data[name] for name in (*self.fields, *unknown) if name in data}
        return super().load(data, **kwargs)


class Rows(Objects):
    """A long list of objects of one schema, whose fields are values, or raw objects that are empty or complete.

    It validates all values of a field at once, and dumps loaded objects unchanged. This takes a tenth of the time that
    a schema takes for each object. It works on chunks of the list: if a chunk has an object that is invalid, or a value
    that is absent or null, the schema loads each object of this chunk, and names the errors. A list with more than
    `most` objects is refused at once, and one with more invalid objects than a reason names is not read further.
    """

    def __init__(self, schema: type[SourceSchema], description: str = "", *, most: int, **kwargs: Any) -> None:
        error = f"Must have at most {most} elements."
        super().__init__(schema, description, validate=Length(max=most, error=error), **kwargs)
        self._schema = schema()

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if type(value) is not list:
            raise self.make_error("invalid")
        for validate in self.validators:
            validate(value)
        rows, errors = list[Any](), dict[int, Any]()
        for first in range(0, len(value), CHUNK):
            chunk = value[first : first + CHUNK]
            rows += _load(self._schema, chunk) or self._load_each(chunk, first, errors)
            if len(errors) > MAX_NAMED_ERRORS:
                break
        if errors:
            raise ValidationError(errors)
        return rows

    def _load_each(self, rows: Iterable[Any], first: int, errors: dict[int, Any]) -> Iterator[Any]:
        """Yield the valid objects, and add the errors of others by index. `first` is the index of the first object."""
        for index, row in enumerate(rows, first):
            try:
                yield self.inner.deserialize(row)
            except ValidationError as error:
                errors[index] = error.messages
            if len(errors) > MAX_NAMED_ERRORS:
                return

    def _serialize(self, value: Any, attr: Any, obj: Any, **kwargs: Any) -> Any:
        # It was loaded: the fields of each object are in order, and none is absent that is null by default.
        return value


def _load(schema: Any, rows: list[Any]) -> list[dict[str, Any]] | None:
    """Return valid objects with their fields in order, or None if one is invalid, or has a value absent or null."""
    if not set(map(type, rows)) <= {dict}:
        return None
    names, orders = tuple(schema.fields), set(map(tuple, rows))
    if not orders <= {names}:
        if any(set(order) != set(names) for order in orders):
            return None
        rows = [{name: row[name] for name in names} for row in rows]
    for name, field in schema.fields.items() if rows else ():
        column = list(map(itemgetter(name), rows))
        if not isinstance(field, RawObject):
            if not _is_valid_column(field, column):
                return None
            continue
        if not set(map(type, column)) <= {dict}:
            return None
        given = list(filter(None, column))
        loaded = _load(field.schema, given)
        if loaded is None:
            return None
        if loaded is not given:
            ordered = iter(loaded)
            rows = [{**row, name: next(ordered) if row[name] else {}} for row in rows]
    try:
        for rule in schema.rules:
            for row in rows:
                rule(schema, row)
    except ValidationError:
        return None
    return rows


def _is_valid_column(field: Any, column: list[Any]) -> bool:
    """Return whether every value of the column is valid for the field, which returns it as it is."""
    types = set(map(type, column))
    if not all(map(field.accepts, types)):
        return False
    # If the smallest and the largest value are in a range, so are all others.
    has_range = bool(field.validators) and all(isinstance(rule, Range) for rule in field.validators)
    try:
        for value_type in types:
            values = column if len(types) == 1 else [value for value in column if type(value) is value_type]
            for value in {min(values), max(values)} if has_range else set(values):
                field.deserialize(value)
    except ValidationError:
        return False
    return not (float in types and "-0.0" in map(repr, filter(not_, column)))
