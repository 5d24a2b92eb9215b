"""The parameters of the endpoints. A schema parses the text of path and query into the arguments of a view."""

import contextlib
import datetime
import math
import re
from typing import Any, ClassVar

from marshmallow import ValidationError, fields, missing, post_load, validates_schema
from marshmallow.validate import OneOf

from schemas.cursor import START, CursorParam
from schemas.date_params import LONG_HISTORY, DateRangeParams, EndDate, StartDate
from schemas.driver import split_words
from schemas.fields import NO_CONTROL, Choice, Identifier, List, ShortText, Text, field_metadata
from schemas.fleet import INSURANCE_PERIODS, NO_INSURANCE_PERIOD
from schemas.periods import LONG_PERIODS, MONTH, PERIODS, WEEK, monday_of
from schemas.query import TODAY, Params, repeat_hint
from schemas.report import ReportWindow
from schemas.score import COUNTED_BEHAVIOURS

MAX_LIMIT = 100
DEFAULT_LIMIT = 50
MAX_PAGE = 1_000_000_000
MAX_DRIVERS = 20
# The identifiers that select trips in detail form.
FILTER_PARAMS = ("trip_id", "tracking_id")
PAGE = "Number of the page, from 1."
REPORT_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S"
# The orders of a ranking.
WORST, BEST = "worst", "best"
# More than the 309 digits of the largest double. Without a limit, a page's links, which repeat the query, could be
# larger than the headers that a proxy accepts.
MAX_NUMBER_LENGTH = 400
# As JSON writes a number from 0, so that clients may send what their language makes of a number.
NUMBER = r"(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
# A window of drivers adds up their days: those of six months.
MAX_WINDOW_DAYS = 184
MAX_CHANGES = 1_000
DEFAULT_CHANGES = 100


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


class AmountParam(fields.Float):
    """An amount from 0, in ASCII digits without sign or leading zero, as JSON writes a number."""

    pattern = re.compile(NUMBER)
    json_schema_keywords: ClassVar[dict[str, Any]] = {"minimum": 0}

    def __init__(self, description: str, *, example: int = 0, default: int | None = 0) -> None:
        super().__init__(metadata=field_metadata(description, example), load_default=default)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        is_number = len(value) <= MAX_NUMBER_LENGTH and self.pattern.fullmatch(value)
        if not is_number or math.isinf(float(value)):
            raise ValidationError("Must be a number from 0, in digits without sign or leading zero, such as 12.5.")
        return float(value)


class SearchParam(ShortText):
    """The words of a search for drivers (`schemas.driver`), at least one."""

    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": rf"^(?! *$){NO_CONTROL}+$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if not split_words(text):
            raise ValidationError("Must have at least one word: spaces and accents alone match nothing.")
        return text


INTERVAL = Choice(
    "The intervals of `series`: days, weeks from Monday to Sunday, or calendar months.",
    component="Interval",
    choices=PERIODS,
    example=WEEK,
    load_default=WEEK,
)


class PageParams(Params):
    """The parameters of every list that has pages of any size."""

    limit = IntegerParam("Maximum number of records on a page.", high=MAX_LIMIT, default=DEFAULT_LIMIT)
    page = IntegerParam(PAGE, high=MAX_PAGE, default=1)


class DriversParams(PageParams):
    """The parameters of the list of drivers."""

    search = SearchParam(
        "List only drivers who match all of these words, which spaces separate. A word matches if the first name, last "
        "name, alias, e-mail address or `driver_id` contains it. Case, accents, strokes and the kind of apostrophe or "
        "hyphen do not matter: `lukasz` finds `Łukasz`.",
        example="amina yusuf",
        required=False,
    )
    group = GroupParam("List only the drivers of this group.")


