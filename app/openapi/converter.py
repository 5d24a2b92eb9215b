"""The conversion of our schemas and fields to JSON Schema."""

import datetime
import inspect
from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter
from apispec.utils import build_reference
from marshmallow import Schema
from marshmallow.validate import OneOf

from app.errors import find_error_types
from schemas.error import ErrorName
from schemas.fields import MAX_INT, MAX_SAFE_INT, MIN_INT, Int64, always_present
from schemas.geojson import OneOfNested

UNLIMITED = {MIN_INT, MAX_INT, MAX_SAFE_INT}


class SchemaConverter(OpenAPIConverter):
    """Extends apispec's conversion with the keywords that our own field types declare.

    `today` is the day on which the examples of parameters are valid.
    """

    today: datetime.date

    def init_attribute_functions(self) -> None:
        """Register the function for the attributes of our fields."""
        super().init_attribute_functions()
        self.attribute_functions.append(self.field2keywords)

    def field2keywords(self, field: Any, ret: Any) -> dict[str, Any]:
        """Return the keywords that a field declares. `ret` has the keywords that apispec found."""
        if isinstance(field, ErrorName) and "enum" not in ret:
            return {"enum": [error_type.__name__ for error_type in find_error_types()]}
        if isinstance(field, OneOfNested):
            schemas = {value: self.resolve_nested_schema(schema) for value, schema in field.schemas.items()}
            mapping = {value: schema["$ref"] for value, schema in schemas.items()}
            union = {"oneOf": list(schemas.values()), "discriminator": {"propertyName": field.tag, "mapping": mapping}}
            return {"anyOf": [union, {"type": "null"}]} if field.allow_none else union
        # A generator for JavaScript makes a BigInt of an integer with this format.
        is_large = isinstance(field, Int64) and max(-field.low, field.high) > MAX_SAFE_INT
        format_keyword = {"format": "int64"} if is_large else {}
        return {
            **getattr(field, "json_schema_keywords", {}),
            **getattr(field, "openapi_keywords", {}),
            **format_keyword,
        }

    def describe_parameters(self, schema: Schema, location: str) -> list[dict[str, Any]]:
        """Return the Parameter Objects of a schema. An example is beside its schema: not all tools look in there."""
        parameters: list[dict[str, Any]] = self.schema2parameters(schema, location=location)
        for parameter in parameters:
            for example in parameter["schema"].pop("examples", ()):
                parameter["example"] = example(self.today) if callable(example) else example
        return parameters

    def field2property(self, field: Any) -> dict[str, Any]:
        """Return the schema of a field. The values of one with a component are described once, in that component."""
        described = super().field2property(field)
        choices, component = described.pop("enum", None), getattr(field, "component", None)
        if choices is None:
            return described
        if len(choices) == 1:
            # Generators make a literal of a constant, and a type of an enum.
            return {**described, "const": choices[0]}
        if not component:
            return {**described, "enum": choices}
        values = {"description": described["description"], "type": described.pop("type"), "enum": choices}
        labels = [label for rule in field.validators if isinstance(rule, OneOf) for label in rule.labels]
        values |= {"x-enum-varnames": labels} if labels else {}
        if component not in self.spec.components.schemas:
            self.spec.components.schema(component, values)
        return {**described, **build_reference("schema", self.openapi_version.major, component)}

    def field2default(self, field: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the default of a field. A field that an import file may omit is null in a response, never absent."""
        return {} if field.load_default is None else super().field2default(field, **kwargs)

    def field2range(self, field: Any, ret: Any) -> dict[str, Any]:
        """Return the range of a field. That of 64 bits is its format; that of 53 bits is that of any JSON integer."""
        keywords = super().field2range(field, ret)
        return {name: value for name, value in keywords.items() if value not in UNLIMITED}

    def fields2jsonschema(self, fields: Any, *, partial: Any = None) -> dict[str, Any]:
        """Return the JSON Schema of an object. A field with a default is required, since responses always have it."""
        schema = super().fields2jsonschema(fields, partial=partial)
        required = [field.data_key or name for name, field in fields.items() if always_present(field)]
        return {**schema, "required": required} if required else schema

    def schema2jsonschema(self, schema: Any) -> dict[str, Any]:
        """Return the JSON Schema of a schema, with its docstring as the description."""
        return {"description": inspect.getdoc(type(schema)), **super().schema2jsonschema(schema)}
