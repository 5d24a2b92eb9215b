"""Trips, their trails and their events."""

from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema
from marshmallow.validate import OneOf

from schemas.fields import (
    MAX_INT,
    Amount,
    Choice,
    Count,
    EpochMs,
    Flag,
    Identifier,
    Int64,
    Latitude,
    List,
    Longitude,
    Number,
    Object,
    RawObject,
)
from schemas.plausibility import IMPLAUSIBLE
from schemas.source import Rows, SourceSchema

OVERSPEEDING = 9
# The event_name of each event_type.
EVENT_NAMES = {1: "RAPID_ACCELERATION", 2: "HARD_BRAKE", 7: "PHONE_USE", OVERSPEEDING: "OVERSPEEDING"}


class EventSummary(SourceSchema):
    """The counts and durations of each behaviour."""

    phone_use_count = Count("Number of times that the driver used the phone.", high=MAX_INT, example=0)
    rapid_acceleration_count = Count("Number of rapid accelerations.", high=MAX_INT, example=0)
    hard_brake_count = Count("Number of hard brakes.", high=MAX_INT, example=0)
    overspeeding_count = Count("Number of times that the driver exceeded the speed limit.", high=MAX_INT, example=1)
    phone_use_time_seconds = Amount("Time of phone use, in seconds.", example=0)
    overspeeding_time_seconds = Amount("Time above the speed limit, in seconds.", example=90)


class TripFocusArea(SourceSchema):
    """The behaviours to coach. Note the name `is_rapid_acceleration`: summaries have `is_acceleration`."""

    is_phone_use = Flag("Whether to coach phone use.", example=False)
    is_rapid_acceleration = Flag("Whether to coach rapid acceleration.", example=False)
    is_hard_brake = Flag("Whether to coach hard braking.", example=False)
    is_overspeeding = Flag("Whether to coach overspeeding.", example=False)


class TrailPoint(SourceSchema):
    """A position of the vehicle, with its time."""

    timestamp = EpochMs("Time, in epoch milliseconds UTC.")
    latitude = Latitude("Latitude, in degrees.")
    longitude = Longitude("Longitude, in degrees.")
    course = Number("Heading, in degrees from North.")


class EventData(SourceSchema):
    """The speeds of an OVERSPEEDING event. Empty for other types."""

    user_speed_mph = Number("Speed at the start of the event, in miles per hour.", example=61.2, required=False)
    speed_limit_mph = Number("Speed limit at that position, in miles per hour.", example=55, required=False)
    max_user_speed_mph = Number("Highest speed during the event, in miles per hour.", example=68.4, required=False)


SPEEDS = tuple(EventData().fields)


class EventType(Int64):
    """The number of an event type. The OpenAPI document has the numbers once, with their names."""

    component = "EventType"

    def __init__(self) -> None:
        super().__init__("Number of the event type.", low=min(EVENT_NAMES), high=max(EVENT_NAMES), example=OVERSPEEDING)
        error = f"Must be one of {', '.join(map(str, EVENT_NAMES))}."
        self.validators = [OneOf(list(EVENT_NAMES), labels=list(EVENT_NAMES.values()), error=error)]


