"""scripts/ingest/lines.py: the lines of a file, and the documents in them."""

import gzip
import json
import math

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import ValidationError

from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.ingest import lines
from scripts.ingest.lines import Input, Line, Rejects, parse
from scripts.materialize.sources import describe_errors
from tests.factories import make_driver, make_event, make_point, make_trip

SCHEMAS = (Driver(), ImportedTrip())
TRIP = make_trip(events=[make_event(1)])


def read(path):
    with Input(path) as source:
        return [(line.number, line.content, line.oversized) for line in source.lines()]


@pytest.fixture
def write(tmp_path):
    """Write a file of these bytes."""

    def write(content):
        path = tmp_path / "input"
        path.write_bytes(content)
        return path

    return write


def parsed(content, schema):
    """Return the document of a line, or None where it is rejected."""
    try:
        return parse(Line(1, content, False), schema)
    except ValidationError as rejected:
        reason = describe_errors(rejected)
    assert reason.encode()
    return None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
names = st.sampled_from([*TRIP, *make_driver()])
patches = st.dictionaries(names, json_values, max_size=3)


@given(st.binary(max_size=80))
@example(b"\xef\xbb\xbf{}")
@example(b'{"\\ud800": 1}')
@example(b'{"a": 1e400, "b": -1E999999}')
@example(b'{"a": ' + b"9" * 5000 + b"}")
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b"\x00")
@example("{\ufeff}".encode("utf-16"))
def test_any_bytes_are_a_document_or_rejected(content):
    assert [parsed(content, schema) for schema in SCHEMAS] == [None, None]


@given(json_values)
def test_any_json_is_a_document_or_rejected(value):
    assert [parsed(json.dumps(value).encode(), schema) for schema in SCHEMAS] == [None, None]


@given(patches)
def test_a_trip_with_any_fields_is_loaded_unchanged_or_rejected(patch):
    given = {**TRIP, **patch}
    result = parsed(json.dumps(given).encode(), ImportedTrip())
    assert result is None or result == json.loads(json.dumps(given))


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
@example("-0")
@example("9223372036854775807")
@example("9223372036854775808")
@example("-9223372036854775809")
@example("1e308")
@example("1e309")
def test_a_number_is_read_exactly_however_it_is_written(text):
    line = json.dumps(make_trip(trail_path=[make_point(0, course="?")])).replace('"?"', text)
    number, result = json.loads(text), parsed(line.encode(), ImportedTrip())
    in_range = math.isfinite(number) if isinstance(number, float) else -(2**63) <= number < 2**63
    assert repr(result and result["trail_path"][0]["course"]) == repr(number if in_range else None)


@given(st.integers(0, len(json.dumps(TRIP))), st.binary(max_size=3))
def test_a_trip_with_bytes_changed_anywhere_is_loaded_or_rejected(position, patch):
    text = json.dumps(TRIP).encode()
    parsed(text[:position] + patch + text[position + len(patch) :], ImportedTrip())


@given(st.integers(0, len(json.dumps(TRIP)) - 1))
def test_a_trip_cut_off_is_rejected(position):
    assert parsed(json.dumps(TRIP).encode()[:position], ImportedTrip()) is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"a", [(1, b"a")]),
        (b"a\n", [(1, b"a")]),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"a\r\n\r\nb\r\n", [(1, b"a"), (3, b"b")]),
        (b" \t\na \n", [(2, b"a")]),
        (b"a\rb\x0bc\x0cd\xc2\x85e\xe2\x80\xa8f\n", [(1, b"a\rb\x0bc\x0cd\xc2\x85e\xe2\x80\xa8f")]),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda content: gzip.compress(content) + bytes(512)])
