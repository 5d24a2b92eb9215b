"""The parameters that are dates: their range moves with the day."""

import datetime
import functools
from typing import Any

from dateutil.relativedelta import relativedelta
from marshmallow import ValidationError

from schemas.fields import Date, Messages
from schemas.periods import DAY, MONTH, WEEK, PeriodName

REQUIRED: Messages = {"required": "Must be given."}
# How far back from today a start_date may be.
HISTORY = relativedelta(months=6)


class StartDate(Date):
    """A UTC date in the last six months, up to today or, unless `today_allowed`, up to yesterday.

    It is the first day of a `period`. The month that contains the first of these dates counts as within them, whole.
    """

    def __init__(self, description: str, *, today_allowed: bool, period: PeriodName = DAY) -> None:
        self.today_allowed, self.period = today_allowed, period
        super().__init__(description, required=True, error_messages=REQUIRED)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        check_start_date(text, self.period, today_allowed=self.today_allowed)
        return text


def check_start_date(text: str, period: PeriodName, *, today_allowed: bool = False) -> None:
    """Raise ValidationError if a date that exists may not be the start_date of a period of this type."""
    date, today = datetime.date.fromisoformat(text), get_today()
    first = _get_first_date(today).replace(day=1) if period == MONTH else _get_first_date(today)
    last = today if today_allowed else today - datetime.timedelta(days=1)
    if not first <= date <= last:
        raise ValidationError(f"Must be from {first} to {last}.")
    monday = date - datetime.timedelta(days=date.weekday())
    if period == WEEK and date != monday:
        raise ValidationError(f"Must be a Monday, such as {monday}.")
    if period == MONTH and date.day != 1:
        raise ValidationError(f"Must be the first day of a month, such as {date.replace(day=1)}.")


class EndDate(Date):
    """A UTC date in the last six months, up to today. ScoreParams compares it with `start_date`."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not _get_first_date(get_today()) <= datetime.date.fromisoformat(text) <= get_today():
            raise make_end_date_error()
        return text


def make_end_date_error() -> ValidationError:
    """Return the error of an end_date that is not in the window that start_date opens."""
    return ValidationError(f"Must be from start_date to {get_today()}.", "end_date")


def get_today() -> datetime.date:
    """Return the UTC date."""
    return datetime.datetime.now(datetime.UTC).date()


@functools.lru_cache(2)
def _get_first_date(today: datetime.date) -> datetime.date:
    return today - HISTORY
