"""scripts/ingest/lines.py: the lines of a file, and the documents in them."""

import bz2
import codecs
import gzip
import io
import json
import math
import re
import zipfile

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import ValidationError

from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.ingest import lines
from scripts.ingest.lines import Input, parse
from scripts.ingest.records import TOO_LONG, Rejected, Rejects
from scripts.materialize.sources import describe_errors
from tests.factories import make_driver, make_event, make_point, make_trip

SCHEMAS = (Driver(), ImportedTrip())
TRIP = make_trip(events=[make_event(1)])


@pytest.fixture
def path(tmp_path):
    """The path of the input."""
    return tmp_path / "input"


def read(path, content):
    """Return the lines of a file of these bytes, with their numbers."""
    path.write_bytes(content)
    return [(record.number, record.content) for record in Input(path).records()]


def parsed(content, schema):
    """Return the document of a line, or None where it is rejected."""
    record = parse(1, content)
    try:
        if not isinstance(record, Rejected):
            return schema.load(record.value)
        reason = record.reason
    except ValidationError as rejected:
        reason = describe_errors(rejected)
    assert reason.encode()
    return None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(st.binary(max_size=80))
@example(b"\xef\xbb\xbf{}")
@example(b'{"\\ud800": 1}')
@example(b'{"a": 1e400, "b": -1E999999}')
@example(b'{"a": ' + b"9" * 5000 + b"}")
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b'{"a":' + b"[" * 1023 + b"]" * 1023 + b"}")
@example("{\ufeff}".encode("utf-16"))
def test_any_bytes_are_rejected_with_a_reason(content):
    assert [parsed(content, schema) for schema in SCHEMAS] == [None, None]


@given(st.dictionaries(st.sampled_from([*TRIP, *make_driver()]), json_values, max_size=3))
def test_a_trip_with_any_fields_is_loaded_unchanged_or_rejected(patch):
    line = json.dumps({**TRIP, **patch})
    result = parsed(line.encode(), ImportedTrip())
    assert result is None or result == json.loads(line)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
@example("-0")
@example("-0.0")
@example("9223372036854775807")
@example("9223372036854775808")
@example("-9223372036854775809")
@example("1e308")
@example("1e309")
def test_a_number_is_read_exactly_and_zero_without_a_sign_however_it_is_written(text):
    line = json.dumps(make_trip(trail_path=[make_point(0, course="?")])).replace('"?"', text)
    number, result = json.loads(text), parsed(line.encode(), ImportedTrip())
    in_range = math.isfinite(number) if isinstance(number, float) else -(2**63) <= number < 2**63
    assert repr(result and result["trail_path"][0]["course"]) == repr((number or abs(number)) if in_range else None)


def pack_each_byte(content):
    return b"".join(gzip.compress(bytes([byte])) for byte in content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"a\nb", [(1, b"a"), (2, b"b")]),
        (b"a\r\n\r\nb\r\n", [(1, b"a"), (3, b"b")]),
        (b" \t\na \n", [(2, b"a")]),
        (b"a\rb\x0bc\x0cd\xc2\x85e\xe2\x80\xa8f\n", [(1, b"a\rb\x0bc\x0cd\xc2\x85e\xe2\x80\xa8f")]),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, pack_each_byte, lambda text: gzip.compress(text) + bytes(512)])
def test_lines_are_numbered_and_empty_ones_skipped(path, content, expected, pack):
    assert read(path, pack(content)) == expected


TRIPS = [make_trip(trip_id="a"), make_trip(trip_id="b")]
LINES = [json.dumps(trip).encode() for trip in TRIPS]


def zip_up(*lines):
    with zipfile.ZipFile(packed := io.BytesIO(), "w") as archive:
        archive.writestr("trips.ndjson", b"\n".join(lines))
    return packed.getvalue()


OTHER_FORMS = [
    (json.dumps(TRIPS).encode(), "is one JSON array: jq -c '.[]' writes"),
    (json.dumps(TRIPS, indent=1).encode(), "is one JSON array: "),
    (codecs.BOM_UTF8 + b"[\r\n" + b",\n".join(LINES) + b"]", "is one JSON array: "),
    (gzip.compress(b" [" + b",\n".join(LINES) + b"]"), "is one JSON array: gunzip | jq -c '.[]' writes"),
    (json.dumps(TRIPS[0], indent=2).encode(), "has objects over many lines: jq -c . writes"),
    (b"\r".join(LINES), r"has lines that end with CR alone: tr '\r' '\n' writes"),
    (b",\n".join(LINES), "has lines that end with a comma: sed 's/,$//' writes"),
    (zip_up(*LINES), "is a zip archive: unzip -p writes"),
    (bz2.compress(LINES[0]), "is compressed with bzip2: bunzip2 writes"),
    (gzip.compress(gzip.compress(LINES[0])), "is compressed with gzip twice: gunzip | gunzip writes"),
    (LINES[0].decode().encode("utf-16"), "is in UTF-16: iconv -f UTF-16 -t UTF-8 writes"),
]


