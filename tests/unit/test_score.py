"""app/store/score.py: the score of totals, and the focus area of a trip."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.store import score
from app.store.score import compute_focus_area
from schemas import introspection
from schemas.score import BEHAVIOURS, ScoreExplanation
from schemas.summary import DrivingSummary
from tests.factories import make_event_summary, make_trip

FLAGS = {
    "is_phone_use": "is_phone_use",
    "is_rapid_acceleration": "is_acceleration",
    "is_hard_brake": "is_hard_brake",
    "is_overspeeding": "is_overspeeding",
}
EDGE = Fraction(1, 10**9)


def trip_of(seconds=0, miles=0, **events):
    return make_trip(duration_seconds=seconds, distance_miles=miles, event_summary=make_event_summary(**events))


def shares(trip):
    """Return each behaviour's share of its cap, exactly."""
    events, miles, seconds = trip["event_summary"], trip["distance_miles"], trip["duration_seconds"]

    def share(count, base, per, cap):
        return per * Fraction(events[count]) / Fraction(base) / Fraction(cap) if base else Fraction(0)

    return {
        "is_phone_use": share("phone_use_time_seconds", seconds, 1, "0.15"),
        "is_rapid_acceleration": share("rapid_acceleration_count", miles, 100, 20),
        "is_hard_brake": share("hard_brake_count", miles, 100, 20),
        "is_overspeeding": share("overspeeding_time_seconds", seconds, 1, "0.20"),
    }


def scored(trip):
    """Return the summary of a day with one trip."""
    return score.make_driving_summary(totals_of(trip))


def totals_of(trip):
    """Return the totals of a day with one trip."""
    totals = {name: trip[name] for name in ("distance_miles", "duration_seconds", "highway_miles")}
    return totals | {"trip_count": 1, "night_driving_seconds": 0, "events_summary": trip["event_summary"]}


amounts = st.one_of(st.integers(0, 10**6), st.floats(0, 1e6), st.sampled_from([0, 0.0, 5e-324, 1e-9, 1e15, 2**62]))
counts = st.one_of(st.integers(0, 50), st.sampled_from([2**53 + 1, 2**62]))
trips = st.builds(
    trip_of,
    seconds=amounts,
    miles=amounts,
    phone_use_time_seconds=amounts,
    overspeeding_time_seconds=amounts,
    hard_brake_count=counts,
    rapid_acceleration_count=counts,
)


@settings(max_examples=60, deadline=None)
@given(trips)
@example(trip_of(seconds=1800, phone_use_time_seconds=135, overspeeding_time_seconds=180))
@example(trip_of(miles=10, hard_brake_count=1, rapid_acceleration_count=1))
@example(trip_of(phone_use_time_seconds=5, hard_brake_count=3))
def test_a_trips_focus_area_is_the_one_of_the_window_and_the_contracts(trip):
    focus, window = compute_focus_area(trip), scored(trip)["focus_area"]
    assert focus == {flag: window[name] for flag, name in FLAGS.items()}
    for flag, share in shares(trip).items():
        assert focus[flag] is (share >= Fraction(1, 2)) or abs(share - Fraction(1, 2)) < EDGE


@settings(max_examples=60, deadline=None)
@given(trips)
@example(trip_of(miles=5e-324, hard_brake_count=9))
@example(trip_of(seconds=1800, phone_use_time_seconds=135, overspeeding_time_seconds=180))
def test_an_explanation_adds_up_to_the_score(trip):
    explanation, summary = score.explain_score(totals_of(trip)), score.make_driving_summary(totals_of(trip))
    points = [behaviour["points_lost"] for behaviour in explanation["behaviours"]]
    assert math.floor((100 - math.fsum(points)) * 10 + 0.5) / 10 == explanation["fm_score"] == summary["fm_score"]
    assert ScoreExplanation().validate(explanation) == {}


def test_the_behaviours_are_those_of_the_schema():
    assert {behaviour.name for behaviour in score.BEHAVIOURS} == set(BEHAVIOURS)


def test_the_example_of_an_explanation_explains_the_example_of_a_summary():
    summary = introspection.example(DrivingSummary())
    assert score.explain_score(summary) == introspection.example(ScoreExplanation())


@settings(max_examples=60, deadline=None)
@given(trips)
def test_the_score_is_the_contracts(trip):
    weights = {"is_phone_use": 35, "is_overspeeding": 30, "is_hard_brake": 20, "is_rapid_acceleration": 15}
    exact = 100 - sum(weight * min(Fraction(1), shares(trip)[flag]) for flag, weight in weights.items())
    rounded = {float((exact + step) * 10 + Fraction(1, 2)) // 1 / 10 for step in (-EDGE, 0, EDGE)}
    assert scored(trip)["fm_score"] in rounded


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
    focus = compute_focus_area(trip_of(seconds=1000, miles=100, **events))
    assert [name for name, up in focus.items() if up] == [flag]
    assert not any(compute_focus_area(trip_of(seconds=1000.1, miles=100.1, **events)).values())


def test_a_trip_that_went_nowhere_has_no_flag():
    everything = dict.fromkeys(make_event_summary(), 9)
    assert not any(compute_focus_area(trip_of(0, 0.0, **everything)).values())
    assert (scored(trip_of(0, 0.0, **everything))["fm_score"], scored(trip_of())["fm_grade"]) == (100.0, "excellent")


def test_the_worst_score_is_zero():
    everything = dict.fromkeys(make_event_summary(), 1000)
    result = scored(trip_of(1, 1, **everything))
    assert (result["fm_score"], result["fm_grade"]) == (0.0, "poor")


@pytest.mark.parametrize(
    ("brakes", "miles", "score"),
    [(1, 400, 99.8), (1, 2000, 100.0), (3, 400, 99.3), (7, 400, 98.3), (20, 100, 80.0), (5, 100, 95.0)],
)
def test_a_score_is_rounded_half_up(brakes, miles, score):
    assert scored(trip_of(miles=miles, hard_brake_count=brakes))["fm_score"] == score


@pytest.mark.parametrize(
    ("phone", "score", "grade"),
    [
        (0, 100.0, "excellent"),
        (64.2, 85.0, "excellent"),
        (64.6, 84.9, "good"),
        (128.4, 70.0, "good"),
        (128.8, 69.9, "fair"),
    ],
)
def test_grades_follow_the_rounded_score(phone, score, grade):
    result = scored(trip_of(seconds=1000, phone_use_time_seconds=phone))
    assert (result["fm_score"], result["fm_grade"]) == (score, grade)


@pytest.mark.parametrize(("overspeeding", "score", "grade"), [(100, 50.0, "fair"), (100.8, 49.9, "poor")])
def test_below_fifty_a_score_is_poor(overspeeding, score, grade):
    result = scored(trip_of(seconds=1000, phone_use_time_seconds=150, overspeeding_time_seconds=overspeeding))
    assert (result["fm_score"], result["fm_grade"]) == (score, grade)
