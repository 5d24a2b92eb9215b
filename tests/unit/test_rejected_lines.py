"""scripts/ingest/lines.py: which lines are rejected, and the reasons."""

import functools
import json

import pytest
from marshmallow import ValidationError

from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.ingest.lines import Line, parse
from scripts.materialize.sources import describe_errors
from tests.factories import make_driver
from tests.whole_trip import EVENTS, MAX_INT, MIN_INT, SPEEDS, WHOLE, altered, steps_of

SCHEMAS = {"drivers": Driver(), "trips": ImportedTrip()}


def reason(line, kind="trips"):
    """Return why a line is rejected."""
    with pytest.raises(ValidationError) as rejected:
        parse(Line(1, line.encode(), oversized=False), SCHEMAS[kind])
    return describe_errors(rejected.value)


def reasons(*lines, kind="trips"):
    return [reason(line, kind) for line in lines]


def spelled(path):
    """Return a path the way a reason names it: `events.0.event_type` is `events[0].event_type`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps_of(path))[1:]


def plain_values(value, path=""):
    """Yield (path, value) of every plain value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield path[1:], value
    else:
        for key, result in inner:
            yield from plain_values(result, f"{path}.{key}")


LEAVES = [
    (path, value) for path, value in plain_values(WHOLE) if not path.startswith(("events.0", "events.1", "events.2"))
]
OBJECTS = ["event_summary", "focus_area", "trail_path.1", "events.3", "events.3.event_data"]


# Not an object in JSON.


def test_a_line_that_is_no_object_is_rejected():
    result = reasons("[]", "[{}]", "null", "1", '"text"', "true", "1.5")
    assert result == ["Not a JSON object."] * 7


@pytest.mark.parametrize("path", ["distance_miles", "trail_path.1.course"])
def test_a_constant_that_is_not_in_json_is_rejected(path):
    result = reasons(*(altered(path, name) for name in ("NaN", "Infinity", "-Infinity", "nan", "inf")))
    assert [why.startswith("Not JSON") for why in result] == [True] * 5


@pytest.mark.parametrize("path", ["trip_id", *(f"{inside}.again" for inside in OBJECTS)])
def test_a_key_given_twice_is_rejected_at_any_depth(path):
    key = path.rpartition(".")[2]
    assert f'"{key}"' in reason(altered(path, f'"x", "{key}": "x"'))


def test_a_key_given_twice_in_two_spellings_is_rejected():
    assert '"trip_id"' in reason(altered("trip_id", '"a", "trip\\u005fid": "a"'))


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(make_driver("d\ud800")),
        json.dumps(make_driver("d1", alias="\udc00")),
        json.dumps(make_driver("d1", first_name="a\ude00\ud83d")),
        json.dumps({**make_driver("d1"), "first_name": {"\ud800": 1}, "\udfff": 1}),
    ],
)
def test_a_lone_surrogate_is_rejected_in_value_and_key(line):
    assert any(text in reason(line, "drivers") for text in ("surrogate", "\\udfff: Unknown field."))


# Fields.


def assert_each_rejected(paths, lines, kind="trips"):
    """Check that each line is rejected, with a reason that begins with its path."""
    whys = zip(paths, reasons(*lines, kind=kind), strict=True)
    assert [(path, why) for path, why in whys if not why.startswith(f"{spelled(path)}: ")] == []


def test_a_missing_field_is_rejected_at_any_depth():
    paths = [path for path, _ in LEAVES if not path.startswith("events.3.event_data.")]
    paths += ["event_summary", "trail_path", "events", "events.3.event_data"]
    assert_each_rejected(paths, (altered(path, None) for path in paths))


@pytest.mark.parametrize("name", ["zzz", "Trip_id", "$where", "fleet", "day", "_id", "a.b", "__proto__"])
def test_an_unknown_field_is_rejected_at_any_depth(name):
    lines = [json.dumps({**WHOLE, name: None})]
    lines += [altered(path, json.dumps({**dict(leaves_at(path)), name: None})) for path in OBJECTS]
    assert [why.endswith(f"{name}: Unknown field.") for why in reasons(*lines)] == [True] * 6


