"""The types of the parameters: each parses a text of the path or query."""

import contextlib
import datetime
import functools
import math
import re
from typing import Any, ClassVar

from dateutil.relativedelta import relativedelta
from marshmallow import ValidationError, fields

from schemas.driver import split_words
from schemas.fields import NO_CONTROL, Choice, Date, Identifier, List, ShortText, Text, field_metadata
from schemas.fleet import INSURANCE_PERIODS, NO_INSURANCE_PERIOD
from schemas.periods import (
    DAY,
    MONTH,
    PERIODS,
    UTC,
    WEEK,
    PeriodName,
    first_of_month,
    midnight,
    monday_of,
    now_ms,
    sunday_of,
)
from schemas.query import TODAY, repeat_hint
from schemas.trip import EVENT_NAMES, OVERSPEEDING, EventType

MAX_DRIVERS = 20
# As JSON writes a number from 0, so that clients may send what their language makes of a number.
NUMBER = r"(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
# More than the 309 digits of the largest double. Without a limit, a page's links, which repeat the query, could be
# larger than the headers that a proxy accepts.
MAX_NUMBER_LENGTH = 400
# How far back from today a start_date may be; and one of sums, for an audit of a year.
HISTORY, LONG_HISTORY = relativedelta(months=6), relativedelta(months=24)
# The examples are dates of last week, which every endpoint accepts in every time zone.
A_WEEK = datetime.timedelta(weeks=1)
# `at` in place of a time: for tools that send each parameter.
NO_TIME = "none"
REPORT_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"


@functools.lru_cache(12)
def get_first_date(today: datetime.date, period: PeriodName, history: relativedelta = HISTORY) -> datetime.date:
    """Return the earliest start_date of a period of this type."""
    first: datetime.date = today - history
    # The whole month of the earliest date is allowed.
    return first.replace(day=1) if period == MONTH else first


class StartDate(Date):
    """The first date of a period, from the beginning of the `history` to yesterday or, if `today_allowed`, to today.

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
            raise make_end_date_error(data[TODAY])
        return text


def make_end_date_error(today: datetime.date) -> ValidationError:
    """Return the error of a date that is after today, or before `start_date`."""
    return ValidationError(f"Must be from start_date to {today}.", "end_date")


class IntegerParam(fields.Integer):
    """An integer from 1 to `high`, in ASCII digits without sign or leading zero."""

    pattern = re.compile(r"0|[1-9][0-9]*")

    def __init__(self, description: str, *, high: int, default: int) -> None:
        self.high = high
        self.json_schema_keywords = {"minimum": 1, "maximum": high}
        super().__init__(metadata=field_metadata(description, default), load_default=default)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        if not self.pattern.fullmatch(value):
            raise ValidationError(
                f"Must be a whole number from 1 to {self.high}, in digits without sign or leading zero."
            )
        # A number with more digits than `high` is too large. Python refuses to parse one with thousands of digits.
        if len(value) > len(str(self.high)) or not 1 <= int(value) <= self.high:
            raise ValidationError(f"Must be from 1 to {self.high}.")
        return int(value)


class AmountParam(fields.Float):
    """An amount from 0, in ASCII digits without sign or leading zero, as JSON writes a number."""

    pattern = re.compile(NUMBER)
    json_schema_keywords: ClassVar[dict[str, Any]] = {"minimum": 0}

    def __init__(self, description: str, *, example: int = 0, default: int | None = 0) -> None:
        # Equal to the same number in the query, also where the parameters are signed.
        load_default = None if default is None else float(default)
        super().__init__(metadata=field_metadata(description, example), load_default=load_default)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        is_number = len(value) <= MAX_NUMBER_LENGTH and self.pattern.fullmatch(value)
        if not is_number or math.isinf(float(value)):
            raise ValidationError("Must be a number from 0, in digits without sign or leading zero, such as 12.5.")
        return float(value)


class RepeatedParam(List):
    """A parameter that a request has 1 to `most` times. The view gets each value once."""

    def __init__(self, inner: fields.Field[Any], description: str, *, most: int, **kwargs: Any) -> None:
        self.most = most
        self.json_schema_keywords = {"minItems": 1, "maxItems": most}
        super().__init__(inner, description, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if len(value) > self.most:
            raise ValidationError(f"Must be given at most {self.most} times; it is given {len(value)} times.")
        try:
            return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))
        except ValidationError as error:
            # A client that joins identifiers with commas soon exceeds the length of one identifier.
            for index, reasons in error.messages_dict.items():
                if "," in value[index]:
                    reasons.append(repeat_hint(attr))
            raise


class DriverIds(RepeatedParam):
    """The parameter `driver_id`, of which the view gets `driver_ids`."""

    def __init__(self, description: str, **kwargs: Any) -> None:
        inner, example = Identifier(example="demo-01"), ["demo-01"]
        super().__init__(inner, description, most=MAX_DRIVERS, example=example, attribute="driver_ids", **kwargs)


class GroupParam(Identifier):
    """The name of a group."""

    def __init__(self, description: str, example: Any = "North") -> None:
        note = f"{description} They are those who are in it now, for all dates. An unknown group is a NotFound."
        super().__init__(note, example=example, required=False)


class SearchParam(ShortText):
    """The words of a search for drivers (`schemas.driver`), at least one."""

    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": rf"^(?! *$){NO_CONTROL}+$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if not split_words(text):
            raise ValidationError("Must have at least one word: spaces and accents alone match nothing.")
        return text


class InsurancePeriodParam(Choice):
    """The insurance period of trips, as text."""

    def __init__(self, description: str) -> None:
        super().__init__(
            f"{description} `{NO_INSURANCE_PERIOD}`: trips without an insurance period.",
            component="InsurancePeriodChoice",
            choices=INSURANCE_PERIODS,
            example=NO_INSURANCE_PERIOD,
            required=False,
        )


class EventTypeParam(EventType):
    """The number of an event type, in ASCII digits."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        numbers = {str(number): number for number in EVENT_NAMES}
        if value not in numbers:
            raise ValidationError(f"Must be one of {', '.join(numbers)}.")
        return numbers[value]


