"""Windows of dates: days, weeks from Monday to Sunday, calendar months. All dates are UTC."""

import calendar
import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from schemas.date_params import HISTORY, get_today
from scripts.mcp_server.results import Data

ONE_DAY = datetime.timedelta(days=1)
SIX_DAYS = datetime.timedelta(days=6)

Period = Literal["day", "week", "month"]
LongPeriod = Literal["week", "month"]
ISO_DATE = "an ISO date, YYYY-MM-DD, in UTC"
PeriodDate = Annotated[
    datetime.date | None,
    Field(
        description=f"Any date of the period: {ISO_DATE}, in the last six months. By default the last complete period: "
        "yesterday, last week (Monday to Sunday), or last month."
    ),
]
StartDate = Annotated[
    datetime.date | None,
    Field(
        description=f"First date of the window: {ISO_DATE}, in the last six months. By default the Monday of last week."
    ),
]
EndDate = Annotated[
    datetime.date | None,
    Field(
        description=f"Last date of the window: {ISO_DATE}, today at the latest. By default six days after start_date, "
        "or today if that is earlier."
    ),
]


class Window(Data):
    """The dates from `start_date` to `end_date`."""

    start_date: datetime.date = Field(description="First date, UTC.")
    end_date: datetime.date = Field(description="Last date, UTC.")

    @classmethod
    def of(cls, start_date: datetime.date, end_date: datetime.date) -> Self:
        """Return the window from one date to another."""
        return cls(start_date=start_date, end_date=end_date)

    def __str__(self) -> str:
        dates = str(self.start_date) if self.start_date == self.end_date else f"{self.start_date} to {self.end_date}"
        return f"{dates} (still in progress)" if self.end_date >= get_today() else dates

    def is_served(self, period: Period = "day") -> bool:
        """Whether the service has the window: it starts in the last six months.

        The summary of a month, which may start in the month that contains the first of these dates, is an exception.
        """
        first = get_today() - HISTORY
        return self.start_date >= (first.replace(day=1) if period == "month" else first)

    def end_today(self) -> Self:
        """Return the window without the dates after today, of which the service explains no scores."""
        return self.of(self.start_date, min(self.end_date, get_today()))

    def find_before(self) -> Self:
        """Return the window of the same length that ends on the day before this one."""
        return self.of(self.start_date - (self.end_date - self.start_date) - ONE_DAY, self.start_date - ONE_DAY)


def get_period(period: Period, date: datetime.date | None) -> Window:
    """Return the day, week or month that contains a date. By default it is the last complete one."""
    if date is None:
        date = get_period(period, get_today()).start_date - ONE_DAY
    if period == "day":
        return Window.of(date, date)
    if period == "week":
        monday = date - datetime.timedelta(days=date.weekday())
        return Window.of(monday, monday + SIX_DAYS)
    return Window.of(date.replace(day=1), date.replace(day=calendar.monthrange(date.year, date.month)[1]))


def get_previous_period(period: Period, window: Window) -> Window:
    """Return the day, week or month before a window."""
    return get_period(period, window.start_date - ONE_DAY)


def get_window(start_date: datetime.date | None, end_date: datetime.date | None) -> Window:
    """Return the window from one date to another, with the defaults that StartDate and EndDate describe."""
    first = start_date or get_period("week", None).start_date
    return Window.of(first, end_date or max(first, min(first + SIX_DAYS, get_today())))
