"""The parameters of the lists by cursor: the events of a fleet."""

import re
from typing import Any, ClassVar

from marshmallow import ValidationError
from marshmallow.validate import OneOf

from schemas.cursor import START, ListCursorParam
from schemas.date_params import DateRangeParams, EndDate, StartDate
from schemas.fields import IntegerChoice, Text
from schemas.params import MAX_DRIVERS, MAX_NUMBER_LENGTH, AmountParam, DriverIds, IntegerParam, RepeatedParam
from schemas.trip import EVENT_TYPES

OLDEST, NEWEST = "oldest", "newest"
MAX_EVENTS_A_PAGE, DEFAULT_EVENTS = 1_000, 100
NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?"


class EventTypeParam(IntegerChoice):
    """The number of an event type, in ASCII digits."""

    def __init__(self) -> None:
        choices = {number: name for number, (name, _) in EVENT_TYPES.items()}
        super().__init__("Number of the event type.", component="EventType", choices=choices, example=9)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        # What is no number of a type stays a text, which is none of the choices.
        numbers = {str(number): number for number in EVENT_TYPES}
        if value not in numbers:
            raise ValidationError(f"Must be one of {', '.join(numbers)}.")
        return numbers[value]


class BoxParam(Text):
    """A box of positions as four numbers, `min_lon,min_lat,max_lon,max_lat`, which load as a list."""

    pattern = re.compile(",".join([NUMBER] * 4))
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


class ListParams(DateRangeParams):
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


class EventsParams(ListParams):
    """The parameters of the list of a fleet's events."""

    event_type = RepeatedParam(
        EventTypeParam(),
        "List only events of this type. Give several to get those of any of them.",
        most=len(EVENT_TYPES),
        example=[9],
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
