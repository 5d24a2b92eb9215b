"""The parameters that are dates: their range moves with the day."""

import datetime
import functools
from typing import Any, ClassVar

from dateutil.relativedelta import relativedelta
from marshmallow import ValidationError, post_load, validates_schema

from schemas.fields import Date
from schemas.periods import DAY, MONTH, PERIODS, WEEK, PeriodName, first_of_month, monday_of, sunday_of
from schemas.query import TODAY, Params

# How far back from today a start_date may be; and one of sums, for an audit of a year.
HISTORY, LONG_HISTORY = relativedelta(months=6), relativedelta(months=24)
# The examples are dates of last week, which every endpoint accepts in every time zone.
A_WEEK = datetime.timedelta(weeks=1)


@functools.lru_cache(12)
def get_first_date(today: datetime.date, period: PeriodName, history: relativedelta = HISTORY) -> datetime.date:
    """Return the earliest start_date of a period of this type."""
    first: datetime.date = today - history
    # The whole month of the earliest date is allowed.
    return first.replace(day=1) if period == MONTH else first


class StartDate(Date):
    """The first date of a period, from the begin of the `history` to yesterday or, if `today_allowed`, to today.

    The parameter `param` chooses the type of the period, which is `period` without one. For months, the whole month of
    the earliest date is allowed.
    """

    def __init__(
        self,
        description: str,
        *,
        period: PeriodName | None = DAY,
        param: str = "",
        today_allowed: bool = False,
        required: bool = True,
        history: relativedelta = HISTORY,
    ) -> None:
        self.period, self.param, self.today_allowed, self.history = period, param, today_allowed, history
        first_of = first_of_month if period == MONTH else monday_of
        super().__init__(description, example=lambda today: first_of(str(today - A_WEEK)), required=required)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text, today = super()._deserialize(value, attr, data, **kwargs), data[TODAY]
        period = data.get(self.param, self.period)
        # If the type of the period is invalid or missing, only a date that no period may have is an error, too.
        first = get_first_date(today, period if period in PERIODS else MONTH, self.history)
        last = today if self.today_allowed else today - datetime.timedelta(days=1)
        if not first <= datetime.date.fromisoformat(text) <= last:
            raise ValidationError(f"Must be from {first} to {last}.")
        if period == WEEK and text != monday_of(text):
            raise ValidationError(f"Must be a Monday, such as {monday_of(text)}.")
        if period == MONTH and text != first_of_month(text):
            raise ValidationError(f"Must be the first day of a month, such as {first_of_month(text)}.")
        return text


class EndDate(Date):
    """A date up to today. DateRangeParams compares it with `start_date` if that is valid."""

    def __init__(self, description: str) -> None:
        super().__init__(description, example=lambda today: sunday_of(str(today - A_WEEK)), required=False)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if datetime.date.fromisoformat(text) > data[TODAY]:
            raise _make_end_date_error(data[TODAY])
        return text


def _make_end_date_error(today: datetime.date) -> ValidationError:
    return ValidationError(f"Must be from start_date to {today}.", "end_date")


class DateRangeParams(Params):
    """Parameters with a `start_date` and an `end_date`, which may be absent.

    By default, `end_date` is so many `end_days_ago`, but not before `start_date`; or there is no default.
    """

    end_days_ago: ClassVar[int | None] = None

    # Valid dates are compared even if another parameter is invalid, so that `errors` has every invalid parameter.
    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def check_end_date(self, data: dict[str, Any], original: dict[str, Any], **kwargs: Any) -> None:
        """Raise ValidationError if the dates end before they start."""
        if {"start_date", "end_date"} <= data.keys() and data["end_date"] < data["start_date"]:
            raise _make_end_date_error(original[TODAY])

    @post_load(pass_original=True)
    def set_end_date(self, data: dict[str, Any], original: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Set the default of `end_date`."""
        if self.end_days_ago is None:
            return data
        last = str(original[TODAY] - datetime.timedelta(self.end_days_ago))
        return {"end_date": max(last, data["start_date"]), **data}
