"""schemas/score.py: the score of totals, and the focus area of a trip."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.score import ScoreExplanation, compute_trip_score, explain_score, make_driving_summary
from tests.factories import make_event_summary, make_trip
from tests.score_reference import check_explanation, check_totals

ALL_EVENTS = dict.fromkeys(make_event_summary(), 1000)


def trip_of(seconds=0, miles=0, **events):
    return make_trip(duration_seconds=seconds, distance_miles=miles, event_summary=make_event_summary(**events))


def totals_of(trip):
    """Return the totals of a day with one trip."""
    totals = {name: trip[name] for name in ("distance_miles", "duration_seconds", "highway_miles")}
    return totals | {"trip_count": 1, "night_driving_seconds": 0, "events_summary": trip["event_summary"]}


def scored(*amounts, **events):
    """Return the score and the grade of a day with one trip."""
    summary = make_driving_summary(totals_of(trip_of(*amounts, **events)))
    return summary["fm_score"], summary["fm_grade"]


amounts = st.integers(0, 10**6) | st.floats(1e-9, 1e6) | st.sampled_from([0, 0.0, 1e15, 2**62])
counts = st.integers(0, 50) | st.sampled_from([2**53 + 1, 2**62])
trips = st.builds(
    trip_of,
    seconds=amounts,
    miles=amounts,
    phone_use_time_seconds=amounts,
    overspeeding_time_seconds=amounts,
    hard_brake_count=counts,
    rapid_acceleration_count=counts,
)


@given(trips)
@example(trip_of(seconds=1, miles=1, **ALL_EVENTS))
@example(trip_of(seconds=0, miles=0.0, **ALL_EVENTS))
@example(trip_of(seconds=1800, phone_use_time_seconds=135, overspeeding_time_seconds=180))
def test_score_and_focus_area_are_the_contracts(trip):
    summary, explanation = make_driving_summary(totals_of(trip)), explain_score(totals_of(trip))
    check_totals(summary, [trip])
    check_explanation(explanation, [trip])
    points = math.fsum(behaviour["points_lost"] for behaviour in explanation["behaviours"])
    assert math.floor((100 - points) * 10 + 0.5) / 10 == explanation["fm_score"] == summary["fm_score"]
    flags = {f"is_{behaviour['behaviour']}": behaviour["is_focus_area"] for behaviour in explanation["behaviours"]}
    assert compute_trip_score(trip)["focus_area"] == flags
    flags["is_acceleration"] = flags.pop("is_rapid_acceleration")
    assert summary["focus_area"] == flags


def test_a_rate_past_all_numbers_is_the_largest_of_them():
    explanation = explain_score(totals_of(trip_of(miles=5e-324, hard_brake_count=9)))
    assert ScoreExplanation().validate(explanation) == {}
    assert explanation["fm_score"] == 80.0


@pytest.mark.parametrize(
    ("events", "flag"),
    [
        ({"phone_use_time_seconds": 75}, "is_phone_use"),
        ({"overspeeding_time_seconds": 100}, "is_overspeeding"),
        ({"hard_brake_count": 10}, "is_hard_brake"),
        ({"rapid_acceleration_count": 10}, "is_rapid_acceleration"),
    ],
)
def test_a_flag_is_up_from_half_of_the_cap_on(events, flag):
    focus = compute_trip_score(trip_of(seconds=1000, miles=100, **events))["focus_area"]
    assert [name for name, up in focus.items() if up] == [flag]
    assert not any(compute_trip_score(trip_of(seconds=1000.1, miles=100.1, **events))["focus_area"].values())


@pytest.mark.parametrize(
    ("brakes", "miles", "score"), [(1, 400, 99.8), (1, 2000, 100.0), (3, 400, 99.3), (7, 400, 98.3)]
)
def test_a_score_is_rounded_half_up(brakes, miles, score):
    assert scored(0, miles, hard_brake_count=brakes)[0] == score


@pytest.mark.parametrize(
    ("phone", "overspeeding", "score", "grade"),
    [
        (0, 0, 100.0, "excellent"),
        (64.2, 0, 85.0, "excellent"),
        (64.6, 0, 84.9, "good"),
        (128.4, 0, 70.0, "good"),
        (128.8, 0, 69.9, "fair"),
        (150, 100, 50.0, "fair"),
        (150, 100.8, 49.9, "poor"),
    ],
)
def test_grades_follow_the_rounded_score(phone, overspeeding, score, grade):
    events = {"phone_use_time_seconds": phone, "overspeeding_time_seconds": overspeeding}
    assert scored(1000, **events) == (score, grade)
