"""docs/data.md: whoever loads data finds each field."""

import re

from marshmallow import fields

from schemas.driver import Driver
from schemas.trip import ImportedTrip
from tests.service_process import ROOT


def find_names(schema):
    """Yield the name of each field, and of those in it."""
    for name, field in schema.fields.items():
        yield name
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            yield from find_names(inner.schema)


def test_the_page_names_every_field_of_a_driver_and_of_a_trip():
    section = (ROOT / "docs" / "data.md").read_text().partition("\n## Fields\n")[2].partition("\n## ")[0]
    assert {*find_names(Driver()), *find_names(ImportedTrip())} - {*re.findall(r"`(\w+)`", section)} == set()
