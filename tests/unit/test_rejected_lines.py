"""scripts/ingest/lines.py and records.py: which lines are rejected, and the reasons."""

import itertools
import json

import pytest
from marshmallow import ValidationError

from scripts.ingest.lines import parse
from scripts.ingest.records import DRIVERS, TRIPS, Record, check
from scripts.materialize.sources import describe_errors
from tests.factories import NULL_BY_DEFAULT, epoch_ms, make_driver, make_trip
from tests.whole_trip import EVENTS, MAX_INT, MIN_INT, SPEEDS, WHOLE, altered, steps_of


def reason(line, record_type=TRIPS):
    """Return why a line is rejected."""
    record = parse(1, line.encode())
    return (check(record, "f1", record_type) if isinstance(record, Record) else record).reason


def spelled(path):
    """Return a path the way a reason names it: `events.0.event_type` is `events[0].event_type`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps_of(path))[1:]


def find_values(value, path=""):
    """Yield (path, value) of every plain value."""
    if not isinstance(value, dict | list):
        yield path[1:], value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from find_values(inner, f"{path}.{key}")


# Of the events, the last one has all fields.
VALUES = {
    path: value for path, value in find_values(WHOLE) if not path.startswith(("events.0", "events.1", "events.2"))
}
LISTS = ["trail_path", "events"]
OBJECTS = ["event_summary", "focus_area", "trail_path.1", "events.3", "events.3.event_data"]
NULLABLE = ["insurance_period", "tracking_id", *NULL_BY_DEFAULT]
TOO_LARGE = ["1e400", "-1e400", f"{MAX_INT + 1}", f"{MIN_INT - 1}"]
IDENTIFIERS = ["", ".", "..", "x" * 129, "é" * 64 + "x", "𝄞" * 33, *(f"a{char}b" for char in "\0\n\x1f\x7f\x80\x9f")]
DATES = ["2026-02-30", "2026-02-29", "20260101", "2026-1-1", "2026-W01-1", "2026-01-01 ", "2026-01-01T00:00:00", ""]
DATES += ["0000-01-01", "2026-13-01", "２０２６-01-01", "10000-01-01"]


def of_type(*types):
    return [path for path, value in VALUES.items() if type(value) in types]


def ending(*ends):
    return [path for path in VALUES if path.endswith(ends)]


REQUIRED = set(VALUES) - set(ending("_mph")) - set(NULL_BY_DEFAULT)
# What is wrong: at these paths of a trip, each of these texts; None is a field left out.
INVALID_TRIPS = {
    "missing": ([*REQUIRED, *LISTS, "event_summary", "events.3.event_data"], [None]),
    "of no type": ([*VALUES], ["[]", "{}", '[{"a": 1}]', *TOO_LARGE]),
    "null": ([*set(VALUES) - set(NULLABLE), *LISTS, *OBJECTS], ["null"]),
    "no number": (of_type(int, float), ['"1"', '""', "true", "false"]),
    "no integer": (ending("_count", "time", "stamp", "insurance_period", "_type"), ["1.0", "1e0", "0.5", "-0.0"]),
    "no boolean": (of_type(bool), ["0", "1", '"true"']),
    "no string": (of_type(str), ["1", "1.5", "true"]),
    "lone surrogate": (of_type(str), [r'"a\ud800"', r'"\udc00"', r'"\ude00\ud83d"']),
    "no list": (LISTS, ["{}", '"x"', "1", "true"]),
    "no object in a list": (["trail_path.0", "events.0"], ["1", "[]", '"x"', "null"]),
    "latitude": (ending("latitude"), ["90.0001", "-91", "1e9", f"{MAX_INT}"]),
    "longitude": (ending("longitude"), ["180.0001", "-181", "1e9", f"{MIN_INT}"]),
    "negative": (ending("_count", "_seconds", "_miles"), ["-1", f"{MIN_INT}", "-0.001", "-5e-324"]),
    "identifier": (["trip_id", "driver_id", "tracking_id"], [*map(json.dumps, IDENTIFIERS)]),
    "insurance period": (["insurance_period"], ["0", "4", "-1", f"{MAX_INT}"]),
    "event type": (["events.1.event_type"], ["0", "3", "8", "10", "-1", f"{MAX_INT}"]),
    "event data": ([f"events.{n}.event_data" for n in range(3)], [json.dumps(SPEEDS), '{"user_speed_mph": 1}']),
    "no event data": (["events.3.event_data"], ["{}"]),
    "no speed": ([f"events.3.event_data.{name}" for name in SPEEDS], ['"1"', "null", "1e400"]),
}
INVALID_DRIVERS = {
    "missing": (["driver_id"], [None, "null"]),
    "no string": ([*make_driver()], ["1", "1.5", "true", "[]", "{}"]),
    "identifier": (["driver_id"], [*map(json.dumps, IDENTIFIERS)]),
    "date": (["first_travel_date", "last_travel_date"], [*map(json.dumps, DATES)]),
}
TABLES = [(TRIPS, WHOLE, INVALID_TRIPS), (DRIVERS, make_driver("d1"), INVALID_DRIVERS)]


@pytest.mark.parametrize(
    ("record_type", "whole", "paths", "texts"),
    [
        pytest.param(record_type, whole, *row, id=f"{record_type.name}: {name}")
        for record_type, whole, rows in TABLES
        for name, row in rows.items()
    ],
)
def test_what_violates_the_schema_is_rejected_with_its_path(record_type, whole, paths, texts):
    whys = [
        (path, text, reason(altered(path, text, whole), record_type)) for path, text in itertools.product(paths, texts)
    ]
    assert [why for why in whys if not why[2].startswith(f"{spelled(why[0])}: ")] == []
    assert whys


@pytest.mark.parametrize("length", [999, 1000, 1001, 2500])
def test_a_wrong_point_is_found_wherever_it_is(length):
    point = WHOLE["trail_path"][0]
    half = [*[point] * length, {**point, "latitude": 91}]
    why = reason(json.dumps({**WHOLE, "trail_path": half * 2}))
    assert why.startswith(f"trail_path[{length}].latitude: ")
    assert f" trail_path[{2 * length + 1}].latitude: " in why


@pytest.mark.parametrize("event", range(len(EVENTS)))
def test_an_event_name_that_is_not_its_types_is_rejected(event):
    own, path = EVENTS[event][1], f"events.{event}.event_name"
    for name in [name for _, name, _ in EVENTS if name != own] + [own.lower(), f"{own} ", ""]:
        assert reason(altered(path, json.dumps(name))).startswith(f"{spelled(path)}: ")


@pytest.mark.parametrize("name", SPEEDS)
def test_overspeeding_without_one_of_its_speeds_is_rejected(name):
    assert reason(altered(f"events.3.event_data.{name}", None)).startswith("events[3].event_data: Must have")


@pytest.mark.parametrize("start", ["trip_start_time", "events.0.event_start_timestamp"])
def test_an_end_before_its_start_is_rejected(start):
    end = start.replace("_start_", "_end_")
    assert reason(altered(end, str(WHOLE["trip_start_time"] - 1))).startswith(spelled(end))
    assert reason(altered(start, str(WHOLE["trip_end_time"] + 1))).startswith(spelled(end))


@pytest.mark.parametrize(("end", "is_valid"), [("2026-03-18T13:00", True), ("2026-03-18T13:01", False)])
def test_a_trip_that_ends_more_than_an_hour_in_the_future_is_rejected(clock, end, is_valid):
    checked = check(Record(1, b"", make_trip(trip_end_time=epoch_ms(end))), "f1", TRIPS)
    expected = "" if is_valid else "trip_end_time: Must not be more than an hour in the future."
    assert getattr(checked, "reason", "") == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *((line, "Not a JSON object.") for line in ("[]", "[{}]", "null", "1", '"text"', "true")),
        *((altered("distance_miles", text), "Not JSON: ") for text in ("NaN", "-Infinity", "inf", "01", "'x'")),
        (altered("trail_path.1.course", "Infinity"), "Not JSON: "),
        ('{"a": "b', "Not JSON: Unterminated string starting at character 7."),
        ('{"a": ' + "9" * 5_000, "Not JSON: a number has too many digits, or "),
        (altered("trip_id", r'"a", "trip\u005fid": "a"'), 'Contains the field "trip_id" more than once.'),
        (json.dumps({**WHOLE, "\udfff": 1}), r"\udfff: Unknown field."),
        ("\ufeff{}", "Not JSON: starts with a byte order mark."),
    ],
)
def test_what_is_no_object_in_json_is_rejected(line, why):
    assert reason(line).startswith(why)


def test_a_line_of_the_other_file_is_recognized():
    assert reason(json.dumps(make_driver("d1")), TRIPS) == "Looks like one of the drivers. Give the file as --drivers."
    assert reason(json.dumps(make_trip()), DRIVERS) == "Looks like one of the trips. Give the file as --trips."


@pytest.mark.parametrize("path", ["trip_id", *(f"{inside}.again" for inside in OBJECTS)])
def test_a_key_given_twice_is_rejected_at_any_depth(path):
    key = path.rpartition(".")[2]
    assert f'"{key}"' in reason(altered(path, f'"x", "{key}": "x"'))


@pytest.mark.parametrize("name", ["zzz", "Trip_id", "$where", "fleet", "_id", "__proto__"])
def test_an_unknown_field_is_rejected_at_any_depth(name):
    paths = [name, *(f"{inside}.{name}" for inside in OBJECTS)]
    assert {reason(altered(path, "null")).rpartition(name)[1:] for path in paths} == {(name, ": Unknown field.")}


def test_a_reason_names_up_to_five_faults_invalid_fields_before_missing_ones():
    why = reason('{"trip_id": 1, "driver_id": 2, "nope": 1}')
    assert why.startswith(
        "trip_id: Must be a string. driver_id: Must be a string. nope: Unknown field. trip_start_time: "
    )
    assert why.endswith(" and more.")


def count(messages):
    """Return the number of errors."""
    return sum(map(count, messages.values())) if isinstance(messages, dict) else len(messages)


UNKNOWN = ",".join(f'"x{number}": 0' for number in range(50_000))


@pytest.mark.parametrize("element", ["0", "{}", "[]", "null", '{"a": 0}', '{"timestamp": 0.5}'])
@pytest.mark.parametrize("path", LISTS)
def test_what_is_wrong_with_a_list_is_not_collected_to_its_end(path, element):
    with pytest.raises(ValidationError) as rejected:
        TRIPS.schema.load(json.loads(altered(path, f"[{', '.join([element] * 5_000)}]")))
    assert 5 < count(rejected.value.messages) < 100
    assert describe_errors(rejected.value).startswith(f"{path}[0]")


@pytest.mark.parametrize("path", ["distance_miles", *(f"{inside}.z" for inside in OBJECTS)])
def test_a_few_of_many_unknown_fields_are_named(path):
    inside = path.rpartition(".")[0]
    names = [spelled(f"{inside}.x{number}" if inside else f"x{number}") for number in (0, 1, 10, 100, 1000)]
    assert reason(altered(path, f"0, {UNKNOWN}")).startswith(" ".join(f"{name}: Unknown field." for name in names))


def test_a_long_name_is_named_by_its_beginning_and_its_end():
    why = reason(json.dumps({**WHOLE, "x" * 1_000_000: 0}))
    assert (why[:3], len(why), why[-20:]) == ("xxx", 303, "xxxx: Unknown field.")


@pytest.mark.parametrize("element", ["{}", "[]", '{"a": [0]}'])
def test_more_objects_and_lists_than_a_valid_line_can_have_are_rejected(element):
    text = f"[{', '.join([element] * 300_000)}]"
    assert reason(altered("events", text)) == "Has more than 300000 brackets { and [."


@pytest.mark.parametrize("field", ["first_name", "last_name", "email", "alias"])
def test_a_name_has_at_most_500_characters(field):
    longest = {**make_driver("d1"), field: "ﷺ" * 500}
    record = parse(1, json.dumps(longest).encode())
    assert check(record, "f1", DRIVERS).document.source[field] == longest[field]
    longer = json.dumps({**longest, field: "a" * 501})
    assert reason(longer, DRIVERS) == f"{field}: Must have at most 500 characters; it has 501."


def test_brackets_in_text_are_not_objects():
    driver = make_driver("d1", alias='{["\\' * 100_000)
    assert reason(json.dumps(driver), DRIVERS) == "alias: Must have at most 500 characters; it has 400000."


def test_a_duplicate_field_of_a_long_line_has_no_name():
    assert reason('{"a": 0, "b": "%s", "a": 0}' % ("x" * 1_000_000)) == "Contains a field more than once."
