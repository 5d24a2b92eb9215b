"""Kinds of option that several commands take."""

import click
from marshmallow import ValidationError

from schemas.fields import Identifier


class FleetId(click.ParamType[str]):
    """A fleet's id, of the same form as every identifier."""

    name = "id"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id, or fail with the reason."""
        try:
            fleet: str = Identifier().deserialize(value)
        except ValidationError as error:
            self.fail(" ".join(map(str, error.messages)), param, ctx)
        return fleet