class DriverTripsParams(PageParams, DateRangeParams):
    """The parameters of the list of a driver's trips."""

    driver_id = Identifier("Identifier of the driver.", example="demo-01")
    start_date = StartDate(
        "List trips that started on or after this date, `YYYY-MM-DD`: from six months ago to today.", today_allowed=True
    )
    end_date = EndDate(
        "List trips that started on or before this date, `YYYY-MM-DD`: from `start_date` to today. Without it, the "
        "list has all trips from `start_date` on."
    )


class TripParams(Params):
    """The parameters of trips in detail form, which an identifier selects."""

    filter_param = Text(
        "Name of the identifier. The trips of one job, such as a ride, may share a `tracking_id`.",
        example="trip_id",
        validate=OneOf(FILTER_PARAMS),
    )
    filter_value = Identifier("The identifier.", example="demo-01-54-1")
    page = IntegerParam(PAGE, high=MAX_PAGE, default=1)


class _AggregateParams(Params):
    driver_id = DriverIds(f"Identifier of a driver. Give 1 to {MAX_DRIVERS}; the response has a repeated driver once.")


class DailyParams(_AggregateParams):
    """The parameters of Daily summaries: a date before today."""

    start_date = StartDate("The date, `YYYY-MM-DD`: from six months ago to yesterday.")


class WeeklyParams(_AggregateParams):
    """The parameters of Weekly summaries: a Monday before today."""

    start_date = StartDate(
        "The Monday on which the week begins, `YYYY-MM-DD`: from six months ago to yesterday.", period=WEEK
    )


class MonthlyParams(_AggregateParams):
    """The parameters of Monthly summaries: the first day of a month, before today."""

    start_date = StartDate(
        "The first day of the month, `YYYY-MM-DD`: from the month of the date six months ago to yesterday.",
        period=MONTH,
    )


class ScoreParams(DateRangeParams):
    """The parameters of the explanation of a driver's score. The view always gets an `end_date`."""

    end_days_ago = 1
    start_date = StartDate(
        "The first date of the window, `YYYY-MM-DD`: from six months ago to today.", today_allowed=True
    )
    end_date = EndDate(
        "The last date of the window, `YYYY-MM-DD`: from `start_date` to today. By default yesterday, or "
        "`start_date` if that is today."
    )
    driver_id = Identifier("Identifier of the driver.", example="demo-01")
    interval = INTERVAL


class FleetAggregateParams(DateRangeParams):
    """The parameters of the fleet as a whole over time. The view always gets an `end_date`."""

    end_days_ago = 0
    group = GroupParam("Sum up only the drivers of this group.")
    insurance_period = InsurancePeriodParam("Sum up only trips of this insurance period.")
    interval = INTERVAL
    start_date = StartDate(
        "The first date of the first interval, `YYYY-MM-DD`, from 24 months ago to today: for weeks a Monday, for "
        "months the first day of a month, from that of the date 24 months ago on.",
        param="interval",
        period=WEEK,
        today_allowed=True,
        history=LONG_HISTORY,
    )
    end_date = EndDate(
        "A date, `YYYY-MM-DD`, from `start_date` to today: the response has the intervals that begin until then. "
        "By default today."
    )


class DriversOrGroupParams(Params):
    """The parameters that choose drivers: either each by name, or by their group."""

    # Without an example: tools send those of all parameters, and this one does not go with `driver_id`.
    group = GroupParam("Only the drivers of this group, in place of `driver_id`.", example=missing)

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def check_group(self, data: dict[str, Any], original: dict[str, Any], **kwargs: Any) -> None:
        """Raise ValidationError if both a group and drivers are given."""
        if {"group", "driver_id"} <= original.keys():
            raise ValidationError("Must not be given together with driver_id.", "group")


