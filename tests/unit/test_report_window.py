"""The window of a report: its dates, those before it, and its parts."""

import itertools

import pytest

from schemas.periods import MONTH, monday_of
from schemas.report import ReportWindow


def test_a_week_is_the_seven_days_before_any_date_and_its_parts_are_days():
    window = ReportWindow.of("2026-03-04", "week")
    assert (window.dates[0], window.dates[-1], len(window.dates)) == ("2026-02-25", "2026-03-03", 7)
    assert (window.dates_before[0], window.dates_before[-1]) == ("2026-02-18", "2026-02-24")
    assert window.parts == [[date] for date in window.dates]


@pytest.mark.parametrize(
    ("date", "first", "last", "days", "weeks"),
    [
        ("2026-03-31", "2026-02-01", "2026-02-28", 28, [1, 7, 7, 7, 6]),
        ("2027-03-01", "2027-02-01", "2027-02-28", 28, [7, 7, 7, 7]),
        ("2028-03-15", "2028-02-01", "2028-02-29", 29, [6, 7, 7, 7, 2]),
        ("2026-05-01", "2026-04-01", "2026-04-30", 30, [5, 7, 7, 7, 4]),
        ("2026-01-31", "2025-12-01", "2025-12-31", 31, [7, 7, 7, 7, 3]),
        ("2026-04-02", "2026-03-01", "2026-03-31", 31, [1, 7, 7, 7, 7, 2]),
    ],
)
def test_a_month_is_the_one_before_the_month_of_a_date_and_its_parts_are_weeks(date, first, last, days, weeks):
    window = ReportWindow.of(date, MONTH)
    assert (window.dates[0], window.dates[-1], len(window.dates)) == (first, last, days)
    assert [len(part) for part in window.parts] == weeks
    assert list(itertools.chain(*window.parts)) == window.dates
    assert [len({*map(monday_of, part)}) for part in window.parts] == [1] * len(weeks)
    assert window.dates_before == ReportWindow.of(first, MONTH).dates