def leaves_at(path):
    return functools.reduce(lambda result, step: result[step], steps_of(path), WHOLE).items()


@pytest.mark.parametrize("text", ["[]", "{}", '[{"a": 1}]', "1e400", "-1e400", f"{2**63}", f"{-(2**63) - 1}", "1e999"])
def test_what_no_field_takes_is_rejected_everywhere(text):
    paths = [path for path, _ in LEAVES]
    assert_each_rejected(paths, (altered(path, text) for path in paths))


def test_null_is_rejected_where_the_contract_does_not_allow_it():
    paths = [path for path, _ in LEAVES if path not in ("insurance_period", "tracking_id")]
    paths += ["event_summary", "focus_area", "trail_path", "trail_path.1", "events", "events.3", "events.3.event_data"]
    assert_each_rejected(paths, (altered(path, "null") for path in paths))


@pytest.mark.parametrize("text", ['"1"', '""', "true", "false", '"1.5"'])
def test_a_number_is_neither_string_nor_boolean(text):
    paths = [path for path, value in LEAVES if type(value) in (int, float)]
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("text", ["1.0", "2.0", "1e0", "0.5", "-0.0", "1E3"])
def test_an_integer_has_no_fraction(text):
    paths = [path for path, _ in LEAVES if path.endswith(("_count", "time", "stamp", "insurance_period", "event_type"))]
    paths = [path for path in paths if not path.endswith("time_seconds")]
    assert len(paths) == 12
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("text", ["0", "1", '"true"'])
def test_a_boolean_is_neither_number_nor_string(text):
    paths = [path for path, value in LEAVES if type(value) is bool]
    assert len(paths) == 4
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("text", ["1", "1.5", "true"])
def test_a_string_is_neither_number_nor_boolean(text):
    paths = [path for path, value in LEAVES if isinstance(value, str)]
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("path", ["trail_path", "events"])
def test_a_list_accepts_only_objects_of_its_schema(path):
    assert_each_rejected([path] * 4, (altered(path, text) for text in ("{}", '"x"', "1", "true")))
    items = (altered(path, text) for text in ("[1]", "[[]]", "[null]", '["x"]'))
    assert_each_rejected([f"{path}.0"] * 4, items)


@pytest.mark.parametrize("text", ["90.0001", "-91", "1e9", f"{MAX_INT}"])
def test_a_latitude_outside_90_is_rejected(text):
    paths = [path for path, _ in LEAVES if path.endswith("latitude")]
    assert len(paths) == 6
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("text", ["180.0001", "-181", "1e9", f"{MIN_INT}"])
def test_a_longitude_outside_180_is_rejected(text):
    paths = [path for path, _ in LEAVES if path.endswith("longitude")]
    assert len(paths) == 6
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("text", ["-1", f"{MIN_INT}"])
def test_a_negative_count_duration_or_distance_is_rejected(text):
    paths = [path for path, _ in LEAVES if path.endswith(("_count", "_seconds", "_miles"))]
    assert len(paths) == 11
    assert_each_rejected(paths, (altered(path, text) for path in paths))


@pytest.mark.parametrize("text", ["-0.001", "-5e-324"])
def test_a_duration_or_distance_just_below_zero_is_rejected(text):
    paths = [path for path, _ in LEAVES if path.endswith(("_seconds", "_miles"))]
    assert len(paths) == 7
    assert_each_rejected(paths, (altered(path, text) for path in paths))


IDS_OUT_OF_BOUNDS = [
    "",
    ".",
    "..",
    "x" * 129,
    "é" * 64 + "x",
    "𝄞" * 33,
    *(f"a{char}b" for char in "\x00\x01\t\n\r\x1f\x7f\x80\x85\x9f"),
]