class Event(SourceSchema):
    """An event on a trip."""

    event_type = EventType()
    event_name = Choice(
        f"Name of the event type: {', '.join(f'{number} is {name}' for number, name in EVENT_NAMES.items())}.",
        component="EventName",
        choices=list(EVENT_NAMES.values()),
        example="OVERSPEEDING",
    )
    event_start_timestamp = EpochMs("Time of the start, in epoch milliseconds UTC.", example=1_773_043_800_000)
    event_end_timestamp = EpochMs("Time of the end, in epoch milliseconds UTC.", example=1_773_043_890_000)
    event_start_latitude = Latitude("Latitude of the start, in degrees.", example=41.2189)
    event_start_longitude = Longitude("Longitude of the start, in degrees.", example=-95.9412)
    event_end_latitude = Latitude("Latitude of the end, in degrees.", example=41.1956)
    event_end_longitude = Longitude("Longitude of the end, in degrees.", example=-95.9468)
    event_data = RawObject(EventData, "The speeds of an OVERSPEEDING event; otherwise empty.")

    @validates_schema
    def check_type(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Check that `event_name` and the fields of `event_data` are those of `event_type`."""
        name = EVENT_NAMES[data["event_type"]]
        if data["event_name"] != name:
            raise ValidationError(f"Must be {name} for event_type {data['event_type']}.", "event_name")
        data_fields = SPEEDS if data["event_type"] == OVERSPEEDING else ()
        if set(data["event_data"]) != set(data_fields):
            expected = ", ".join(data_fields) or "no fields"
            raise ValidationError(f"Must have {expected} for event_type {data['event_type']}.", "event_data")

    @validates_schema
    def check_times(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Check that an event does not end before it starts."""
        if data["event_end_timestamp"] < data["event_start_timestamp"]:
            raise ValidationError("Must not be before event_start_timestamp.", "event_end_timestamp")

    rules = (check_type, check_times)


class FleetEvent(Event):
    """An event, with what identifies it in the fleet."""

    trip_id = Identifier("Identifier of the trip.", example="demo-01-54-1")
    driver_id = Identifier("Identifier of the driver.", example="demo-01")
    event_index = Count("Place of the event in the `events` of its trip, from 0.", example=0)

    class Meta:
        """The order of the fields."""

        fields = ("trip_id", "driver_id", "event_index", *Event().fields)


# The longest JSON of so many points and events has 16.1 MB, and MongoDB limits a document to 16 MiB. The trail of a
# device that sends a point each second is that of 27 hours.
MAX_POINTS, MAX_EVENTS = 100_000, 5_000


class TripSummary(SourceSchema):
    """A trip in summary form: without its trail and events."""

    trip_id = Identifier("Identifier of the trip, unique within the fleet.", example="demo-01-54-1")
    driver_id = Identifier("Identifier of the driver.", example="demo-01")
    trip_start_time = EpochMs("Time of the start, in epoch milliseconds UTC.", example=1_773_043_200_000)
    trip_end_time = EpochMs("Time of the end, in epoch milliseconds UTC.", example=1_773_045_000_000)
    duration_seconds = Amount("Duration, in seconds.", example=1800)
    distance_miles = Amount("Distance, in miles.", example=12.5)
    insurance_period = Int64(
        "Insurance period of a ride-hailing trip: 1, 2 or 3. Null for fleets without insurance periods.",
        low=1,
        high=3,
        example=None,
        allow_none=True,
    )
    start_latitude = Latitude("Latitude of the start, in degrees.", example=41.2565)
    start_longitude = Longitude("Longitude of the start, in degrees.", example=-95.9345)
    end_latitude = Latitude("Latitude of the end, in degrees.", example=41.1403)
    end_longitude = Longitude("Longitude of the end, in degrees.", example=-95.966)
    night_driving_seconds = Amount("Time driven at night, in seconds.", example=0)
    highway_miles = Amount("Distance on highways, in miles.", example=4.2)
    night_driving_miles = Amount("Distance driven at night, in miles.", example=0)
    event_summary = Object(EventSummary, "Counts and durations of each behaviour.")


class TripDetail(TripSummary):
    """A trip in detail form: the summary form, the focus area, the trail and the events."""

    focus_area = Object(TripFocusArea, "The behaviours to coach.")
    trail_path = Rows(
        TrailPoint,
        "Positions of the vehicle as they were recorded, in order of time unless a device sent some late.",
        example=[
            {"timestamp": 1_773_043_200_000, "latitude": 41.2565, "longitude": -95.9345, "course": 182.5},
            {"timestamp": 1_773_045_000_000, "latitude": 41.1403, "longitude": -95.966, "course": 190.5},
        ],
        most=MAX_POINTS,
    )
    events = Rows(Event, "The events, in order of time.", most=MAX_EVENTS)


class ListedTrip(TripDetail):
    """A trip in summary form, or with `form=detail` in detail form: then it has the last three fields."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Make the fields optional that only the detail form has."""
        super().on_bind_field(field_name, field_obj)
        field_obj.required = field_name in TripSummary().fields


class RatedTrip(Schema):
    """A trip with its score, and what its values say about the device."""

    trip = Object(ListedTrip, "The trip.")
    tracking_id = Identifier(
        "What the trips of one job share, such as a ride. Null for a trip without one.",
        example="ride-17",
        allow_none=True,
    )
    fm_score = Number("Score of this trip alone.", low=0, high=100, example=92.5)
    implausible = List(
        Choice(choices=IMPLAUSIBLE), "The kinds of values that cannot be: empty for nearly all trips.", example=[]
    )


class ImportedTrip(TripDetail):
    """A line of an import file of trips.

    `focus_area` may be absent: the focus area is then computed from `event_summary`.
    """

    focus_area = Object(TripFocusArea, required=False)
    tracking_id = Identifier(allow_none=True)

    @validates_schema
    def check_times(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Check that a trip does not end before it starts."""
        if data["trip_end_time"] < data["trip_start_time"]:
            raise ValidationError("Must not be before trip_start_time.", "trip_end_time")
