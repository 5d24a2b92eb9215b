"""Drivers."""

from marshmallow import Schema

from schemas.fields import Date, Identifier, Text


class Driver(Schema):
    """A driver, as imported and as served. An optional field left out of an import is null."""

    driver_id = Identifier(required=True)
    first_name = Text(load_default=None, allow_none=True)
    last_name = Text(load_default=None, allow_none=True)
    email = Text(load_default=None, allow_none=True)
    alias = Text(load_default=None, allow_none=True)
    first_travel_date = Date(load_default=None, allow_none=True)
    last_travel_date = Date(load_default=None, allow_none=True)
