"""The base of the schemas of source documents."""

import heapq
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from marshmallow import Schema, fields

# The errors of a document that its reason names.
MAX_NAMED_ERRORS = 5


class SourceSchema(Schema):
    """The schema of a source document, or of an object in one.

    A field with `load_default=None` may be absent from a line of an import file, and from a document that was stored
    before the schema got the field: it is then loaded as null. MongoDB refuses to write a document without it. A field
    with `required=True` is never absent.

    What it costs to find the errors of a document does not grow with their number: of many unknown fields, a few are
    errors, and so it is with the objects in `schemas.rows.Rows`.
    """

    # The methods with `validates_schema`, for `schemas.rows.Rows`.
    rules: ClassVar[tuple[Callable[..., None], ...]] = ()

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Make what is null by default when it is loaded null by default when it is dumped."""
        if field_obj.load_default is None:
            field_obj.dump_default = None

    def load(self, data: Any, **kwargs: Any) -> Any:
        """Return the loaded data. Raises ValidationError.

        Of many unknown fields only the first are errors, in alphabetical order: one more than a reason names.
        """
        if isinstance(data, Mapping) and len(data) > len(self.fields) + MAX_NAMED_ERRORS:
            unknown = heapq.nsmallest(MAX_NAMED_ERRORS + 1, (name for name in data if name not in self.fields))
            data = {name: data[name] for name in (*self.fields, *unknown) if name in data}
        return super().load(data, **kwargs)

    def fill(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the document with null for each absent field of its top level that is null by default."""
        absent = [name for name, field in self.fields.items() if field.load_default is None and name not in document]
        return {**document, **dict.fromkeys(absent)} if absent else document
