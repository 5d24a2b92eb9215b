"""The Driver, and the groups of a fleet that a driver is in, such as a depot."""

import itertools
from typing import Any

from marshmallow import ValidationError
from marshmallow.validate import Length

from schemas.fields import Date, Identifier, List, NameText
from schemas.source import SourceSchema

# The most groups of a driver.
MAX_GROUPS = 10


class GroupNames(List):
    """The names of the groups that a driver is in, each once. They are loaded in code point order."""

    def __init__(self, **kwargs: Any) -> None:
        error = f"Must have at most {MAX_GROUPS} groups."
        super().__init__(Identifier(), validate=Length(max=MAX_GROUPS, error=error), **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        # Before the names are loaded: there may be millions.
        if isinstance(value, list):
            self._validate(value)
        loaded: list[Any] = super()._deserialize(value, attr, data, **kwargs)
        names = sorted(loaded)
        for name, following in itertools.pairwise(names):
            if name == following:
                raise ValidationError(f"Has {name!r} twice.")
        return names


class Driver(SourceSchema):
    """A driver of the fleet. A name, address or date that the fleet has not provided is null."""

    driver_id = Identifier("Identifier of the driver, unique within the fleet.", example="demo-01")
    first_name = NameText("First name.", example="Amina", load_default=None, allow_none=True)
    last_name = NameText("Last name.", example="Yusuf", load_default=None, allow_none=True)
    email = NameText("E-mail address.", example="amina.yusuf@example.com", load_default=None, allow_none=True)
    alias = NameText("Name that the fleet uses for the driver.", example="Amina Y.", load_default=None, allow_none=True)
    first_travel_date = Date("Date of the first trip.", example="2026-03-09", load_default=None, allow_none=True)
    last_travel_date = Date("Date of the latest trip.", example="2026-03-09", load_default=None, allow_none=True)


class ImportedDriver(Driver):
    """A line of a drivers file: a driver, and perhaps the groups, which replace those that the driver was in."""

    groups = GroupNames(required=False)