class WindowAggregateParams(DateRangeParams, PageParams, DriversOrGroupParams):
    """The parameters of the summaries of a window: of some drivers, or of all. The view always gets an `end_date`."""

    end_days_ago = 1
    start_date = StartDate(
        "The first date of the window, `YYYY-MM-DD`: from 24 months ago to today.",
        today_allowed=True,
        history=LONG_HISTORY,
    )
    end_date = EndDate(
        "The last date of the window, `YYYY-MM-DD`: from `start_date` to today, and at most "
        f"{MAX_WINDOW_DAYS} days after `start_date`. By default yesterday, or `start_date` if that is today."
    )
    insurance_period = InsurancePeriodParam("Sum up only trips of this insurance period.")
    driver_id = DriverIds(
        f"Identifier of a driver. Give up to {MAX_DRIVERS}; the response has a repeated driver once. Without it, the "
        "response has all drivers of the fleet.",
        required=False,
    )

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def check_length(self, data: dict[str, Any], original: dict[str, Any], **kwargs: Any) -> None:
        """Raise ValidationError if the window is too long."""
        if "start_date" not in data or "end_date" in original.keys() - data.keys():
            return
        last = data.get("end_date") or str(original[TODAY] - datetime.timedelta(1))
        latest = str(datetime.date.fromisoformat(data["start_date"]) + datetime.timedelta(MAX_WINDOW_DAYS))
        if last > latest:
            raise ValidationError(f"Must be at most {MAX_WINDOW_DAYS} days after start_date: {latest}.", "end_date")


class RankingParams(PageParams):
    """The parameters of a ranking."""

    group = GroupParam("Rank only the drivers of this group.")
    period = Choice(
        "Rank the drivers of a `week` or of a `month`.", component="WeekOrMonth", choices=LONG_PERIODS, example=WEEK
    )
    start_date = StartDate(
        "The first date of the week or month, `YYYY-MM-DD`. For a week, a Monday from six months ago to yesterday. "
        "For a month, its first day: from the month of the date six months ago to yesterday.",
        param="period",
        period=None,
    )
    behaviour = Choice(
        "Rank by the points that this behaviour costs, in place of the score. `worst`: the most points first. Among "
        "drivers with the same points, the lower score comes first, or with `best` the higher score.",
        component="BehaviourName",
        choices=COUNTED_BEHAVIOURS,
        example="overspeeding",
        load_default=None,
    )
    order = Text(
        "`worst`: the lowest score first. `best`: the highest score first.",
        example=WORST,
        load_default=WORST,
        validate=OneOf((WORST, BEST)),
    )
    min_distance_miles = AmountParam("Leave out drivers with a shorter distance in the week or month, in miles.")


class ChangesParams(Params):
    """The parameters of a page of the change feed."""

    cursor = CursorParam(
        "The `cursor` of the last page. Without it, or with `start`, the feed starts with all trips that are visible "
        "now; start with an empty copy then.",
        example=START,
        required=False,
    )
    limit = IntegerParam("Maximum number of changes on a page.", high=MAX_CHANGES, default=DEFAULT_CHANGES)


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


class ReportParams(Params):
    """The parameters of a report. The view gets its `window`."""

    report_time = ReportTime(
        "A time, `YYYY-MM-DDTHH:MM:SS`. Its date selects the report, which covers the seven days before that date, or "
        "the calendar month before the month of that date; the time of day has no effect.",
        example=lambda today: f"{monday_of(str(today))}T00:00:00",
        attribute="date",
    )
    period = Choice(
        "Whether the report covers a `week` or a `month`.",
        component="WeekOrMonth",
        choices=LONG_PERIODS,
        example=WEEK,
        load_default=WEEK,
    )

    @post_load
    def make_window(self, data: dict[str, Any], **kwargs: Any) -> dict[str, ReportWindow]:
        """Return the window to which the date leads."""
        return {"window": ReportWindow.of(data["date"], data["period"])}


class LinkParams(Params):
    """The parameter of a file of a report."""

    link = Text("Last part of the link.", example="WyJhY21lIl0.c2lnbmVk")


class NoParams(Params):
    """The parameters of an endpoint without parameters."""
