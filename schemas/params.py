"""The parameters of the endpoints. A schema parses the text of path and query into the arguments of a view."""

import datetime
from typing import Any, ClassVar

from marshmallow import ValidationError, missing, post_load, validates_schema

from schemas.cursor import START, CursorParam, ListCursorParam, parse_list_cursor
from schemas.fields import Choice, Identifier, Text, WeekOrMonth
from schemas.param_fields import (
    LONG_HISTORY,
    MAX_DRIVERS,
    NO_TIME,
    AmountParam,
    AtParam,
    BoxParam,
    DriverIds,
    EndDate,
    EventTypes,
    GroupParam,
    InsurancePeriodParam,
    IntegerParam,
    ReportTime,
    SearchParam,
    StartDate,
    make_end_date_error,
)
from schemas.periods import MONTH, PERIODS, WEEK, dates_between, monday_of
from schemas.query import TODAY, Params
from schemas.report import ReportWindow
from schemas.score import COUNTED_BEHAVIOURS

MAX_LIMIT, DEFAULT_LIMIT = 100, 50
MAX_PAGE = 1_000_000_000
MAX_EVENTS_A_PAGE, DEFAULT_EVENTS = 1_000, 100
MAX_CHANGES, DEFAULT_CHANGES = 1_000, 100
# A window of drivers adds up their days: those of six months.
MAX_WINDOW_DAYS = 184
MAX_WORST_DAYS = 31
# The identifiers that select trips in detail form.
FILTER_PARAMS = ("trip_id", "tracking_id")
# The orders of a ranking and of lists, and the forms of trips.
WORST, BEST = "worst", "best"
OLDEST, NEWEST = "oldest", "newest"
SUMMARY, DETAIL = "summary", "detail"

PAGE = IntegerParam("Number of the page, from 1.", high=MAX_PAGE, default=1)
INTERVAL = Choice(
    "The intervals of `series`: days, weeks from Monday to Sunday, or calendar months.",
    component="Interval",
    choices=PERIODS,
    load_default=WEEK,
)
WINDOW_START = StartDate(
    "The first date of the window, `YYYY-MM-DD`: from six months ago to today.", today_allowed=True
)


