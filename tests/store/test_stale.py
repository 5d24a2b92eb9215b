"""Days whose trips are being written, or were when a command was killed."""

import pytest
from scripts.derive import Day, derive_days, mark_stale, stale_days, writing
from scripts.imports import load_trips

from app.store import summaries
from schemas.trip import ImportedTrip
from scripts import imports
from tests.factories import make_trip

DAYS = {Day("d1", "2026-03-10"), Day("d1", "2026-03-11")}


@pytest.fixture
def moved(mongod, monkeypatch):
    """A trip that moved from the 10th to the 11th, by a command that was killed before it had derived the days."""
    lines = [make_trip("2026-03-10T08:00"), make_trip("2026-03-10T09:00", trip_id="moves")]
    load_trips(mongod, "f1", [ImportedTrip().load(line) for line in lines])
    monkeypatch.setattr(imports, "derive_days", lambda *args: None)
    load_trips(mongod, "f1", [ImportedTrip().load(make_trip("2026-03-11T09:00", trip_id="moves"))])
    return mongod


def counts(db):
    """Return what is served: the trips of the two days, and of the days that the week breaks down to."""
    daily = [summaries.find_daily(db, "f1", ["d1"], f"2026-03-{day}")["d1"]["trip_count"] for day in (10, 11)]
    week = summaries.find_weekly(db, "f1", ["d1"], "2026-03-09")["d1"]
    return daily, [day["trip_count"] for day in week["daily_summary_breakdown"]], week["trip_count"]


def test_a_stale_day_is_served_from_its_trips(moved):
    assert stale_days(moved, "f1") == DAYS
    assert counts(moved) == ([1, 1], [1, 1], 2)


def test_what_is_served_of_stale_days_is_what_is_stored_afterwards(moved):
    before = summaries.find_weekly(moved, "f1", ["d1"], "2026-03-09")
    derive_days(moved, "f1", DAYS)
    assert stale_days(moved, "f1") == set()
    assert summaries.find_weekly(moved, "f1", ["d1"], "2026-03-09") == before


def test_a_stale_day_that_lost_its_trips_is_not_served(moved):
    moved.trips.delete_many({"day.date": "2026-03-10"})
    assert summaries.find_daily(moved, "f1", ["d1"], "2026-03-10") == {}
    assert summaries.find_weekly(moved, "f1", ["d1"], "2026-03-09")["d1"]["trip_count"] == 1


def test_the_next_writer_begins_with_nothing_stale(moved):
    mark_stale(moved, "f2", {Day("d1", "2026-03-10")})
    with writing(moved, "f1"):
        assert stale_days(moved, "f1") == set()
        assert stale_days(moved, "f2")
    assert counts(moved) == ([1, 1], [1, 1], 2)
