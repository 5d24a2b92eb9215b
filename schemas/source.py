"""The base of the schemas of source documents."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, fields


class SourceSchema(Schema):
    """The schema of a source document, or of an object in one.

    A field with `load_default=None` may be absent: from a line of an import file, which then loads as null, and from a
    document that was stored before the schema got the field, which then dumps as null. MongoDB refuses to write a
    document without it. A field with `required=True` is never absent.
    """

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Make what is null by default when it is loaded null by default when it is dumped."""
        if field_obj.load_default is None:
            field_obj.dump_default = None

    def fill(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the document with null for each absent field of its top level that is null by default."""
        absent = [name for name, field in self.fields.items() if field.load_default is None and name not in document]
        return {**document, **dict.fromkeys(absent)} if absent else document
