"""The window of a report: a week or month, with its parts and the distance from which a driver is judged."""

import datetime
import itertools
from typing import NamedTuple

from schemas.periods import (
    DAY,
    DAYS_A_WEEK,
    FIRST_AND_LAST_DATE,
    MONTH,
    WEEK,
    LongPeriodName,
    dates_from,
    first_of_month,
)
from schemas.score import MIN_DISTANCE_MILES

# The earliest report dates with a window before them, and one before that, to which the report compares it.
FIRST_REPORT_DATES = {WEEK: "0001-01-15", MONTH: "0001-03-01"}


class ReportWindow(NamedTuple):
    """What identifies a report of a fleet: its date, and whether it covers the week or the month before it.

    A week is the seven days before any date, a month the calendar month before its report date, the first of the next.
    """

    report_date: str
    period: LongPeriodName = WEEK

    @classmethod
    def of(cls, date: str, period: LongPeriodName) -> "ReportWindow":
        """Return the window to which a date leads: that of a month is the same for all dates of the next month."""
        return cls(first_of_month(date) if period == MONTH else date, period)

    def __str__(self) -> str:
        """Return what the report is called: the weekly report of 2026-03-16."""
        return f"{self.period}ly report of {self.report_date}"

    @property
    def name(self) -> str:
        """The report date of a week, or the month, such as 2026-02."""
        return self.dates[0][:7] if self.period == MONTH else self.report_date

    @property
    def dates(self) -> list[str]:
        """The dates that the report covers."""
        end = datetime.date.fromisoformat(self.report_date)
        count = (end - datetime.timedelta(1)).day if self.period == MONTH else DAYS_A_WEEK
        return dates_from(str(end - datetime.timedelta(count)), count)

    @property
    def dates_before(self) -> list[str]:
        """The dates of the window before, to which the report compares it."""
        return ReportWindow(self.dates[0], self.period).dates

    @property
    def part(self) -> str:
        """What a chart has a bar for: day or week."""
        return WEEK if self.period == MONTH else DAY

    @property
    def parts(self) -> list[list[str]]:
        """The dates of each part, together all dates. The first and last week of a month may be cut."""
        return [list(dates) for _, dates in itertools.groupby(self.dates, FIRST_AND_LAST_DATE[self.part][0])]

    @property
    def min_distance_miles(self) -> int:
        """How many miles a driver has to have driven to be judged."""
        return MIN_DISTANCE_MILES[self.period]
