"""What the endpoints answer with: pages and lists."""

from marshmallow import Schema, fields
from marshmallow.validate import OneOf

from schemas.driver import Driver
from schemas.error import ErrorBody, ErrorName
from schemas.fields import Count, Int64, Text, field_metadata
from schemas.summary import DailyAggregate, WeeklyAggregate
from schemas.trip import TripDetail, TripSummary

COUNT = "How many records match, on all pages together."
LIMIT = "Records a page at most."
CURRENT_PAGE = "This page, from 1."
NEXT_PAGE = "The page after this one; null on the last."


class DriverPage(Schema):
    """A page of drivers."""

    count = Count(COUNT, example=1, required=True)
    limit = Int64(LIMIT, low=1, example=50, required=True)
    current_page = Int64(CURRENT_PAGE, low=1, example=1, required=True)
    next_page = Int64(NEXT_PAGE, low=2, example=None, required=True, allow_none=True)
    drivers = fields.List(fields.Nested(Driver), metadata=field_metadata("The drivers, by driver_id."), required=True)


class _TripPage(Schema):
    count = Count(COUNT, example=1, required=True)
    current_page = Int64(CURRENT_PAGE, low=1, example=1, required=True)
    next_page = Int64(NEXT_PAGE, low=2, example=None, required=True, allow_none=True)
    limit = Int64(LIMIT, low=1, example=50, required=True)


class TripSummaryPage(_TripPage):
    """A page of trips in summary form."""

    trips = fields.List(fields.Nested(TripSummary), metadata=field_metadata("The trips, oldest first."), required=True)


class TripDetailPage(_TripPage):
    """A page of trips in full."""

    limit = Int64(LIMIT, low=1, example=5, required=True)
    trips = fields.List(fields.Nested(TripDetail), metadata=field_metadata("The trips, oldest first."), required=True)


class DailyAggregates(Schema):
    """Daily summaries."""

    data = fields.List(
        fields.Nested(DailyAggregate),
        metadata=field_metadata("One element a driver, in the order asked."),
        required=True,
    )


class WeeklyAggregates(Schema):
    """Weekly summaries."""

    data = fields.List(
        fields.Nested(WeeklyAggregate),
        metadata=field_metadata("One element a driver, in the order asked."),
        required=True,
    )


class Health(Schema):
    """The service can answer."""

    status = Text("Always `ok`.", example="ok", required=True, validate=OneOf(["ok"]))


class Unhealthy(ErrorBody):
    """The store does not answer."""

    status = Text("Always `unavailable`.", example="unavailable", required=True, validate=OneOf(["unavailable"]))
    message = Text("What is wrong.", example="The store does not answer; try again shortly.", required=True)
    error = ErrorName(
        "Always `StoreUnavailable`.", example="StoreUnavailable", required=True, validate=OneOf(["StoreUnavailable"])
    )

    class Meta:
        """The state, then the members of every error."""

        fields = ("status", "message", "error", "request_id")
