"""The Driver."""

from schemas.fields import Date, Identifier, NameText
from schemas.source import SourceSchema


class Driver(SourceSchema):
    """A driver of the fleet. A name, address or date that the fleet has not provided is null."""

    driver_id = Identifier("Identifier of the driver, unique within the fleet.", example="demo-01")
    first_name = NameText("First name.", example="Amina", load_default=None, allow_none=True)
    last_name = NameText("Last name.", example="Yusuf", load_default=None, allow_none=True)
    email = NameText("E-mail address.", example="amina.yusuf@example.com", load_default=None, allow_none=True)
    alias = NameText("Name that the fleet uses for the driver.", example="Amina Y.", load_default=None, allow_none=True)
    first_travel_date = Date("Date of the first trip.", example="2026-03-09", load_default=None, allow_none=True)
    last_travel_date = Date("Date of the latest trip.", example="2026-03-09", load_default=None, allow_none=True)