class EventTypes(RepeatedParam):
    """The parameter `event_type`, of which the view gets `event_types`."""

    def __init__(self, description: str) -> None:
        most, example = len(EVENT_NAMES), [OVERSPEEDING]
        super().__init__(
            EventTypeParam(), description, most=most, example=example, attribute="event_types", required=False
        )

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        # Their order means nothing, so a cursor goes with any.
        return sorted(super()._deserialize(value, attr, data, **kwargs))


class BoxParam(Text):
    """A box of positions as four numbers, `min_lon,min_lat,max_lon,max_lat`, which load as a list."""

    pattern = re.compile(",".join([f"-?{NUMBER}"] * 4))
    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^{pattern.pattern}$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if len(text) > MAX_NUMBER_LENGTH or not self.pattern.fullmatch(text):
            raise ValidationError("Must be four numbers: min_lon,min_lat,max_lon,max_lat, such as -96.2,41,-95.8,41.4.")
        # Minus zero is zero.
        box = west, south, east, north = [float(number) + 0.0 for number in text.split(",")]
        if max(abs(west), abs(east)) > 180:
            raise ValidationError("Longitudes, the first and third number, must be from -180 to 180.")
        if not -90 <= south <= north <= 90:
            raise ValidationError(
                "Latitudes, the second and fourth number, must be from -90 to 90, the lower one first."
            )
        return box


class AtParam(Text):
    """A time in the last six months, in epoch milliseconds, or None."""

    pattern = re.compile("0|[1-9][0-9]{0,15}")
    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^({pattern.pattern}|{NO_TIME})$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text == NO_TIME:
            return None
        first_ms, last_ms = midnight(str(get_first_date(data[TODAY], DAY)), UTC), now_ms()
        if not self.pattern.fullmatch(text) or not first_ms <= int(text) <= last_ms:
            raise ValidationError(f"Must be a time in epoch milliseconds, from {first_ms} to {last_ms}, which is now.")
        return int(text)


class ReportTime(Text):
    """A time in the form `YYYY-MM-DDTHH:MM:SS`, which loads as its date."""

    pattern = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^{pattern.pattern}$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        with contextlib.suppress(ValueError):
            if self.pattern.fullmatch(text):
                return str(datetime.datetime.strptime(text, REPORT_TIME_FORMAT).date())  # noqa: DTZ007
        raise ValidationError("Must be a time such as 2026-03-16T00:00:00.")
