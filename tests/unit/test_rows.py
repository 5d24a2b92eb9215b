"""schemas.source.Rows: the fast way through a trail and events finds what the plain one finds."""

import json

from hypothesis import example, given
from hypothesis import strategies as st
from marshmallow import ValidationError, fields

from schemas.source import Rows
from schemas.trip import Event, TrailPoint
from tests.factories import make_point
from tests.whole_trip import WHOLE

FAST, PLAIN = Rows(TrailPoint, most=100), fields.List(fields.Nested(TrailPoint))
FAST_EVENTS, PLAIN_EVENTS = Rows(Event, most=100), fields.List(fields.Nested(Event))
NAMES = tuple(make_point(0))
INFINITY = float("inf")


def outcome(field, value):
    """Return the value as loaded, with key order and types distinguished, or its faults."""
    try:
        return "loaded", repr(field.deserialize(value))
    except ValidationError as error:
        return "refused", error.messages


bounds = [-0.0, -90, 90.0, -90.5, 91, 180, -180.5, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, INFINITY]
numbers = st.sampled_from(bounds) | st.floats(-90, 90) | st.floats(allow_nan=False)
others = st.sampled_from([None, True, "", "1", [], [0], {}])
# Zero is loaded without a sign.
degrees = st.integers(-90, 90) | st.floats(-90, 90).map(lambda number: number or 0.0)
columns = {"timestamp": st.integers(-90, 90), "latitude": degrees, "longitude": degrees, "course": degrees}
good_points = st.permutations(NAMES).flatmap(
    lambda names: st.fixed_dictionaries({name: columns[name] for name in names})
)
nearly_good_points = st.builds(
    lambda point, name, value: {**point, name: value}, good_points, st.sampled_from([*NAMES, "extra"]), numbers | others
)
any_points = st.dictionaries(st.sampled_from([*NAMES, "extra"]), numbers | others, max_size=5)


@given(st.lists(good_points | nearly_good_points, max_size=6) | st.lists(any_points | others, max_size=4) | others)
@example([make_point(0, course=1e19), make_point(1)])
@example([make_point(0), make_point(1, latitude=90.5)])
@example([make_point(0), make_point(1, latitude=-90.5)])
def test_the_fast_validation_agrees_with_the_plain_one(trail):
    assert outcome(FAST, trail) == outcome(PLAIN, trail)


@given(st.lists(good_points, max_size=6))
def test_a_good_trail_is_loaded_as_it_is_in_the_order_of_the_contract(trail):
    expected = [{name: point[name] for name in NAMES} for point in trail]
    assert json.dumps(FAST.deserialize(trail)) == json.dumps(expected)


good_events = st.sampled_from(WHOLE["events"])
event_names, data_names = [*WHOLE["events"][3]], [*WHOLE["events"][3]["event_data"]]
event_values = numbers | others | st.sampled_from(["HARD_BRAKE", 1, 7, "\ud800"])
any_data = st.dictionaries(st.sampled_from([*data_names, "extra"]), numbers | others, max_size=4)
nearly_good_events = st.builds(
    lambda event, name, value: {**event, name: value},
    good_events,
    st.sampled_from([*event_names, "extra"]),
    event_values,
)
events_of_any_data = st.builds(lambda event, data: {**event, "event_data": data}, good_events, any_data)


@given(st.lists(good_events | nearly_good_events | events_of_any_data, max_size=5) | others)
def test_the_fast_validation_of_events_agrees_with_the_plain_one(events):
    assert outcome(FAST_EVENTS, events) == outcome(PLAIN_EVENTS, events)


@given(st.lists(good_events, max_size=4), st.permutations(event_names), st.permutations(data_names))
def test_good_events_are_loaded_in_the_order_of_the_contract(events, names, keys):
    data = [{key: event["event_data"][key] for key in keys if key in event["event_data"]} for event in events]
    mixed = [
        {name: {**event, "event_data": new}[name] for name in names} for event, new in zip(events, data, strict=True)
    ]
    assert json.dumps(FAST_EVENTS.deserialize(mixed)) == json.dumps(events)
