"""docs/data.md: its tables of fields agree with the schemas."""

from marshmallow import fields
from marshmallow.validate import OneOf, Range

from schemas.driver import Driver
from schemas.fields import (
    MAX_EPOCH_MS,
    MAX_INT,
    MAX_NAME_CHARACTERS,
    MIN_INT,
    Date,
    EpochMs,
    Flag,
    Identifier,
    Int64,
    NameText,
    Number,
    Text,
)
from schemas.trip import ImportedTrip
from tests.service_process import ROOT

PAGE = (ROOT / "docs" / "data.md").read_text()
# A subclass comes before its class.
TYPES = {Identifier: "identifier", Date: "date", Text: "text", Flag: "boolean", Int64: "integer", Number: "number"}
TYPES |= {fields.List: "list", fields.Nested: "object"}
# By the end of a name.
UNITS = {"seconds": "seconds", "miles": "miles", "mph": "miles per hour", "itude": "degrees", "course": "degrees"}


def describe(name, field):
    """Return the type of a field, its unit, whether it may be null or absent, and its values."""
    field_type = next(word for kind, word in TYPES.items() if isinstance(field, kind))
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    if isinstance(field, EpochMs):
        unit = "epoch ms"
    missing = [word for word, may_be in (("null", field.allow_none), ("absent", not field.required)) if may_be]
    values = f"at most {MAX_NAME_CHARACTERS} characters" if isinstance(field, NameText) else ""
    for rule in field.validators:
        if isinstance(rule, OneOf):
            values = ", ".join(map(str, rule.choices))
        elif isinstance(rule, Range):
            values = describe_range(rule.min, rule.max)
    return field_type, unit, " or ".join(missing), values


def describe_range(low, high):
    if high == MAX_EPOCH_MS:
        return "years 1 to 9999"
    if high in (None, MAX_INT):
        return "" if low in (None, MIN_INT) else f"from {low}"
    return f"{low} to {high}"


def make_rows(schema, *path):
    """Yield the row of each field, and below it those of the fields in it."""
    for name, field in schema.fields.items():
        full_name = ".".join((*path, name))
        yield "|".join(["", f" `{full_name}` ", *(f" {cell} " if cell else " " for cell in describe(name, field)), ""])
        inner = field.inner if isinstance(field, fields.List) else field
        if isinstance(inner, fields.Nested):
            yield from make_rows(inner.schema, *path, name)


def test_the_tables_of_fields_agree_with_the_schemas():
    section = PAGE.partition("\n## Fields\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [*make_rows(Driver()), *make_rows(ImportedTrip())]
