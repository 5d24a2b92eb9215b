"""The conversion of our schemas and fields to JSON Schema."""

import inspect
from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter

from app.errors import find_error_types
from schemas.error import ErrorName
from schemas.fields import MAX_INT, MIN_INT, OneOfNested
from schemas.introspection import always_present


class SchemaConverter(OpenAPIConverter):
    """Extends apispec's conversion with the keywords that our own field types declare."""

    def init_attribute_functions(self) -> None:
        """Register the function for the attributes of our fields."""
        super().init_attribute_functions()
        self.attribute_functions.append(self.field2keywords)

    def field2keywords(self, field: Any, ret: Any) -> dict[str, Any]:
        """Return the keywords that a field declares. `ret` has the keywords that apispec found."""
        if isinstance(field, ErrorName) and "enum" not in ret:
            return {"enum": [error_type.__name__ for error_type in find_error_types()]}
        if isinstance(field, OneOfNested):
            schemas = [self.resolve_nested_schema(schema) for schema in field.schemas]
            return {"oneOf": [*schemas, {"type": "null"}] if field.allow_none else schemas}
        return {**getattr(field, "json_schema_keywords", {}), **getattr(field, "openapi_keywords", {})}

    def field2default(self, field: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the default of a field. A field that an import file may omit is null in a response, never absent."""
        return {} if field.load_default is None else super().field2default(field, **kwargs)

    def field2range(self, field: Any, ret: Any) -> dict[str, Any]:
        """Return the range of a field. The format states the range of 64 bits, which JavaScript cannot represent."""
        keywords = super().field2range(field, ret)
        return {name: value for name, value in keywords.items() if value not in (MIN_INT, MAX_INT)}

    def fields2jsonschema(self, fields: Any, *, partial: Any = None) -> dict[str, Any]:
        """Return the JSON Schema of an object. A field with a default is required, since responses always have it."""
        schema = super().fields2jsonschema(fields, partial=partial)
        required = [field.data_key or name for name, field in fields.items() if always_present(field)]
        return {**schema, "required": required} if required else schema

    def schema2jsonschema(self, schema: Any) -> dict[str, Any]:
        """Return the JSON Schema of a schema, with its docstring as the description."""
        return {"description": inspect.getdoc(type(schema)), **super().schema2jsonschema(schema)}
