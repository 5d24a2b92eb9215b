"""Windows of dates: days, weeks from Monday to Sunday, calendar months, in the time zone of the fleet."""

import datetime

from dateutil.relativedelta import relativedelta
from mcp.server.mcpserver.exceptions import ToolError

from schemas.param_fields import HISTORY, get_first_date
from schemas.periods import FIRST_AND_LAST_DATE, PeriodName
from scripts.mcp_server.models import Window

ONE_DAY = datetime.timedelta(days=1)


def choose_periods(
    today: datetime.date, period: PeriodName, date: datetime.date | None, history: relativedelta = HISTORY
) -> tuple[Window, Window]:
    """Return the day, week or month that contains a date, by default the last complete one, and the one before.

    The current one ends today. Raises ToolError if the service has no summary of the first one.
    """
    window = get_period(period, date or get_period(period, today).start_date - ONE_DAY)
    first = get_first_date(today, period, history)
    if not first <= window.start_date < today:
        raise ToolError(
            f"Correct the arguments. date: The {period} must begin from {first} to {today - ONE_DAY}, and not on "
            f"{window.start_date}. For what a driver did today, use explain_score with start_date={today}."
        )
    before = get_period(period, window.start_date - ONE_DAY)
    return Window(start_date=window.start_date, end_date=min(window.end_date, today)), before


def get_period(period: PeriodName, date: datetime.date) -> Window:
    """Return the day, week or month that contains a date."""
    first, last = (datetime.date.fromisoformat(bound(str(date))) for bound in FIRST_AND_LAST_DATE[period])
    return Window(start_date=first, end_date=last)


def choose_windows(
    today: datetime.date, start_date: datetime.date | None, end_date: datetime.date | None
) -> tuple[Window, Window]:
    """Return the window between two dates, by default from the Monday of last week to yesterday.

    The second one has the same length, and ends on the day before.
    """
    first = start_date or choose_periods(today, "week", None)[0].start_date
    last = end_date or max(first, today - ONE_DAY)
    before = Window(start_date=first - ONE_DAY - (last - first), end_date=first - ONE_DAY)
    return Window(start_date=first, end_date=last), before
