"""Trips, their trails and events."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema
from marshmallow.validate import OneOf

from schemas.fields import (
    Amount,
    Count,
    EpochMs,
    Flag,
    Identifier,
    Int64,
    IntegerChoice,
    Latitude,
    Longitude,
    Number,
    RawObject,
    Text,
    field_metadata,
)

# The event types of the contract, each with the fields of its event_data.
OVERSPEEDING_DATA = ("user_speed_mph", "speed_limit_mph", "max_user_speed_mph")
EVENT_TYPES: Mapping[int, tuple[str, tuple[str, ...]]] = {
    1: ("RAPID_ACCELERATION", ()),
    2: ("HARD_BRAKE", ()),
    7: ("PHONE_USE", ()),
    9: ("OVERSPEEDING", OVERSPEEDING_DATA),
}


class EventSummary(Schema):
    """How often, and for how many seconds, each behaviour was seen."""

    phone_use_count = Count("Times that the phone was used.", example=0, required=True)
    rapid_acceleration_count = Count("Rapid accelerations.", example=0, required=True)
    hard_brake_count = Count("Hard brakes.", example=0, required=True)
    overspeeding_count = Count("Times that the speed limit was exceeded.", example=1, required=True)
    phone_use_time_seconds = Amount("Time of phone use, in seconds.", example=0, required=True)
    overspeeding_time_seconds = Amount("Time above the speed limit, in seconds.", example=90, required=True)


class TripFocusArea(Schema):
    """Which behaviours to coach after this trip. Mind `is_rapid_acceleration`: on summaries it is `is_acceleration`."""

    is_phone_use = Flag("Phone use is one to coach.", example=False, required=True)
    is_rapid_acceleration = Flag("Rapid acceleration is one to coach.", example=False, required=True)
    is_hard_brake = Flag("Hard braking is one to coach.", example=False, required=True)
    is_overspeeding = Flag("Overspeeding is one to coach.", example=False, required=True)


class TrailPoint(Schema):
    """Where the car was, and when."""

    timestamp = EpochMs("Time, in epoch milliseconds UTC.", required=True)
    latitude = Latitude("Latitude, in degrees.", required=True)
    longitude = Longitude("Longitude, in degrees.", required=True)
    course = Number("Heading, in degrees from North.", required=True)


class EventData(Schema):
    """Speeds of an OVERSPEEDING event; empty for the other types."""

    user_speed_mph = Number("Speed as the event began, in miles per hour.", example=61.2)
    speed_limit_mph = Number("Speed limit there, in miles per hour.", example=55)
    max_user_speed_mph = Number("Highest speed during the event, in miles per hour.", example=68.4)


class Event(Schema):
    """Something that happened on a trip."""

    event_type = IntegerChoice("Type of the event, as a number.", choices=tuple(EVENT_TYPES), example=9, required=True)
    event_name = Text(
        "Type of the event, by name: "
        + ", ".join(f"{number} is {name}" for number, (name, _) in EVENT_TYPES.items())
        + ".",
        example="OVERSPEEDING",
        required=True,
        validate=OneOf([name for name, _ in EVENT_TYPES.values()]),
    )
    event_start_timestamp = EpochMs(
        "Time of its beginning, in epoch milliseconds UTC.", example=1_773_043_800_000, required=True
    )
    event_end_timestamp = EpochMs(
        "Time of its end, in epoch milliseconds UTC.", example=1_773_043_890_000, required=True
    )
    event_start_latitude = Latitude("Latitude of its beginning, in degrees.", example=41.2189, required=True)
    event_start_longitude = Longitude("Longitude of its beginning, in degrees.", example=-95.9412, required=True)
    event_end_latitude = Latitude("Latitude of its end, in degrees.", example=41.1956, required=True)
    event_end_longitude = Longitude("Longitude of its end, in degrees.", example=-95.9468, required=True)
    event_data = RawObject(EventData, metadata=field_metadata("Speeds, where the event has any."), required=True)

    @validates_schema
    def check_type(self, data: dict[str, Any], **kwargs: Any) -> None:
        """The name is that of the type, and the data has that type's fields."""
        name, data_fields = EVENT_TYPES[data["event_type"]]
        if data["event_name"] != name:
            raise ValidationError(f"Must be {name} for event_type {data['event_type']}.", "event_name")
        if set(data["event_data"]) != set(data_fields):
            expected = ", ".join(data_fields) or "no fields"
            raise ValidationError(f"Must hold {expected} for event_type {data['event_type']}.", "event_data")

    @validates_schema
    def check_times(self, data: dict[str, Any], **kwargs: Any) -> None:
        """An event does not end before it starts."""
        if data["event_end_timestamp"] < data["event_start_timestamp"]:
            raise ValidationError("Must not lie before event_start_timestamp.", "event_end_timestamp")


