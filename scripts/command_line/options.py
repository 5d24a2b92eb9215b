"""What several commands are given: options, with their types and checks, and drivers on standard input."""

import re
import sys
import zoneinfo
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from marshmallow import ValidationError

from schemas.fields import Date, FleetName, Identifier, Text
from schemas.periods import get_zone
from schemas.query import get_near_name

T = TypeVar("T")
# The function of a command.
F = TypeVar("F", bound=Callable[..., Any])

# No line of identifiers is longer, but a file that is not text may have no end of a line.
MAX_LINE_BYTES = 100_000
OFFSET = re.compile(r"(UTC|GMT)?[+-]?[0-9]", re.IGNORECASE)


class TimeZone(Text):
    """The name of a time zone in the IANA database, such as America/Denver."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if get_zone(text):
            return text
        if OFFSET.match(text):
            raise ValidationError(
                f"{text} is an offset, which knows no summer time. Give the name of a zone, such as Europe/Berlin."
            )
        names = set(filter(get_zone, zoneinfo.available_timezones()))
        # Many know the city of a zone, but not its continent.
        by_city = {name.rpartition("/")[2]: name for name in names}
        near = get_near_name(text, names) or by_city.get(get_near_name(text.replace(" ", "_"), by_city) or "")
        hint = f"; did you mean {near}?" if near else ". Give a name of the IANA database, such as America/Denver."
        raise ValidationError(f"There is no time zone {text}{hint}")


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
LABEL = _SchemaField("text", Identifier())
FLEET_NAME = _SchemaField("fleet", FleetName())
DATE = _SchemaField("date", Date())
TIME_ZONE = _SchemaField("zone", TimeZone())

FLEET = click.option("--fleet", type=FLEET_NAME, required=True, help="The fleet.")
ONE_OR_ALL_FLEETS = click.option("--fleet", type=FLEET_NAME, help="Only this fleet. By default all fleets.")
REJECTS = click.option(
    "--rejects",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder for the files of rejected lines.",
)


def option_once(*names: str, **options: Any) -> Callable[[F], F]:
    """Return an option of click that may be given once. With a plain one, the last value would replace the others."""
    return click.option(*names, multiple=True, callback=_take_one, **options)


def _take_one(ctx: click.Context, param: click.Parameter, values: Sequence[T]) -> T | None:
    """Return the one value, or None without any. Raises click.UsageError for a second one."""
    if len(values) > 1:
        raise click.UsageError(f"Give {param.opts[0]} once. For several values, run the command several times.", ctx)
    return values[0] if values else None


def read_driver_ids(outcome: str, hint: str = "") -> list[str]:
    """Return the identifiers on the lines of standard input that are not empty, each once, in order.

    Raises click.ClickException if one is invalid, or if there is none. `outcome` then says what did not happen, and
    `hint` what to do without any.
    """
    if sys.stdin is None:
        raise click.ClickException(f"Standard input is closed: {outcome}.")
    driver_ids, field = dict[str, None](), Identifier()
    for number, line in enumerate(iter(partial(sys.stdin.buffer.readline, MAX_LINE_BYTES), b""), 1):
        try:
            if text := line.removesuffix(b"\n").decode():
                driver_ids[field.deserialize(text)] = None
        except (UnicodeDecodeError, ValidationError) as error:
            reason = " ".join(error.messages) if isinstance(error, ValidationError) else "Must be UTF-8."
            if line.endswith(b"\r\n"):
                # As programs on Windows write a line.
                reason += " It ends with CR LF; a line must end with LF alone."
            raise click.ClickException(f"Line {number} of standard input: {reason} {outcome.capitalize()}.") from None
    if not driver_ids:
        raise click.ClickException(f"Standard input has no driver_id: {outcome}.{hint}")
    return list(driver_ids)