def test_lines_are_numbered_and_empty_ones_skipped(write, content, expected, pack):
    assert read(write(pack(content))) == [(number, line, False) for number, line in expected]


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 200), max_size=3))
def test_gzip_members_split_anywhere_are_one_file(tmp_path_factory, contents, cuts):
    text = b"\n".join(contents)
    edges = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    folder = tmp_path_factory.mktemp("members")
    (folder / "plain").write_bytes(b"\n" + text)
    members = [gzip.compress(text[first:last]) for first, last in zip(edges, [*edges[1:], None], strict=True)]
    (folder / "packed").write_bytes(gzip.compress(b"\n") + b"".join(members))
    assert read(folder / "packed") == read(folder / "plain")


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_too_long_is_cut_and_the_next_one_is_whole(write, monkeypatch, end):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    long = b"x" * 3_000_000
    result = read(write(b"a\n" + long + b"\n" + b"y" * 10 + b"\n" + b"z" * 11 + end))
    assert [(number, content[:1], oversized) for number, content, oversized in result] == [
        (1, b"a", False),
        (2, b"x", True),
        (3, b"y", False),
        (4, b"z", True),
    ]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize(("content", "oversized"), [(b"y" * 10, False), (b"y" * 11, True), (b" " * 11 + b"y", True)])
def test_the_end_of_a_line_does_not_count_to_its_length(write, monkeypatch, content, oversized, end):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    assert [row[2] for row in read(write(content + end))] == [oversized]


def test_an_oversized_line_is_rejected_whatever_it_begins_with():
    with pytest.raises(ValidationError, match="Longer than 15000000 bytes"):
        parse(Line(1, json.dumps(make_driver()).encode(), True), Driver())


@pytest.mark.parametrize("damage", [lambda packed: packed[:-1], lambda packed: packed[:-8] + bytes(8)])
def test_a_damaged_file_gives_its_lines_and_then_an_error_that_names_it(write, damage):
    path = write(damage(gzip.compress(b"a\nb\n")))
    with pytest.raises(click.ClickException, match="cannot be read past line"):
        read(path)


def test_progress_is_counted_in_bytes_of_the_file(write):
    packed = gzip.compress(b"a\n" * 1000)
    with Input(write(packed)) as source:
        assert (source.size, source.consumed) == (len(packed), 0)
        assert len(list(source.lines())) == 1000
        assert source.consumed == len(packed)


@pytest.fixture
def rejects(tmp_path):
    return Rejects(tmp_path / "out")


def test_rejected_lines_are_put_in_place_at_the_end(rejects, tmp_path):
    rejects.add(Line(3, "é".encode() + b"\xff", False), "a reason")
    assert not rejects.path.exists()
    rejects.finish()
    assert json.loads(rejects.path.read_text()) == {"line": 3, "reason": "a reason", "input": "é\ufffd"}
    assert list(tmp_path.iterdir()) == [rejects.path]


def test_the_rejects_file_has_the_first_thousand_characters_of_an_oversized_line(rejects):
    rejects.add(Line(1, "é".encode() * 5000, True), "long")
    rejects.add(Line(2, b"x" * 5000, False), "whole")
    rejects.finish()
    inputs = [json.loads(line)["input"] for line in rejects.path.read_text().splitlines()]
    assert inputs == ["é" * 1000, "x" * 5000]


def test_an_import_that_was_abandoned_leaves_the_earlier_file(rejects, tmp_path):
    rejects.path.write_text("earlier")
    rejects.add(Line(1, b"x", False), "reason")
    rejects.abandon()
    assert rejects.path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [rejects.path]


def test_an_import_without_rejects_removes_the_earlier_file(rejects, tmp_path):
    rejects.path.write_text("earlier")
    rejects.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("depth", [253, 254, 1023, 1024, 5_000, 100_000])
def test_a_line_nested_deeply_is_rejected(depth):
    # How deep Python's json goes depends on the version of Python; further in, the field is unknown.
    with pytest.raises(ValidationError, match=r"nested|'a': \['Unknown field\.'\]"):
        parse(Line(1, b'{"a":' + b"[" * depth + b"]" * depth + b"}", False), Driver())


def test_a_duplicate_key_is_found_among_many():
    keys = ",".join(f'"k{number}":0' for number in range(100_000))
    with pytest.raises(ValidationError, match="more than once"):
        parse(Line(1, f'{{{keys},"z":1,"z":2}}'.encode(), False), Driver())


def test_a_reason_lists_invalid_fields_before_missing_ones():
    with pytest.raises(ValidationError) as rejected:
        parse(Line(1, b'{"trip_id": "x", "nope": 1}', False), ImportedTrip())
    assert describe_errors(rejected.value).startswith("nope: Unknown field.")
