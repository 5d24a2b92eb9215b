"""Scores worked out from trips alone, in exact fractions, to compare the service with."""

import datetime
import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from schemas.summary import GRADES
from tests.factories import make_event_summary, make_trip

# Far more than floating-point numbers are wrong by, and far less than a tenth.
EDGE = Fraction(1, 10**9)
HALF = Fraction(1, 2)
DAY_MS = 86_400_000
AMOUNTS = {"distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles"}


class Behaviour(NamedTuple):
    """A row of the contract's table; `seconds` says whether the rate is per second driven or per 100 miles."""

    name: str
    seconds: bool
    cap: str
    weight: int


BEHAVIOURS = (
    Behaviour("phone_use", True, "0.15", 35),
    Behaviour("overspeeding", True, "0.20", 30),
    Behaviour("hard_brake", False, "20", 20),
    Behaviour("rapid_acceleration", False, "20", 15),
)


def date_of(trip: dict[str, Any]) -> str:
    """Return the UTC date to which a trip belongs."""
    return str(datetime.date(1970, 1, 1) + datetime.timedelta(trip["trip_start_time"] // DAY_MS))


def between(trips: Iterable[dict[str, Any]], first: str, last: str) -> list[dict[str, Any]]:
    """Return the trips of the dates from `first` to `last`."""
    return [trip for trip in trips if first <= date_of(trip) <= last]


def add_up(trips: Iterable[dict[str, Any]], *path: str) -> Fraction:
    """Return the sum of a field."""
    total = Fraction(0)
    for trip in trips:
        value: Any = trip
        for name in path:
            value = value[name]
        total += Fraction(value)
    return total


def rate(trips: list[dict[str, Any]], behaviour: Behaviour) -> Fraction:
    """Return the rate of a behaviour."""
    base = add_up(trips, "duration_seconds" if behaviour.seconds else "distance_miles")
    field = f"{behaviour.name}_{'time_seconds' if behaviour.seconds else 'count'}"
    occurred = add_up(trips, "event_summary", field) * (1 if behaviour.seconds else 100)
    return occurred / base if base else Fraction(0)


def points(trips: list[dict[str, Any]], behaviour: Behaviour) -> Fraction:
    """Return the points that a behaviour costs."""
    return behaviour.weight * min(Fraction(1), rate(trips, behaviour) / Fraction(behaviour.cap))


def is_score(score: float, trips: list[dict[str, Any]]) -> bool:
    """Return whether a score is that of the trips, rounded half up to one decimal."""
    exact = 100 - sum(points(trips, behaviour) for behaviour in BEHAVIOURS)
    return score in {float((exact + step) * 10 + HALF) // 1 / 10 for step in (-EDGE, 0, EDGE)}


def check_totals(summary: dict[str, Any], trips: list[dict[str, Any]]) -> None:
    """Check the score and the amounts of a DrivingSummary or a ScoreExplanation, which has fewer."""
    assert is_score(summary["fm_score"], trips)
    assert summary["fm_grade"] == next(name for name, lowest in GRADES.items() if summary["fm_score"] >= lowest)
    assert summary["trip_count"] == len(trips)
    for name in AMOUNTS & summary.keys():
        assert is_close(summary[name], add_up(trips, name))


def check_explanation(explanation: dict[str, Any], trips: list[dict[str, Any]]) -> None:
    """Check a ScoreExplanation."""
    check_totals(explanation, trips)
    assert [found["behaviour"] for found in explanation["behaviours"]] == [one.name for one in BEHAVIOURS]
    for found, behaviour in zip(explanation["behaviours"], BEHAVIOURS, strict=True):
        share = rate(trips, behaviour) / Fraction(behaviour.cap)
        assert found["count"] == add_up(trips, "event_summary", f"{behaviour.name}_count")
        assert (found["seconds"] is None) is not behaviour.seconds
        if behaviour.seconds:
            assert is_close(found["seconds"], add_up(trips, "event_summary", f"{behaviour.name}_time_seconds"))
        assert is_close(found["rate"], rate(trips, behaviour))
        assert (found["cap"], found["weight"]) == (float(behaviour.cap), behaviour.weight)
        assert is_close(found["points_lost"], points(trips, behaviour))
        assert found["is_focus_area"] is (share >= HALF) or abs(share - HALF) < EDGE


def is_close(value: float, expected: Fraction) -> bool:
    """Return whether a number is right but for rounding."""
    return abs(Fraction(value) - expected) <= EDGE * max(1, expected)


def make_trips(first: str, last: str, driver_id: str = "d1", seed: int = 1) -> list[dict[str, Any]]:
    """Return trips on some of the dates, up to three a day; on some dates without miles, on some without seconds."""
    rng, trips = random.Random(seed), []
    date, end = (datetime.date.fromisoformat(text) for text in (first, last))
    while date <= end:
        if rng.random() < 0.6:
            trips += [_make_trip(rng, date, hour, driver_id) for hour in rng.sample(range(24), rng.randint(1, 3))]
        date += datetime.timedelta(1)
    return trips


def _make_trip(rng: random.Random, date: datetime.date, hour: int, driver_id: str) -> dict[str, Any]:
    seconds, miles = rng.choice([0, 600, 1234.5, rng.random() * 3600]), rng.choice([0, 3.1, rng.random() * 40])
    events = {
        "phone_use_time_seconds": rng.choice([0, rng.random() * seconds / 4]),
        "overspeeding_time_seconds": rng.choice([0, 60, rng.random() * seconds / 3]),
    }
    counts = {f"{behaviour.name}_count": rng.choice([0, 0, 1, 2]) for behaviour in BEHAVIOURS}
    return make_trip(
        f"{date}T{hour:02}:{rng.randint(0, 59):02}",
        driver_id,
        distance_miles=miles,
        duration_seconds=seconds,
        night_driving_seconds=seconds / 3,
        highway_miles=miles / 4,
        event_summary=make_event_summary(**counts, **events),
        trail_path=[],
    )
