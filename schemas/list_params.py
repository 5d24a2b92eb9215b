"""The parameters of the lists by cursor: the trips and the events of a fleet."""

import re
from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema
from marshmallow.validate import OneOf

from schemas.cursor import START, ListCursorParam
from schemas.date_params import DateRangeParams, EndDate, StartDate, get_first_date
from schemas.fields import IntegerChoice, Text
from schemas.params import (
    DEFAULT_LIMIT,
    MAX_DRIVERS,
    MAX_LIMIT,
    MAX_NUMBER_LENGTH,
    NUMBER,
    WORST,
    AmountParam,
    DriverIds,
    DriversOrGroupParams,
    InsurancePeriodParam,
    IntegerParam,
    RepeatedParam,
)
from schemas.periods import DAY, UTC, dates_between, midnight, now_ms
from schemas.query import TODAY
from schemas.trip import EVENT_NAMES, OVERSPEEDING

OLDEST, NEWEST = "oldest", "newest"
SUMMARY, DETAIL = "summary", "detail"
MAX_WORST_DAYS = 31
# `at` in place of a time: for tools that send each parameter.
NO_TIME = "none"
MAX_EVENTS_A_PAGE, DEFAULT_EVENTS = 1_000, 100


class EventTypeParam(IntegerChoice):
    """The number of an event type, in ASCII digits."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        numbers = {str(number): number for number in EVENT_NAMES}
        if value not in numbers:
            raise ValidationError(f"Must be one of {', '.join(numbers)}.")
        return numbers[value]


class BoxParam(Text):
    """A box of positions as four numbers, `min_lon,min_lat,max_lon,max_lat`, which load as a list."""

    pattern = re.compile(",".join([f"-?{NUMBER}"] * 4))
    openapi_keywords: ClassVar[dict[str, Any]] = {"pattern": f"^{pattern.pattern}$"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, attr, data, **kwargs)
        if len(text) > MAX_NUMBER_LENGTH or not self.pattern.fullmatch(text):
            raise ValidationError("Must be four numbers: min_lon,min_lat,max_lon,max_lat, such as -96.2,41,-95.8,41.4.")
        box = west, south, east, north = list(map(float, text.split(",")))
        if max(abs(west), abs(east)) > 180:
            raise ValidationError("Longitudes, the first and third number, must be from -180 to 180.")
        if not -90 <= south <= north <= 90:
            raise ValidationError(
                "Latitudes, the second and fourth number, must be from -90 to 90, the lower one first."
            )
        return box


class ListParams(DateRangeParams, DriversOrGroupParams):
    """The parameters of every list by cursor."""

    start_date = StartDate(
        "The first date of the window, `YYYY-MM-DD`: from six months ago to today.", today_allowed=True
    )
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
    implausible = Text(
        "List only implausible trips, whose values cannot be (`true`), or only the others (`false`).",
        validate=OneOf(("true", "false")),
        example="false",
        load_default=None,
    )
    order = Text(
        "`oldest`: in order of the start. `newest`: the exact reverse. `worst`: the lowest `fm_score` first, then the "
        "longer distance, in a window of at most 31 days.",
        example=OLDEST,
        load_default=OLDEST,
        validate=OneOf((OLDEST, NEWEST, WORST)),
    )
    form = Text(
        "`summary`: trips in summary form. `detail`: with focus area, trail and events; a page then ends after 8 MB.",
        example=DETAIL,
        load_default=SUMMARY,
        validate=OneOf((SUMMARY, DETAIL)),
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
        # The window of a cursor stays the same over midnight.
        if data.get("order") == WORST and "start_date" in data and not data.get("cursor"):
            last = data.get("end_date") or str(original[TODAY])
            if len(dates_between(data["start_date"], last)) > MAX_WORST_DAYS:
                raise ValidationError(f"Must not be worst in a window of more than {MAX_WORST_DAYS} days.", "order")


class EventsParams(ListParams):
    """The parameters of the list of a fleet's events."""

    event_type = RepeatedParam(
        EventTypeParam("Number of the event type.", component="EventType", choices=EVENT_NAMES, example=OVERSPEEDING),
        "List only events of this type. Give several to get those of any of them.",
        most=len(EVENT_NAMES),
        example=[OVERSPEEDING],
        attribute="event_types",
        required=False,
    )
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
    order = Text(
        "`oldest`: the oldest event first. `newest`: the exact reverse.",
        example=OLDEST,
        load_default=OLDEST,
        validate=OneOf((OLDEST, NEWEST)),
    )
    limit = IntegerParam("Maximum number of events on a page.", high=MAX_EVENTS_A_PAGE, default=DEFAULT_EVENTS)
