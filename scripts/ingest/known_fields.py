"""Records of another service, which may have fields and events that this one does not know, and integers as `1.0`."""

from typing import Any

from marshmallow import Schema, fields

from schemas.fields import Int64, RawObject
from schemas.trip import EVENT_NAMES, Event

# The other service may send any number of names, of any length.
MAX_NAMES, MAX_NAME_CHARS = 20, 100


class KnownFields:
    """Reduces records to the fields and events that this service knows, and keeps the names of the others."""

    def __init__(self) -> None:
        self._names, self._new_names = set[str](), list[str]()

    def keep(self, schema: Schema, record: Any, path: str = "") -> None:
        """Change a record in place, which has the shape of the schema but for unknown fields and types of events.

        An integer written as `1.0` becomes that integer, and an `event_data` that is null becomes `{}`. All other
        violations of the schema stay. `path` is that of the record in another one, with a dot at its end.
        """
        if not isinstance(record, dict):
            return
        for name in [name for name in record if name not in schema.fields]:
            del record[name]
            self._leave_out(f"{path}{name}")
        for name, value in record.items():
            record[name] = self._keep_value(schema.fields[name], value, f"{path}{name}.")

    def _keep_value(self, field: Any, value: Any, path: str) -> Any:
        if isinstance(field, Int64):
            return int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(field, RawObject) and value is None:
            return {}
        if isinstance(field, fields.Nested):
            self.keep(field.schema, value, path)
        elif isinstance(field, fields.List) and isinstance(value, list):
            return [item for item in value if self._is_known(field.inner, self._keep_value(field.inner, item, path))]
        return value

    def _is_known(self, field: Any, item: Any) -> bool:
        """Return whether an item of a list is anything but an event of another type, which is left out."""
        is_event = isinstance(field, fields.Nested) and isinstance(field.schema, Event) and isinstance(item, dict)
        number = item.get("event_type") if is_event else None
        if type(number) is not int or number in EVENT_NAMES:
            return True
        self._leave_out(f"event_type {number} {item.get('event_name')}")
        return False

    def _leave_out(self, name: str) -> None:
        name = name[:MAX_NAME_CHARS]
        if name not in self._names and len(self._names) < MAX_NAMES:
            self._names.add(name)
            self._new_names.append(name)

    def describe_new(self) -> str:
        """Return a sentence on what was left out since this was called last, or an empty text."""
        names, self._new_names = self._new_names, []
        return f"Left out what this service does not know: {', '.join(names)}" if names else ""
