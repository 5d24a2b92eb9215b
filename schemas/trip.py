"""Trips, their trails and events."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema
from marshmallow.validate import OneOf

from schemas.fields import Amount, Count, EpochMs, Flag, Identifier, Number, RawObject, Text, Whole

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

    phone_use_count = Count(required=True)
    rapid_acceleration_count = Count(required=True)
    hard_brake_count = Count(required=True)
    overspeeding_count = Count(required=True)
    phone_use_time_seconds = Amount(required=True)
    overspeeding_time_seconds = Amount(required=True)


class TripFocusArea(Schema):
    """Which behaviours to coach after this trip."""

    is_phone_use = Flag(required=True)
    is_rapid_acceleration = Flag(required=True)
    is_hard_brake = Flag(required=True)
    is_overspeeding = Flag(required=True)


class TrailPoint(Schema):
    """Where the car was: degrees, and its course in degrees from North."""

    timestamp = EpochMs(required=True)
    latitude = Number(-90, 90, required=True)
    longitude = Number(-180, 180, required=True)
    course = Number(required=True)


class EventData(Schema):
    """Speeds of an overspeeding event; empty for the other types."""

    user_speed_mph = Number()
    speed_limit_mph = Number()
    max_user_speed_mph = Number()


class Event(Schema):
    """Something that happened on a trip."""

    event_type = Whole(min(EVENT_TYPES), max(EVENT_TYPES), required=True)
    event_name = Text(required=True, validate=OneOf([name for name, _ in EVENT_TYPES.values()]))
    event_start_timestamp = EpochMs(required=True)
    event_end_timestamp = EpochMs(required=True)
    event_start_latitude = Number(-90, 90, required=True)
    event_start_longitude = Number(-180, 180, required=True)
    event_end_latitude = Number(-90, 90, required=True)
    event_end_longitude = Number(-180, 180, required=True)
    event_data = RawObject(EventData, required=True)

    @validates_schema
    def check_type(self, data: dict[str, Any], **kwargs: Any) -> None:
        """The type is a known one, the name is that type's, and the data has that type's fields."""
        known = EVENT_TYPES.get(data["event_type"])
        if known is None:
            types = ", ".join(map(str, EVENT_TYPES))
            raise ValidationError(f"Must be one of {types}.", "event_type")
        name, data_fields = known
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

    Validated a column at a time, which takes a tenth of the time of a schema for each row; only rows that this finds
    fault with go through their schema, which then says what is wrong.
    """

    def __init__(self, schema: type[Schema], **kwargs: Any) -> None:
        super().__init__(fields.Nested(schema), **kwargs)
        self._fields: Any = schema().fields

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        rows = self._by_column(value)
        return super()._deserialize(value, attr, data, **kwargs) if rows is None else rows

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
    """A trip without its trail and events: miles, seconds, degrees, epoch milliseconds."""

    trip_id = Identifier(required=True)
    driver_id = Identifier(required=True)
    trip_start_time = EpochMs(required=True)
    trip_end_time = EpochMs(required=True)
    duration_seconds = Amount(required=True)
    distance_miles = Amount(required=True)
    insurance_period = Whole(1, 3, required=True, allow_none=True)
    start_latitude = Number(-90, 90, required=True)
    start_longitude = Number(-180, 180, required=True)
    end_latitude = Number(-90, 90, required=True)
    end_longitude = Number(-180, 180, required=True)
    night_driving_seconds = Amount(required=True)
    highway_miles = Amount(required=True)
    night_driving_miles = Amount(required=True)
    event_summary = fields.Nested(EventSummary, required=True)


class TripDetail(TripSummary):
    """A trip in full."""

    focus_area = fields.Nested(TripFocusArea, required=True)
    trail_path = Rows(TrailPoint, required=True)
    events = fields.List(fields.Nested(Event), required=True)


class ImportedTrip(TripDetail):
    """A line of a trips file. A trip without a focus area gets the one that follows from its event summary."""

    focus_area = fields.Nested(TripFocusArea)
    tracking_id = Identifier(required=True, allow_none=True)

    @validates_schema
    def check_times(self, data: dict[str, Any], **kwargs: Any) -> None:
        """A trip does not end before it starts."""
        if data["trip_end_time"] < data["trip_start_time"]:
            raise ValidationError("Must not lie before trip_start_time.", "trip_end_time")
