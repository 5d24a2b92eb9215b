"""Windows of dates: days, weeks from Monday to Sunday, calendar months. All dates are UTC."""

import calendar
import datetime
from typing import Annotated, Self

from pydantic import Field

from schemas.date_params import HISTORY, get_today
from schemas.periods import PeriodName
from scripts.mcp_server.failures import ToolFailure
from scripts.mcp_server.results import Arguments, Data

ONE_DAY = datetime.timedelta(days=1)
SIX_DAYS = datetime.timedelta(days=6)

ISO_DATE = "an ISO date, YYYY-MM-DD, in UTC"
PeriodDate = Annotated[
    datetime.date | None,
    Field(
        description=f"Any date of the period: {ISO_DATE}. The first day of the period has to be in the last six months "
        "and before today: a day is yesterday at the latest, there is no current week on a Monday and no current month "
        "on the 1st. The month in which the six months begin is possible as a whole. By default the last complete "
        "period: yesterday, last week (Monday to Sunday), or last month."
    ),
]
StartDate = Annotated[
    datetime.date | None,
    Field(
        description=f"First date of the window: {ISO_DATE}, in the last six months, today at the latest. By default "
        "the Monday of last week, so give it with an earlier end_date."
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
    is_in_progress: bool = Field(description="Whether it ends today (UTC) or later, so that its numbers may change.")

    @classmethod
    def of(cls, start_date: datetime.date, end_date: datetime.date) -> Self:
        """Return the window from one date to another."""
        return cls(start_date=start_date, end_date=end_date, is_in_progress=end_date >= get_today())

    def __str__(self) -> str:
        dates = str(self.start_date) if self.start_date == self.end_date else f"{self.start_date} to {self.end_date}"
        return f"{dates} (still in progress)" if self.is_in_progress else dates

    def is_available(self, period: PeriodName = "day") -> bool:
        """Whether the service has the window: it starts in the last six months.

        The summary of a month, which may start in the month that contains the first of these dates, is an exception.
        """
        first = get_today() - HISTORY
        return self.start_date >= (first.replace(day=1) if period == "month" else first)

    def end_today(self) -> Self:
        """Return the window without the dates after today, of which the service explains no scores."""
        return self.of(self.start_date, min(self.end_date, get_today()))

    def get_window_before(self) -> Self:
        """Return the window of the same length that ends on the day before this one."""
        first = _shift(self.start_date, self.start_date - self.end_date - ONE_DAY)
        return self.of(first, _shift(self.start_date, -ONE_DAY))


class PeriodArguments(Arguments):
    """The arguments of a tool on a period, `date` being one of its dates."""

    period: PeriodName = Field(default="week", description="A day, a week from Monday to Sunday, or a calendar month.")
    date: PeriodDate = None

    def explain(self, parameter: str, reason: str) -> str:
        """Return why the service rejects a parameter of the API. Its `start_date` is the first day of the period."""
        if parameter != "start_date":
            return super().explain(parameter, reason)
        if self.period == "day":
            return f"date: {reason}"
        first = get_period(self.period, self.date).start_date
        return f"date: The {self.period} that contains it begins on {first}. This first day: {reason}"


def get_period(period: PeriodName, date: datetime.date | None) -> Window:
    """Return the day, week or month that contains a date. By default it is the last complete one."""
    if date is None:
        date = _shift(get_period(period, get_today()).start_date, -ONE_DAY)
    if period == "day":
        return Window.of(date, date)
    if period == "week":
        monday = date - datetime.timedelta(days=date.weekday())
        return Window.of(monday, _shift(monday, SIX_DAYS))
    return Window.of(date.replace(day=1), date.replace(day=calendar.monthrange(date.year, date.month)[1]))


def get_previous_period(period: PeriodName, window: Window) -> Window:
    """Return the day, week or month before a window."""
    return get_period(period, _shift(window.start_date, -ONE_DAY))


def get_window(start_date: datetime.date | None, end_date: datetime.date | None) -> Window:
    """Return the window from one date to another, with the defaults that StartDate and EndDate describe.

    Raises ToolFailure if it ends before it starts.
    """
    first = start_date or get_period("week", None).start_date
    if end_date and end_date < first:
        default = "" if start_date else " start_date is not given, so it is the Monday of last week. Give both dates."
        raise ToolFailure(f"Correct the arguments. end_date: {end_date} is before start_date {first}.{default}")
    return Window.of(first, end_date or max(first, min(_shift(first, SIX_DAYS), get_today())))


def _shift(date: datetime.date, days: datetime.timedelta) -> datetime.date:
    try:
        return date + days
    except OverflowError:
        first, today = get_today() - HISTORY, get_today()
        raise ToolFailure(
            f"Correct the arguments. {date} is out of range. Give a date from {first} to {today}."
        ) from None
