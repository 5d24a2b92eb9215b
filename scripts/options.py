"""Kinds of option that several commands take."""

import click
from marshmallow import ValidationError

from schemas.fields import Date, Identifier, Text


class _Checked(click.ParamType[str]):
    """Text that a field of the schemas takes."""

    def __init__(self, name: str, field: Text | Date) -> None:
        self.name, self._field = name, field

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, or fail with the reason."""
        try:
            text: str = self._field.deserialize(value)
        except ValidationError as error:
            self.fail(" ".join(map(str, error.messages)), param, ctx)
        return text


ID = _Checked("id", Identifier())
DATE = _Checked("date", Date())
