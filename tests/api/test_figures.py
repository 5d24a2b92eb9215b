"""The figures of any window, in the score of a driver and in the summaries of all drivers, against the trips."""

import datetime
import itertools
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.test_aggregates import SUMMARY_FIELDS
from tests.api.test_window import PATH, WEEK, find_pages
from tests.factories import make_driver
from tests.score_reference import add_up, between, check_explanation, date_of, is_close, make_trips

EXAMPLES = [25, pytest.param(300, marks=pytest.mark.large)]
# What a ScoreExplanation and a summary share.
COMMON = SUMMARY_FIELDS[:5]
TODAY, FIRST = datetime.date(2026, 3, 18), datetime.date(2025, 9, 18)


@st.composite
def windows(draw):
    start = draw(st.dates(FIRST, TODAY))
    return {"start_date": str(start), "end_date": str(draw(st.dates(start, TODAY)))}


def interval_of(date, interval):
    """Return what identifies the day, week or month of a date."""
    return {"day": date, "week": datetime.date.fromisoformat(date).isocalendar()[:2], "month": date[:7]}[interval]


def find_driven_intervals(window, interval, trips):
    """Return the first and the last date of each interval of the window in which there are trips."""
    start, end = map(datetime.date.fromisoformat, window.values())
    days = [str(start + datetime.timedelta(number)) for number in range((end - start).days + 1)]
    spans = [list(span) for _, span in itertools.groupby(days, lambda date: interval_of(date, interval))]
    driven = {date_of(trip) for trip in trips}
    return [(span[0], span[-1]) for span in spans if driven.intersection(span)]


def check_score(score, trips, intervals):
    """Check all figures of a score against the trips in the window."""
    assert [(part["start_date"], part["end_date"]) for part in score["series"]] == intervals
    for part in score["series"]:
        check_explanation(part["explanation"], between(trips, part["start_date"], part["end_date"]))
        assert len(intervals) > 1 or part["explanation"] == score["total"]
    assert (score["total"] is None) is (not trips)
    if trips:
        check_explanation(score["total"], trips)


def check_summary(summary, trips, total):
    """Check a summary against the trips in the window, and against the total of the score, which has the same bits."""
    assert [summary[name] for name in COMMON] == [total[name] for name in COMMON]
    assert list(summary["focus_area"].values()) == [one["is_focus_area"] for one in total["behaviours"]]
    for name, value in summary["events_summary"].items():
        assert is_close(value, add_up(trips, "event_summary", name))


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_figures_of_any_window_are_those_of_the_trips(service, load, examples):
    trips = {f"d{n}": make_trips("2025-08-20", "2026-03-18", f"d{n}", seed=n) for n in (1, 2, 3)} | {"idle": []}
    load(*itertools.chain(*trips.values()), drivers=[make_driver("idle")])

    @settings(max_examples=examples, derandomize=True, deadline=None)
    @given(windows(), st.sampled_from([1, 2, 3, 100]), st.sampled_from(["day", "week", "month"]))
    def check(window, limit, interval):
        data = find_pages(service, **window, limit=limit)
        assert [element["driver_info"]["driver_id"] for element in data] == list(trips)
        for driver_id, element in zip(trips, data, strict=True):
            in_window = between(trips[driver_id], *window.values())
            score = service.get(f"/driver/{driver_id}/score", **window, interval=interval).json
            check_score(score, in_window, find_driven_intervals(window, interval, in_window))
            assert ("driving_summary" in element) is bool(in_window)
            if in_window:
                check_summary(element["driving_summary"], in_window, score["total"])

    check()


@pytest.mark.parametrize(
    ("path", "window"),
    [
        ("daily", ["2026-03-11", "2026-03-11"]),
        ("daily", ["2026-02-28", "2026-02-28"]),
        ("weekly", ["2026-02-23", "2026-03-01"]),
        ("weekly", ["2025-12-29", "2026-01-04"]),
        ("weekly", ["2026-03-16", "2026-03-18"]),
        ("monthly", ["2026-01-01", "2026-01-31"]),
        ("monthly", ["2026-03-01", "2026-03-18"]),
    ],
)
def test_a_whole_day_week_or_month_has_the_bits_of_its_summary(service, load, path, window):
    rng = random.Random(path)
    for seed in range(3):
        trips = make_trips("2025-12-20", "2026-03-18", f"d{seed}", seed=seed)
        # Sums of such numbers depend on their order and on how rounding is compensated.
        load(*({**trip, "highway_miles": rng.choice([0, 7, 1e16, 1.0, 1e-9, rng.random()])} for trip in trips))
    window = dict(zip(WEEK, window, strict=True))
    ids = {"driver_id": ["d2", "d0", "d1"]}
    whole = service.get(f"/driver-aggregate/{path}", start_date=window["start_date"], **ids).json["data"]
    for element in whole:
        summary = element.get("driving_summary", {})
        for name in summary.keys() - {*SUMMARY_FIELDS}:
            del summary[name]
    assert json.dumps(service.get(PATH, **window, **ids).json["data"]) == json.dumps(whole)
