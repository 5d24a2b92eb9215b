"""The bodies of the responses: pages of records, and aggregates."""

from typing import Any

from marshmallow import Schema, ValidationError, validates_schema

from schemas.driver import Driver
from schemas.fields import Choice, Count, Date, EpochMs, Flag, Identifier, Int64, Object, Objects, Text, WeekOrMonth
from schemas.params import DEFAULT_EVENTS, MAX_EVENTS_A_PAGE, MAX_LIMIT, MAX_PAGE
from schemas.report import MILES, UNITS
from schemas.summary import DailyAggregate, MonthlyAggregate, RankedDriver, WeeklyAggregate, WindowAggregate
from schemas.trip import FleetEvent, RatedTrip, TripDetail, TripSummary

LIMIT = "Maximum number of records on a page."
OF_EACH_DRIVER = "One element for each driver, in the order of the request."


class _Page(Schema):
    count = Count("Number of matching records, on all pages together.", example=1)
    limit = Int64(LIMIT, low=1, high=MAX_LIMIT, example=50)
    current_page = Int64("Number of this page, from 1.", low=1, high=MAX_PAGE, example=1)
    next_page = Int64(
        "Number of the next page. Null on the last page.", low=2, high=MAX_PAGE, example=None, allow_none=True
    )


class DriverPage(_Page):
    """A page of drivers."""

    drivers = Objects(Driver, "The drivers, in order of `driver_id`.")


class Group(Schema):
    """A group of drivers."""

    group = Identifier("Name of the group, unique within the fleet.", example="North")
    driver_count = Count("Number of drivers who are in it now.", example=1)


class GroupPage(_Page):
    """A page of the groups of a fleet."""

    groups = Objects(Group, "The groups that have drivers, in order of the name by code point.")


class _TripPage(_Page):
    class Meta:
        """The order of the fields."""

        fields = ("count", "current_page", "next_page", "limit", "trips")


class TripSummaryPage(_TripPage):
    """A page of trips in summary form."""

    trips = Objects(TripSummary, "The trips, oldest first.")


class TripDetailPage(_TripPage):
    """A page of trips in detail form."""

    limit = Int64(LIMIT, low=1, high=MAX_LIMIT, example=5)
    trips = Objects(TripDetail, "The trips, oldest first.")


class BuiltReport(Schema):
    """A report that is built, on the seven days or the calendar month before its date."""

    report_date = Date("Date of the report. Its links: `/report`.", example="2026-03-16")
    period = WeekOrMonth("Whether it covers a week or a month.")
    start_date = Date("First date that the report covers.", example="2026-03-09")
    end_date = Date("Last date that the report covers.", example="2026-03-15")
    built_at = EpochMs("Time at which the report was built, in epoch milliseconds.", example=1_773_835_200_000)
    driver_count = Count("Number of drivers in the report.", example=1)
    units = Choice(
        "Units of distances on the page of the report.", component="Units", choices=tuple(UNITS), example=MILES
    )


class ReportPage(_Page):
    """A page of the reports that are built."""

    reports = Objects(BuiltReport, "The reports, newest first.")


class RankingPage(_Page):
    """A page of a ranking."""

    count = Count("Number of drivers in the ranking, on all pages together.", example=1)
    period = WeekOrMonth("The `period` of the request.")
    start_date = Date("First date of the week or month.", example="2026-03-09")
    end_date = Date("Last date of the week or month.", example="2026-03-15")
    drivers = Objects(RankedDriver, "The drivers, in order of `rank`.")


class DailyAggregates(Schema):
    """The daily summaries of drivers."""

    data = Objects(DailyAggregate, OF_EACH_DRIVER)


class WeeklyAggregates(Schema):
    """The weekly summaries of drivers."""

    data = Objects(WeeklyAggregate, OF_EACH_DRIVER)


class MonthlyAggregates(Schema):
    """The monthly summaries of drivers."""

    data = Objects(MonthlyAggregate, OF_EACH_DRIVER)


class WindowPage(_Page):
    """A page of the summaries of drivers in a window of days."""

    count = Count("Number of drivers, on all pages together.", example=1)
    start_date = Date("First date of the window.", example="2026-03-09")
    end_date = Date("Last date of the window.", example="2026-03-15")
    data = Objects(
        WindowAggregate,
        "One element for each driver: in the order of the request if it names drivers, otherwise in order of "
        "`driver_id`.",
    )


class _ListPage(Schema):
    start_date = Date("The `start_date` of the request.", example="2026-03-09")
    end_date = Date("The `end_date` of the request. Null without one.", example="2026-03-15", allow_none=True)
    next_cursor = Text(
        "Where the next page begins: send it as `cursor`. Null at the end of the list. A page may have fewer elements "
        "than `limit`, or none, while it is not null: a page reads a bounded part of the list.",
        example=None,
        allow_none=True,
    )


class RatedTripPage(_ListPage):
    """A page of the trips of a fleet."""

    start_date = Date("The `start_date` of the request. Null without one.", example="2026-03-09", allow_none=True)
    limit = Int64("Maximum number of trips on a page.", low=1, high=MAX_LIMIT, example=50)
    trips = Objects(RatedTrip, "The trips, in the `order` of the request.")

    class Meta:
        """The order of the fields."""

        fields = ("limit", "start_date", "end_date", "trips", "next_cursor")


class EventPage(_ListPage):
    """A page of the events of a fleet."""

    limit = Int64("Maximum number of events on a page.", low=1, high=MAX_EVENTS_A_PAGE, example=DEFAULT_EVENTS)
    events = Objects(FleetEvent, "The events, in the `order` of the request.")

    class Meta:
        """The order of the fields."""

        fields = ("limit", "start_date", "end_date", "events", "next_cursor")


class TripChange(Schema):
    """A trip that became visible or was changed, or that is no longer there."""

    trip_id = Identifier("Identifier of the trip.", example="demo-01-54-1")
    driver_id = Identifier("Identifier of the driver.", example="demo-01")
    tracking_id = Identifier(
        "What the trips of one job share, such as a ride. Null for a trip without one, and if `deleted` is true.",
        example="ride-17",
        allow_none=True,
    )
    deleted = Flag("Whether the trip was deleted, or is no longer visible.", example=False)
    trip = Object(TripSummary, "The trip as it is now. Null if `deleted` is true.", allow_none=True)

    @validates_schema
    def check_trip(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Check that a trip that was not deleted is there, and no other one."""
        if not data["deleted"] and (data["trip"] or {}).get("trip_id") != data["trip_id"]:
            raise ValidationError("Must be the trip with this trip_id.", "trip")


class ChangePage(Schema):
    """A page of the change feed."""

    changes = Objects(TripChange, "The changes, in the order to apply them.")
    cursor = Text(
        "Where the next page begins. Send it with the next request.",
        example="5h7An1B2E05bIlprM3ZUcTl4IiwxLDE3NzM4MzUyMDAwMDAsMiwiIiwxNzczODIwODAwMDAxLCIiLDI1MzQwMjMwMDc5OTk5OV0",
    )
    has_more = Flag("Whether there are more changes now.", example=False)
