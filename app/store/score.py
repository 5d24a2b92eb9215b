"""The score: its constants, and its computation in MongoDB for stored summaries, and in Python for everything else.

Python computes the scores of explanations and of a report's fleet, and the focus areas of trips.
"""

import dataclasses
import functools
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.fields import MAX_INT
from schemas.introspection import fields_of
from schemas.score import ScoreExplanation
from schemas.summary import FOCUS_FLAGS, GRADES, DrivingSummary
from schemas.trip import TripFocusArea

Expression = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Behaviour:
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

    @functools.cached_property
    def flag_field(self) -> str:
        """The field of the focus area of a summary."""
        return FOCUS_FLAGS[self.name]

    @property
    def trip_flag_field(self) -> str:
        """The field of the focus area of a trip."""
        return f"is_{self.name}"

    @functools.cached_property
    def count_field(self) -> str:
        """The field of an event summary with the number of times that it occurred."""
        return f"{self.name}_count"

    def rate(self, totals: Mapping[str, Any], events: Mapping[str, Any]) -> float:
        """Return the rate, at most the largest double, for the totals and the events of a trip or of a period."""
        denominator = totals[self.denominator]
        rate = self.factor * events[self.numerator] / denominator if denominator > 0 else 0.0
        return min(rate, sys.float_info.max)

    def share(self, totals: Mapping[str, Any], events: Mapping[str, Any]) -> float:
        """Return rate ÷ cap."""
        return self.rate(totals, events) / self.cap

    def points_lost(self, totals: Mapping[str, Any], events: Mapping[str, Any]) -> float:
        """Return the points that the behaviour costs, unrounded. `score_stages` computes the same in MongoDB."""
        return self._points_lost_at(self.share(totals, events))

    def _points_lost_at(self, share: float) -> float:
        return self.weight * min(1.0, share)

    def explain(self, totals: Mapping[str, Any], events: Mapping[str, Any]) -> dict[str, Any]:
        """Return the BehaviourExplanation."""
        rate = self.rate(totals, events)
        share = rate / self.cap
        return {
            "behaviour": self.name,
            "count": events[self.count_field],
            "seconds": None if self.numerator == self.count_field else events[self.numerator],
            "rate": rate,
            "cap": self.cap,
            "weight": self.weight,
            "points_lost": self._points_lost_at(share),
            "is_focus_area": share >= FOCUS_SHARE,
        }


# The losses are added in this order, so that every computation gives the same bits.
BEHAVIOURS = (
    Behaviour("phone_use", "phone_use_time_seconds", "duration_seconds", factor=1.0, cap=0.15, weight=35),
    Behaviour("overspeeding", "overspeeding_time_seconds", "duration_seconds", factor=1.0, cap=0.20, weight=30),
    Behaviour("hard_brake", "hard_brake_count", "distance_miles", factor=100.0, cap=20.0, weight=20),
    Behaviour(
        "rapid_acceleration",
        "rapid_acceleration_count",
        "distance_miles",
        factor=100.0,
        cap=20.0,
        weight=15,
    ),
)
# The fields of a summary that are computed from its totals.
SCORE_FIELDS = frozenset({"fm_score", "fm_grade", "focus_area"})
TRIP_FLAGS = tuple(TripFocusArea().fields)
# A behaviour whose rate is at least this share of its cap is in the focus area.
FOCUS_SHARE = 0.5


def compute_focus_area(trip: Mapping[str, Any]) -> dict[str, bool]:
    """Return the focus area of a trip, computed from its event summary."""
    flags = {b.trip_flag_field: b.share(trip, trip["event_summary"]) >= FOCUS_SHARE for b in BEHAVIOURS}
    return {name: flags[name] for name in TRIP_FLAGS}


def make_driving_summary(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the DrivingSummary of totals, which are its fields without SCORE_FIELDS.

    Computes the same as `score_stages`.
    """
    events = totals["events_summary"]
    score, grade = _get_score(compute_points_lost(totals).values())
    focus = {b.flag_field: b.share(totals, events) >= FOCUS_SHARE for b in BEHAVIOURS}
    summary = {"fm_score": score, "fm_grade": grade, **totals, "focus_area": focus}
    return {name: summary[name] for name in fields_of(DrivingSummary)}


def explain_score(totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ScoreExplanation of totals, which are the fields of a DrivingSummary without SCORE_FIELDS."""
    behaviours = [b.explain(totals, totals["events_summary"]) for b in BEHAVIOURS]
    score, grade = _get_score([behaviour["points_lost"] for behaviour in behaviours])
    explanation = {"fm_score": score, "fm_grade": grade, **totals, "behaviours": behaviours}
    return {name: explanation[name] for name in fields_of(ScoreExplanation)}


def compute_points_lost(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the points that each behaviour costs, by its name, of a DrivingSummary. They are unrounded."""
    return {b.name: b.points_lost(summary, summary["events_summary"]) for b in BEHAVIOURS}


def _get_score(points_lost: Iterable[float]) -> tuple[float, str]:
    """Return the score and the grade, from the points that each behaviour costs. `score_stages` computes the same."""
    score = math.floor((100 - math.fsum(points_lost)) * 10 + 0.5) / 10
    return score, next(name for name, lowest in GRADES.items() if score >= lowest)


def _share(behaviour: Behaviour) -> Expression:
    numerator = {"$multiply": [behaviour.factor, f"$events_summary.{behaviour.numerator}"]}
    denominator = f"${behaviour.denominator}"
    rate = {"$cond": [{"$gt": [denominator, 0]}, {"$divide": [numerator, denominator]}, 0.0]}
    return {"$divide": [rate, behaviour.cap]}


def saturate(total: str, *, whole: bool) -> Expression:
    """Return an expression that limits a sum to the largest number that a document can have.

    That is the largest 64-bit integer for `whole` numbers, otherwise the largest double.
    """
    return {"$min": [total, MAX_INT if whole else sys.float_info.max]}


def score_stages() -> list[Expression]:
    """Return the stages that add `fm_score`, `fm_grade` and `focus_area` to documents with the totals of a summary.

    fm_score = 100 − Σ weight × min(1, rate ÷ cap), rounded half up to one decimal: floor(x × 10 + 0.5) ÷ 10. MongoDB's
    $round and Python's round() round half to even. `make_driving_summary` and `explain_score` compute the same in
    Python, from `Behaviour.points_lost`.
    """
    loss = {"$add": [{"$multiply": [b.weight, {"$min": [1.0, f"$shares.{b.flag_field}"]}]} for b in BEHAVIOURS]}
    exact = {"$subtract": [100.0, loss]}
    rounded = {"$divide": [{"$floor": {"$add": [{"$multiply": [exact, 10.0]}, 0.5]}}, 10.0]}
    *better, worst = GRADES
    grade = [{"case": {"$gte": ["$fm_score", GRADES[name]]}, "then": name} for name in better]
    return [
        {"$set": {"shares": {b.flag_field: _share(b) for b in BEHAVIOURS}}},
        {"$set": {"fm_score": rounded}},
        {
            "$set": {
                "fm_grade": {"$switch": {"branches": grade, "default": worst}},
                "focus_area": {b.flag_field: {"$gte": [f"$shares.{b.flag_field}", FOCUS_SHARE]} for b in BEHAVIOURS},
            }
        },
    ]
