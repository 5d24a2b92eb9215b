"""schemas.source: a line, or a document stored before, may lack a field that is null by default, at any depth."""

import json

import pytest
from marshmallow import fields

from schemas.fields import Number, Text
from schemas.source import Rows, SourceSchema
from schemas.stored import STORED
from scripts.mongodb.validators import VALIDATORS


class Point(SourceSchema):
    """A part of a document."""

    course = Number(required=True)
    note = Text(load_default=None, allow_none=True)


class Document(SourceSchema):
    """A document with parts of every kind."""

    note = Text(load_default=None, allow_none=True)
    part = fields.Nested(Point, required=True)
    absent_part = fields.Nested(Point, load_default=None)
    parts = fields.List(fields.Nested(Point), required=True)
    rows = Rows(Point, most=10, required=True)


POINT, FILLED = {"course": 1}, {"course": 1, "note": None}
BEFORE = {"part": POINT, "parts": [POINT], "rows": [POINT, {"note": "A", "course": 2}]}
AFTER = {
    "note": None,
    "part": FILLED,
    "absent_part": None,
    "parts": [FILLED],
    "rows": [FILLED, {"course": 2, "note": "A"}],
}


def test_a_document_without_nullable_fields_is_loaded_and_dumped_with_null():
    loaded = Document().load(BEFORE)
    assert json.dumps(loaded) == json.dumps(Document().dump(loaded)) == json.dumps(AFTER)


@pytest.mark.parametrize("name", ["drivers", "trips"])
def test_a_nullable_field_must_be_written(name):
    assert {*STORED[name]().fields} - {*VALIDATORS[name]["$jsonSchema"]["required"]} <= {"focus_area"}
