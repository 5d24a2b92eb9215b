"""GET /driver/{driver_id}/score: its figures, against those worked out from the trips, and against the aggregates."""

import datetime
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import make_trip
from tests.score_reference import between, check_explanation, date_of, make_trips

PATH = "/driver/d1/score"
EXAMPLES = [25, pytest.param(300, marks=pytest.mark.large)]
# What a ScoreExplanation and a summary share.
COMMON = ["fm_score", "fm_grade", "trip_count", "distance_miles", "duration_seconds"]
TODAY = datetime.date(2026, 3, 18)
FIRST = datetime.date(2025, 9, 18)


@st.composite
def windows(draw):
    """Make a window, and a type of interval."""
    start = draw(st.dates(FIRST, TODAY))
    end = draw(st.dates(start, TODAY))
    return {"start_date": str(start), "end_date": str(end), "interval": draw(st.sampled_from(["day", "week", "month"]))}


def interval_of(date, interval):
    """Return what identifies the day, week or month of a date."""
    return {"day": date, "week": datetime.date.fromisoformat(date).isocalendar()[:2], "month": date[:7]}[interval]


def find_driven_intervals(window, trips):
    """Return the first and the last date of each interval of the window in which there are trips."""
    start, end = (datetime.date.fromisoformat(window[name]) for name in ("start_date", "end_date"))
    days = [str(start + datetime.timedelta(number)) for number in range((end - start).days + 1)]
    spans = [list(span) for _, span in itertools.groupby(days, lambda date: interval_of(date, window["interval"]))]
    driven = {date_of(trip) for trip in trips}
    return [(span[0], span[-1]) for span in spans if driven.intersection(span)]


def check_response(response, window, trips):
    """Check all figures of a response against the trips in the window."""
    assert [(part["start_date"], part["end_date"]) for part in response.json["series"]] == find_driven_intervals(
        window, trips
    )
    for part in response.json["series"]:
        check_explanation(part["explanation"], between(trips, part["start_date"], part["end_date"]))
    assert (response.json["total"] is None) is (not trips)
    if trips:
        check_explanation(response.json["total"], trips)


@pytest.mark.parametrize("examples", EXAMPLES)
def test_the_figures_are_those_of_the_trips(service, load, examples):
    trips = make_trips("2025-08-20", "2026-03-18")
    load(*trips)

    @settings(max_examples=examples, derandomize=True, deadline=None)
    @given(windows())
    def check(window):
        in_window = between(trips, window["start_date"], window["end_date"])
        check_response(service.get(PATH, **window), window, in_window)

    check()


@pytest.mark.parametrize(
    ("path", "start", "end"),
    [
        ("daily", "2026-03-10", "2026-03-10"),
        ("weekly", "2026-03-09", "2026-03-15"),
        ("monthly", "2026-02-01", "2026-02-28"),
        ("monthly", "2026-03-01", "2026-03-18"),
    ],
)
def test_a_window_has_the_same_bits_as_the_aggregate_of_the_same_days(service, load, path, start, end):
    trips = [trip for seed in range(3) for trip in make_trips("2026-01-20", "2026-03-18", seed=seed)]
    load(*trips, make_trip("2026-03-10T08:00"))
    body = service.get(PATH, start_date=start, end_date=end, interval="month").json
    aggregate = service.get(f"/driver-aggregate/{path}", start_date=start, driver_id="d1").json
    summary = aggregate["data"][0]["driving_summary"]
    assert body["total"] == body["series"][0]["explanation"]
    assert [body["total"][name] for name in COMMON] == [summary[name] for name in COMMON]
    assert [one["is_focus_area"] for one in body["total"]["behaviours"]] == list(summary["focus_area"].values())
