"""The base of the schemas of source documents."""

from typing import Any

from marshmallow import Schema, fields


class SourceSchema(Schema):
    """The schema of a source document, or of an object in one.

    A field with `load_default=None` may be absent: from a line of an import file, which then loads as null, and from a
    stored document, which then dumps as null. So a schema may get such a field without making stored documents invalid.
    A field with `required=True` is never absent.
    """

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Make what is null by default when it is loaded null by default when it is dumped."""
        if field_obj.load_default is None:
            field_obj.dump_default = None
