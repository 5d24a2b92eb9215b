"""The score: its constants, its explanation, and its computation from totals, which MongoDB adds up."""

import math
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from marshmallow import Schema

from schemas.driver import Driver
from schemas.fields import MAX_INT, Amount, Choice, Count, Date, Flag, Object, Objects, example
from schemas.periods import MONTH, WEEK
from schemas.summary import FOCUS_FLAGS, GRADES, DrivingSummary
from schemas.trip import EventSummary, TripFocusArea


class Behaviour(NamedTuple):
    """A behaviour that lowers the score.

    Its rate is `factor` × `numerator` ÷ `denominator`, two fields of a summary. It costs `weight` × rate ÷ `cap`
    points, and at most `weight`.
    """

    name: str
    numerator: str
    denominator: str
    factor: float
    cap: float
    weight: int

    def explain(self, totals: Mapping[str, Any]) -> dict[str, Any]:
        """Return the BehaviourExplanation of totals. The rate is at most the largest double."""
        events, denominator, count_field = totals["events_summary"], totals[self.denominator], f"{self.name}_count"
        rate = self.factor * events[self.numerator] / denominator if denominator > 0 else 0.0
        rate = min(rate, sys.float_info.max)
        share = rate / self.cap
        return {
            "behaviour": self.name,
            "count": events[count_field],
            "seconds": None if self.numerator == count_field else events[self.numerator],
            "rate": rate,
            "cap": self.cap,
            "weight": self.weight,
            "points_lost": self.weight * min(1.0, share),
            "is_focus_area": share >= FOCUS_SHARE,
        }


# The losses are added in this order, so that every computation gives the same bits.
BEHAVIOURS = (
    Behaviour("phone_use", "phone_use_time_seconds", "duration_seconds", factor=1.0, cap=0.15, weight=35),
    Behaviour("overspeeding", "overspeeding_time_seconds", "duration_seconds", factor=1.0, cap=0.20, weight=30),
    Behaviour("hard_brake", "hard_brake_count", "distance_miles", factor=100.0, cap=20.0, weight=20),
    Behaviour("rapid_acceleration", "rapid_acceleration_count", "distance_miles", factor=100.0, cap=20.0, weight=15),
)
# A behaviour whose rate is at least this share of its cap is in the focus area.
FOCUS_SHARE = 0.5
# How many miles a driver has to have driven in a week or month to be judged. After three miles, one event costs as many
# points as a behaviour can cost.
MIN_DISTANCE_MILES = {WEEK: 10, MONTH: 40}
# In the order of EventSummary, as the columns of a report.
COUNTED_BEHAVIOURS = tuple(name.removesuffix("_count") for name in EventSummary().fields if name.endswith("_count"))
TRIP_FLAGS = tuple(TripFocusArea().fields)


class BehaviourExplanation(Schema):
    """What a behaviour costs."""

    behaviour = Choice(
        "Name of the behaviour.", component="BehaviourName", choices=COUNTED_BEHAVIOURS, example="overspeeding"
    )
    count = Count("Number of times that the behaviour occurred.", high=MAX_INT, example=1)
    seconds = Amount(
        "Time of the behaviour, in seconds. Null for a behaviour whose rate is per 100 miles.",
        example=90,
        allow_none=True,
    )
    rate = Amount("Share of the driving time, or number per 100 miles.", example=0.05)
    cap = Amount("The rate from which the behaviour costs all of its weight.", example=0.2)
    weight = Amount("Maximum of points that the behaviour costs.", example=30)
    points_lost = Amount("Points that the behaviour costs: weight × min(1, rate ÷ cap).", example=7.5)
    is_focus_area = Flag("Whether to coach the behaviour: whether rate ÷ cap is 0.5 or more.", example=False)


class ScoreExplanation(DrivingSummary):
    """How a score is made up: it is 100 minus the points that the behaviours cost, rounded half up to one decimal."""

    behaviours = Objects(
        BehaviourExplanation,
        "What each behaviour costs: always the same behaviours in the same order.",
        example=[behaviour.explain(example(DrivingSummary())) for behaviour in BEHAVIOURS],
    )

    class Meta:
        """Some of the fields of a DrivingSummary, and the explanation."""

        fields = ("fm_score", "fm_grade", "trip_count", "distance_miles", "duration_seconds", "behaviours")


class ScoreInterval(Schema):
    """The score of an interval in which the driver drove."""

    start_date = Date("The first date of the interval in the window.", example="2026-03-09")
    end_date = Date("The last date of the interval in the window.", example="2026-03-15")
    explanation = Object(ScoreExplanation, "The score of the interval.")


class DriverScore(Schema):
    """The score of a driver in a window, and in the intervals of the window."""

    driver_info = Object(Driver, "The driver.")
    start_date = Date("The first date of the window.", example="2026-03-09")
    end_date = Date("The last date of the window.", example="2026-03-15")
    total = Object(
        ScoreExplanation, "The score of the window. Null if the driver did not drive in it.", allow_none=True
    )
    series = Objects(ScoreInterval, "The intervals in which the driver drove, oldest first.")


DRIVING_SUMMARY_FIELDS, SCORE_EXPLANATION_FIELDS = tuple(DrivingSummary().fields), ScoreExplanation.Meta.fields


def compute_score(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the totals with what follows from them: `fm_score`, `fm_grade`, `focus_area` and `behaviours`.

    `totals` are the fields of a DrivingSummary that are added up. fm_score = 100 − Σ weight × min(1, rate ÷ cap),
    rounded half up to one decimal: floor(x × 10 + 0.5) ÷ 10. Python's round() and MongoDB's $round round half to even.
    """
    behaviours = [behaviour.explain(totals) for behaviour in BEHAVIOURS]
    points_lost = math.fsum(behaviour["points_lost"] for behaviour in behaviours)
    score = math.floor((100 - points_lost) * 10 + 0.5) / 10
    return {
        **totals,
        "fm_score": score,
        "fm_grade": next(name for name, lowest in GRADES.items() if score >= lowest),
        "focus_area": {FOCUS_FLAGS[item["behaviour"]]: item["is_focus_area"] for item in behaviours},
        "behaviours": behaviours,
    }


def make_driving_summary(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the DrivingSummary of totals."""
    summary = compute_score(totals)
    return {name: summary[name] for name in DRIVING_SUMMARY_FIELDS}


def explain_score(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ScoreExplanation of totals."""
    explanation = compute_score(totals)
    return {name: explanation[name] for name in SCORE_EXPLANATION_FIELDS}


def compute_points_lost(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the points that each behaviour costs, by its name, of a DrivingSummary. They are unrounded."""
    return {item["behaviour"]: item["points_lost"] for item in compute_score(summary)["behaviours"]}


def compute_trip_score(trip: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `compute_score` of one trip. Its focus area has the flags that a trip has."""
    score = compute_score({**trip, "events_summary": trip["event_summary"]})
    flags = {f"is_{item['behaviour']}": item["is_focus_area"] for item in score["behaviours"]}
    return {**score, "focus_area": {name: flags[name] for name in TRIP_FLAGS}}