@pytest.mark.parametrize("path", ["trip_id", "driver_id", "tracking_id"])
def test_an_identifier_out_of_bounds_is_rejected(path):
    lines = [altered(path, json.dumps(value)) for value in IDS_OUT_OF_BOUNDS]
    assert_each_rejected([path] * len(lines), lines)


def test_an_insurance_period_other_than_1_2_3_or_null_is_rejected():
    lines = [altered("insurance_period", text) for text in ("0", "4", "-1", '"1"', "true", "1.0", f"{MAX_INT}")]
    assert_each_rejected(["insurance_period"] * 7, lines)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("trip_end_time", str(WHOLE["trip_start_time"] - 1)),
        ("trip_start_time", str(WHOLE["trip_end_time"] + 1)),
        ("events.3.event_end_timestamp", str(WHOLE["trip_start_time"] - 1)),
        ("events.0.event_start_timestamp", str(WHOLE["trip_end_time"])),
    ],
)
def test_an_end_before_its_start_is_rejected(path, text):
    assert reason(altered(path, text)).startswith(spelled(path).replace("_start_", "_end_"))


def test_an_unknown_event_type_is_rejected():
    lines = [altered("events.1.event_type", str(kind)) for kind in (0, 3, 4, 5, 6, 8, 10, -1, MAX_INT)]
    assert_each_rejected(["events.1.event_type"] * 9, lines)


@pytest.mark.parametrize("index", range(4))
def test_an_event_name_that_is_not_its_types_is_rejected(index):
    own = EVENTS[index][1]
    names = [name for _, name, _ in EVENTS if name != own] + [own.lower(), f"{own} ", ""]
    path = f"events.{index}.event_name"
    assert_each_rejected([path] * 6, (altered(path, json.dumps(name)) for name in names))


@pytest.mark.parametrize("data", [SPEEDS, {"user_speed_mph": 1}])
def test_event_data_where_there_is_none_is_rejected(data):
    paths = [f"events.{index}.event_data" for index in range(3)]
    assert_each_rejected(paths, (altered(path, json.dumps(data)) for path in paths))


def test_overspeeding_without_its_speeds_is_rejected():
    lines = [altered(f"events.3.event_data.{name}", None) for name in SPEEDS] + [altered("events.3.event_data", "{}")]
    assert_each_rejected(["events.3.event_data"] * 4, lines)


DATES = ["2026-02-30", "2026-02-29", "20260101", "2026-1-1", "2026-W01-1", "2026-001", "26-01-01", "2026-01-01 "]
DATES += ["2026-01-01T00:00:00", "", "0000-01-01", "2026-13-01", "2026-00-10", "２０２６-01-01", "10000-01-01", "today"]


@pytest.mark.parametrize("name", ["first_travel_date", "last_travel_date"])
def test_a_date_that_is_none_is_rejected(name):
    lines = [json.dumps(make_driver("d1", **{name: date})) for date in DATES]
    assert_each_rejected([name] * len(DATES), lines, kind="drivers")


@pytest.mark.parametrize("value", [1, 1.5, True, [], {}, 20260101])
def test_the_fields_of_a_driver_are_strings(value):
    paths = list(make_driver())
    lines = [json.dumps(make_driver(**{"driver_id": "d1", path: value})) for path in paths]
    assert_each_rejected(paths, lines, kind="drivers")


def test_a_driver_without_id_is_rejected():
    lines = ['{"alias": "x"}', "{}", '{"driver_id": null}', '{"driver_id": ""}']
    assert_each_rejected(["driver_id"] * 4, lines, kind="drivers")


def test_a_reason_names_every_fault_up_to_five():
    why = reason('{"trip_id": 1, "driver_id": 2}')
    assert why.startswith("trip_id: Must be a string. driver_id: Must be a string. trip_start_time: ")
    assert why.endswith(" and 13 more.")