class Rows(fields.List[Any]):
    """A long list of one flat shape whose fields are all required.

    Validated a column at a time, and dumped as they are, which takes a tenth of the time of a schema for each row; only
    rows that validation finds fault with go through their schema, which then says what is wrong.
    """

    def __init__(self, schema: type[Schema], **kwargs: Any) -> None:
        super().__init__(fields.Nested(schema), **kwargs)
        self._fields: Any = schema().fields

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        rows = self._by_column(value)
        return super()._deserialize(value, attr, data, **kwargs) if rows is None else rows

    def _serialize(self, value: Any, attr: Any, obj: Any, **kwargs: Any) -> list[dict[str, Any]]:
        # A stored row holds these fields and no others, but its writer chose their order.
        names = tuple(self._fields)
        if all(map(names.__eq__, map(tuple, value))):
            return list(value)
        return [{name: row[name] for name in names} for row in value]

    def _by_column(self, rows: Any) -> list[dict[str, Any]] | None:
        """Return the rows with their fields in order, or None where a row is out of shape."""
        if type(rows) is not list or not set(map(type, rows)) <= {dict}:
            return None
        names, orders = tuple(self._fields), set(map(tuple, rows))
        if any(order != names for order in orders):
            if any(set(order) != set(names) for order in orders):
                return None
            rows = [{name: row[name] for name in names} for row in rows]
        columns = zip(*map(dict.values, rows), strict=True)
        return rows if all(map(self._holds, self._fields.values(), columns)) else None

    @staticmethod
    def _holds(field: Any, column: tuple[Any, ...]) -> bool:
        """Return whether the field takes every value of the column."""
        types = set(map(type, column))
        if not types <= field.types:
            return False
        # What bounds a number is a range, and 64 bits where it is an integer: of each type, the extremes speak for all.
        try:
            for kind in types:
                values = column if len(types) == 1 else [value for value in column if type(value) is kind]
                field.deserialize(min(values))
                field.deserialize(max(values))
        except ValidationError:
            return False
        return True


class TripSummary(Schema):
    """A trip without its trail and events."""

    trip_id = Identifier("Identifier of the trip, unique within the fleet.", example="demo-01-54-1", required=True)
    driver_id = Identifier("Who drove.", example="demo-01", required=True)
    trip_start_time = EpochMs("Start, in epoch milliseconds UTC.", example=1_773_043_200_000, required=True)
    trip_end_time = EpochMs("End, in epoch milliseconds UTC.", example=1_773_045_000_000, required=True)
    duration_seconds = Amount("Duration, in seconds.", example=1800, required=True)
    distance_miles = Amount("Distance, in miles.", example=12.5, required=True)
    insurance_period = Int64(
        "Insurance period of a ride-hailing trip: 1, 2 or 3; null for fleets without.",
        low=1,
        high=3,
        example=None,
        required=True,
        allow_none=True,
    )
    start_latitude = Latitude("Latitude of the start, in degrees.", example=41.2565, required=True)
    start_longitude = Longitude("Longitude of the start, in degrees.", example=-95.9345, required=True)
    end_latitude = Latitude("Latitude of the end, in degrees.", example=41.1403, required=True)
    end_longitude = Longitude("Longitude of the end, in degrees.", example=-95.966, required=True)
    night_driving_seconds = Amount("Time driven at night, in seconds.", example=0, required=True)
    highway_miles = Amount("Distance on highways, in miles.", example=4.2, required=True)
    night_driving_miles = Amount("Distance driven at night, in miles.", example=0, required=True)
    event_summary = fields.Nested(
        EventSummary, metadata=field_metadata("Counts and seconds of each behaviour."), required=True
    )


class TripDetail(TripSummary):
    """A trip in full."""

    focus_area = fields.Nested(TripFocusArea, metadata=field_metadata("Which behaviours to coach."), required=True)
    trail_path = Rows(
        TrailPoint,
        metadata=field_metadata(
            "Where the car was, in the order of time.",
            [
                {"timestamp": 1_773_043_200_000, "latitude": 41.2565, "longitude": -95.9345, "course": 182.5},
                {"timestamp": 1_773_045_000_000, "latitude": 41.1403, "longitude": -95.966, "course": 190.5},
            ],
        ),
        required=True,
    )
    events = fields.List(
        fields.Nested(Event), metadata=field_metadata("What happened, in the order of time."), required=True
    )


class ImportedTrip(TripDetail):
    """A line of a trips file. A trip without a focus area gets the one that follows from its event summary."""

    focus_area = fields.Nested(TripFocusArea)
    tracking_id = Identifier(required=True, allow_none=True)

    @validates_schema
    def check_times(self, data: dict[str, Any], **kwargs: Any) -> None:
        """A trip does not end before it starts."""
        if data["trip_end_time"] < data["trip_start_time"]:
            raise ValidationError("Must not lie before trip_start_time.", "trip_end_time")
