"""Daily and weekly driving summaries."""

from marshmallow import Schema, fields

from schemas.driver import Driver
from schemas.fields import Amount, Count, Date, Flag, Number, Text
from schemas.trip import EventSummary


class SummaryFocusArea(Schema):
    """Which behaviours to coach. Mind `is_acceleration`: on trips it is `is_rapid_acceleration`."""

    is_phone_use = Flag(required=True)
    is_overspeeding = Flag(required=True)
    is_hard_brake = Flag(required=True)
    is_acceleration = Flag(required=True)


class DrivingSummary(Schema):
    """Totals of a span of days, with the score that follows from them."""

    fm_score = Number(0, 100, required=True)
    fm_grade = Text(required=True)
    trip_count = Count(required=True)
    distance_miles = Amount(required=True)
    duration_seconds = Amount(required=True)
    night_driving_seconds = Amount(required=True)
    highway_miles = Amount(required=True)
    events_summary = fields.Nested(EventSummary, required=True)
    focus_area = fields.Nested(SummaryFocusArea, required=True)


class DailySummary(DrivingSummary):
    """One driver's driving of one UTC date."""

    date = Date(required=True)


class WeeklySummary(DrivingSummary):
    """One driver's driving of seven days; the breakdown holds the days driven, oldest first."""

    start_date = Date(required=True)
    end_date = Date(required=True)
    daily_summary_breakdown = fields.List(fields.Nested(DailySummary), required=True)


class DailyAggregate(Schema):
    """A driver and the summary of a day; null where the driver did not drive."""

    driver_info = fields.Nested(Driver, required=True)
    driving_summary = fields.Nested(DailySummary, required=True, allow_none=True)


class WeeklyAggregate(Schema):
    """A driver and the summary of a week; null where the driver did not drive."""

    driver_info = fields.Nested(Driver, required=True)
    driving_summary = fields.Nested(WeeklySummary, required=True, allow_none=True)
