"""What the endpoints answer with: pages and lists."""

from marshmallow import Schema, fields

from schemas.driver import Driver
from schemas.fields import Count, Text
from schemas.summary import DailyAggregate, WeeklyAggregate
from schemas.trip import TripDetail, TripSummary


class DriverPage(Schema):
    """A page of drivers. `count` is the number of all matching records; `next_page` is null on the last page."""

    count = Count(required=True)
    limit = Count(required=True)
    current_page = Count(required=True)
    next_page = Count(required=True, allow_none=True)
    drivers = fields.List(fields.Nested(Driver), required=True)


class _TripPage(Schema):
    count = Count(required=True)
    current_page = Count(required=True)
    next_page = Count(required=True, allow_none=True)
    limit = Count(required=True)


class TripSummaryPage(_TripPage):
    """A page of trips in summary form."""

    trips = fields.List(fields.Nested(TripSummary), required=True)


class TripDetailPage(_TripPage):
    """A page of trips in detail form."""

    trips = fields.List(fields.Nested(TripDetail), required=True)


class DailyAggregates(Schema):
    """Daily summaries, one element a driver in the order asked."""

    data = fields.List(fields.Nested(DailyAggregate), required=True)


class WeeklyAggregates(Schema):
    """Weekly summaries, one element a driver in the order asked."""

    data = fields.List(fields.Nested(WeeklyAggregate), required=True)


class Health(Schema):
    """Whether the service can answer."""

    status = Text(required=True)