class PageParams(Params):
    """The parameters of every list that has pages of any size."""

    limit = IntegerParam("Maximum number of records on a page.", high=MAX_LIMIT, default=DEFAULT_LIMIT)
    page = PAGE


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
            raise make_end_date_error(original[TODAY])

    @post_load(pass_original=True)
    def set_end_date(self, data: dict[str, Any], original: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Set the default of `end_date`."""
        if self.end_days_ago is None:
            return data
        last = str(original[TODAY] - datetime.timedelta(self.end_days_ago))
        return {"end_date": max(last, data["start_date"]), **data}


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

    filter_param = Choice(
        "Name of the identifier. The trips of one job, such as a ride, may share a `tracking_id`.",
        choices=FILTER_PARAMS,
        example="trip_id",
    )
    filter_value = Identifier("The identifier.", example="demo-01-54-1")
    page = PAGE


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
    start_date = WINDOW_START
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
    period = WeekOrMonth("Rank the drivers of a `week` or of a `month`.")
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
    order = Choice(
        "`worst`: the lowest score first. `best`: the highest score first.", choices=(WORST, BEST), load_default=WORST
    )
    min_distance_miles = AmountParam("Leave out drivers with a shorter distance in the week or month, in miles.")


class ListParams(DateRangeParams, DriversOrGroupParams):
    """The parameters of every list by cursor."""

    start_date = WINDOW_START
    end_date = EndDate(
        "The last date of the window, `YYYY-MM-DD`: from `start_date` to today. Without it, the window has no end."
    )
    driver_id = DriverIds(
        f"List only what is of this driver. Give up to {MAX_DRIVERS}. A driver not in the fleet is a NotFound.",
        required=False,
    )
    cursor = ListCursorParam(
        "The `next_cursor` of the last page. Send it with the parameters of the first page, of which only `limit` may "
        "differ. Without it, or with `start`, the list starts from its beginning.",
        example=START,
        load_default=None,
    )

    def choose_today(self, declared: dict[str, list[str]], today: datetime.date) -> datetime.date:
        """Return the day on which the list began, if that was yesterday: so a client can read on after midnight.

        The store verifies the cursor, which has the day.
        """
        cursor = parse_list_cursor(declared.get("cursor", [""])[0])
        return cursor.day if cursor and today - cursor.day == datetime.timedelta(1) else today


class TripsParams(ListParams):
    """The parameters of the list of a fleet's trips."""

    start_date = StartDate(
        "The first date of the window, `YYYY-MM-DD`: from six months ago to today. Either this or `at` must be given.",
        today_allowed=True,
        required=False,
    )
    at = AtParam(
        "List the trips that were in progress at this time, in epoch milliseconds: in the last six months. In place of "
        "dates. Only trips that had started up to seven days before are found. `none` is for tools that send each "
        "parameter.",
        example=NO_TIME,
        load_default=None,
    )
    insurance_period = InsurancePeriodParam("List only trips of this insurance period.")
    min_distance_miles = AmountParam("Leave out trips with a shorter distance, in miles.")
    implausible = Choice(
        "List only implausible trips, whose values cannot be (`true`), or only the others (`false`).",
        choices=("true", "false"),
        example="false",
        load_default=None,
    )
    order = Choice(
        "`oldest`: in order of the start. `newest`: the exact reverse. `worst`: the lowest `fm_score` first, then the "
        "longer distance, in a window of at most 31 days.",
        choices=(OLDEST, NEWEST, WORST),
        load_default=OLDEST,
    )
    form = Choice(
        "`summary`: trips in summary form. `detail`: with focus area, trail and events; a page then ends after 8 MB.",
        choices=(SUMMARY, DETAIL),
        example=DETAIL,
        load_default=SUMMARY,
    )
    limit = IntegerParam("Maximum number of trips on a page.", high=MAX_LIMIT, default=DEFAULT_LIMIT)

    # Whether the dates and `at` are given is known even if another parameter is invalid.
    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def check_window(self, data: dict[str, Any], original: dict[str, Any], **kwargs: Any) -> None:
        """Raise ValidationError unless either the window or `at` is given, and the window is short enough."""
        dates, has_time = {"start_date", "end_date"} & original.keys(), original.get("at", NO_TIME) != NO_TIME
        if has_time and dates:
            raise ValidationError(f"Must not be given together with {' and '.join(sorted(dates, reverse=True))}.", "at")
        if not has_time and "start_date" not in original:
            raise ValidationError("Must be given, or else at.", "start_date")
        if data.get("order") == WORST and "start_date" in data:
            last = data.get("end_date") or str(original[TODAY])
            if len(dates_between(data["start_date"], last)) > MAX_WORST_DAYS:
                raise ValidationError(f"Must not be worst in a window of more than {MAX_WORST_DAYS} days.", "order")


class EventsParams(ListParams):
    """The parameters of the list of a fleet's events."""

    event_type = EventTypes("List only events of this type. Give several to get those of any of them.")
    bbox = BoxParam(
        "List only events that start in this box: `min_lon,min_lat,max_lon,max_lat`, in degrees, edges included. A box "
        "whose `min_lon` is greater than its `max_lon` crosses the antimeridian.",
        example="-96.2,41,-95.8,41.4",
        load_default=None,
    )
    min_seconds = AmountParam("Leave out shorter events, in seconds.", example=10)
    min_over_mph = AmountParam(
        "List only overspeeding whose highest speed exceeds the speed limit by as much, in miles per hour.",
        example=10,
        default=None,
    )
    order = Choice(
        "`oldest`: the oldest event first. `newest`: the exact reverse.", choices=(OLDEST, NEWEST), load_default=OLDEST
    )
    limit = IntegerParam("Maximum number of events on a page.", high=MAX_EVENTS_A_PAGE, default=DEFAULT_EVENTS)


class ChangesParams(Params):
    """The parameters of a page of the change feed."""

    cursor = CursorParam(
        "The `cursor` of the last page. Without it, or with `start`, the feed starts with all trips that are visible "
        "now; start with an empty copy then.",
        example=START,
        required=False,
    )
    limit = IntegerParam("Maximum number of changes on a page.", high=MAX_CHANGES, default=DEFAULT_CHANGES)


class ReportParams(Params):
    """The parameters of a report. The view gets its `window`."""

    report_time = ReportTime(
        "A time, `YYYY-MM-DDTHH:MM:SS`. Its date selects the report, which covers the seven days before that date, or "
        "the calendar month before the month of that date; the time of day has no effect.",
        example=lambda today: f"{monday_of(str(today))}T00:00:00",
        attribute="date",
    )
    period = WeekOrMonth("Whether the report covers a `week` or a `month`.", load_default=WEEK)

    @post_load
    def make_window(self, data: dict[str, Any], **kwargs: Any) -> dict[str, ReportWindow]:
        """Return the window to which the date leads."""
        return {"window": ReportWindow.of(data["date"], data["period"])}


class LinkParams(Params):
    """The parameter of a file of a report."""

    link = Text("Last part of the link.", example="WyJhY21lIl0.c2lnbmVk")


class NoParams(Params):
    """The parameters of an endpoint without parameters."""
