"""Option types that several commands use: ID and DATE."""

import click
from marshmallow import ValidationError

from schemas.fields import Date, Identifier, Text


class _SchemaField(click.ParamType[str]):
    """A text that is valid for a field of the schemas."""

    def __init__(self, name: str, field: Text | Date) -> None:
        self.name, self._field = name, field

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, or fail with the reason why it is invalid."""
        try:
            text: str = self._field.deserialize(value)
        except ValidationError as error:
            self.fail(" ".join(map(str, error.messages)), param, ctx)
        return text


ID = _SchemaField("id", Identifier())
DATE = _SchemaField("date", Date())