@pytest.mark.parametrize(("content", "hint"), OTHER_FORMS, ids=[hint for _, hint in OTHER_FORMS])
def test_a_file_in_another_form_is_refused_with_what_makes_one_object_a_line_of_it(path, content, hint):
    with pytest.raises(click.ClickException, match=f"^{path.name} {re.escape(hint)}"):
        read(path, content)


@pytest.mark.parametrize(
    "line", [b"[]", b"[1]", b'{"a": "}\\r{"}', b'{"a": [{}\r]}', b'{"a": [{},\r{}]}', b'{"a": 1', b"PK"]
)
def test_one_wrong_line_is_not_another_form(path, line):
    assert [content for _, content in read(path, b"\n".join([line, *LINES]))][1:] == LINES


def test_a_line_too_long_is_cut_and_the_next_one_is_whole(path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_RECORD_BYTES", 10)
    assert read(path, b"a\n" + b"x" * 3_000_000 + b"\ny\n") == [(1, b"a"), (2, b"x" * 12), (3, b"y")]


def test_an_oversized_line_is_rejected_whatever_it_begins_with():
    rejected = parse(1, json.dumps(make_driver()).encode() + b" " * 15_000_000)
    assert rejected.reason == "Longer than 15000000 bytes."


@pytest.mark.parametrize("damage", [lambda packed: packed[:-1], lambda packed: packed[:-8] + bytes(8)])
def test_a_damaged_file_ends_in_an_error(path, damage):
    with pytest.raises(click.ClickException, match="cannot be read past line"):
        read(path, damage(gzip.compress(b"a\nb\n")))


@pytest.fixture
def rejects(tmp_path):
    """The rejects of an import, in place of those of an earlier one."""
    (tmp_path / "out").write_text("earlier")
    with Rejects(tmp_path / "out") as rejects:
        yield rejects


def read_rows(rejects):
    return [json.loads(line) for line in rejects.path.read_text().splitlines()]


def test_rejected_lines_take_the_place_of_earlier_ones_at_once(rejects):
    rejects.add(3, "é".encode() + b"\xff", "a reason")
    assert read_rows(rejects) == [{"line": 3, "reason": "a reason", "input": "é\ufffd"}]


def test_only_their_owner_reads_rejected_lines(rejects):
    rejects.add(1, b"x", "reason")
    assert rejects.path.stat().st_mode & 0o777 == 0o600


def test_the_rejects_file_has_the_first_thousand_characters_of_an_oversized_line(rejects):
    rejects.add(1, "é".encode() * 8_000_000, "long")
    rejects.add(2, b"x" * 5000, "whole")
    assert [row["input"] for row in read_rows(rejects)] == ["é" * 1000, "x" * 5000]


def test_after_100_mb_the_rejects_file_has_the_first_thousand_characters_of_each_line(rejects, monkeypatch):
    monkeypatch.setattr("scripts.ingest.records.MAX_WHOLE_BYTES", 20_000)
    for number in range(3):
        rejects.add(number, bytes(2_000), "reason")
    assert [len(row["input"]) for row in read_rows(rejects)] == [2_000, 2_000, 1_000]


def test_an_import_without_rejects_removes_the_earlier_file(rejects, tmp_path):
    assert list(tmp_path.iterdir()) == []


@given(st.integers(0, len(json.dumps(TRIP))), st.binary(max_size=3))
def test_a_trip_with_bytes_changed_anywhere_is_loaded_or_rejected(position, patch):
    text = json.dumps(TRIP).encode()
    parsed(text[:position] + patch + text[position + len(patch) :], ImportedTrip())


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize(("content", "oversized"), [(b"y" * 10, False), (b"y" * 11, True), (b" " * 11 + b"y", True)])
def test_the_end_of_a_line_does_not_count_to_its_length(path, monkeypatch, content, oversized, end):
    monkeypatch.setattr(lines, "MAX_RECORD_BYTES", 10)
    reasons = [parse(number, text).reason for number, text in read(path, content + end)]
    assert [reason == TOO_LONG for reason in reasons] == [oversized]


def test_progress_is_counted_in_bytes_of_the_file(path):
    packed = gzip.compress(b"a\n" * 1000)
    path.write_bytes(packed)
    source = Input(path)
    assert (source.size, source.consumed) == (len(packed), 0)
    assert len(list(source.records())) == 1000
    assert source.consumed == len(packed)
