"""Reports: the window of a report, the links to it, the rows of its CSV file, and the units of its page."""

import datetime
import itertools
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from dateutil.relativedelta import relativedelta
from marshmallow import Schema

from schemas.driver import Driver
from schemas.fields import EpochMs, Text
from schemas.periods import DAY, FIRST_AND_LAST_DATE, MONTH, WEEK, LongPeriodName, dates_from, first_of_month
from schemas.score import COUNTED_BEHAVIOURS, MIN_DISTANCE_MILES, compute_points_lost
from schemas.summary import FOCUS_FLAGS, TOTALS

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
        start = end - (relativedelta(months=1) if self.period == MONTH else relativedelta(weeks=1))
        return dates_from(str(start), (end - start).days)

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


class ReportLinks(Schema):
    """Links to a report. They need no key, and expire."""

    report_link = Text(
        "URL of the report as a CSV file with one row for each driver.",
        example="https://api.example.com/api/v1/report/WyJhY21lIl0.c2lnbmVk",
    )
    report_page = Text(
        "URL of the report as a web page.", example="https://api.example.com/api/v1/report/WyJwYWdlIl0.c2lnbmVk"
    )
    expires_at = EpochMs("Time at which both links expire, in epoch milliseconds.", example=1_773_044_100_000)


SECONDS_PER_HOUR = 3600
# The decimals of an amount, by the last word of its name. A sum of doubles has more, which mean nothing.
UNIT_DECIMALS = {"miles": 2, "seconds": 1, "hours": 2, "lost": 2}
# For each total in seconds the column with the same in hours.
HOURS = {name: f"{name.removesuffix('seconds')}hours" for name in TOTALS if name.endswith("_seconds")}
# A row has the fields of the Driver, the groups, totals and the focus area of the summary, a rate and the points lost
# for each behaviour, and the score.
HEADER = (
    *Driver().fields,
    "groups",
    *(column for name in TOTALS for column in (name, HOURS.get(name)) if column),
    *FOCUS_FLAGS.values(),
    *(f"{name}_per_100_miles" for name in COUNTED_BEHAVIOURS),
    *(f"{name}_points_lost" for name in COUNTED_BEHAVIOURS),
    "fm_score",
    "fm_grade",
)


def rate(count: float, base: float) -> float:
    """Return 100 × count ÷ base: a percentage, or a rate per 100 miles.

    The result is at most the largest double. It is 0 if `base` is 0.
    """
    return min(100 * count / base, sys.float_info.max) if base > 0 else 0.0


class Units(NamedTuple):
    """A unit of distance: its name in a sentence and at the head of a column, and how many of it are a mile."""

    name: str
    heading: str
    per_mile: float

    def distance(self, miles: float) -> float:
        """Return a distance in miles in this unit, at most the largest double."""
        return min(miles * self.per_mile, sys.float_info.max)

    def rate(self, count: float, miles: float) -> float:
        """Return how often something happened per 100 of this unit."""
        return rate(count, self.distance(miles))


# The units in which a report page may show distances. The CSV file has miles, as the API.
MILES = "miles"
UNITS = {MILES: Units("miles", "Miles", 1.0), "km": Units("km", "km", 1.609344)}


def row(driver: dict[str, Any], groups: Sequence[str], summary: dict[str, Any] | None) -> list[Any]:
    """Return the row of a driver: the values in the order of HEADER, amounts rounded to their UNIT_DECIMALS.

    Without a summary, because the driver did not drive, the values after the groups are None.
    """
    values: dict[str, Any] = {**dict.fromkeys(HEADER), **driver, "groups": "; ".join(groups) or None}
    if summary is not None:
        events, miles = summary["events_summary"], summary["distance_miles"]
        values |= {**summary, **events, **summary["focus_area"]}
        values |= {hours: values[seconds] / SECONDS_PER_HOUR for seconds, hours in HOURS.items()}
        values |= {f"{name}_per_100_miles": rate(events[f"{name}_count"], miles) for name in COUNTED_BEHAVIOURS}
        values |= {f"{name}_points_lost": points for name, points in compute_points_lost(summary).items()}
    return [_round(name, values[name]) for name in HEADER]


def _round(name: str, value: Any) -> Any:
    decimals = UNIT_DECIMALS.get(name.rpartition("_")[2])
    return value if value is None or decimals is None else round(value, decimals)
