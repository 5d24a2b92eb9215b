"""Documents as they lie in the store: sources, read models, and what the commands keep for the service."""

from marshmallow import Schema, fields
from marshmallow.validate import OneOf

from schemas.driver import Driver
from schemas.fields import Count, Date, EpochMs, Identifier, Int64, Number, Text
from schemas.summary import DailySummary
from schemas.trip import EventSummary, ImportedTrip


class StoredDriver(Driver):
    """A source document: a driver as imported, with the fleet."""

    fleet = Identifier(required=True)


class StoredTrip(ImportedTrip):
    """A source document: a trip as imported, with the fleet."""

    fleet = Identifier(required=True)


class _ReadModel(Schema):
    """A document that follows from the sources. `version` changes with any change of the others."""

    fleet = Identifier(required=True)
    version = Text(required=True)


class FleetDrivers(Schema):
    """A block of a fleet's drivers, in the order of driver_id, after `position` others: the Driver of each as JSON.

    The document at position -1 has instead how many drivers the fleet has, and how many transactions wrote to it.
    """

    fleet = Identifier(required=True)
    position = Int64(required=True)
    driver_count = Count(required=True)
    writes = Count()
    first_driver_id = Identifier()
    drivers = fields.List(Text())
    version = Text()


class Calendar(Schema):
    """The days of a month on which a driver drove, by date: parallel arrays, with an element for each day.

    `versions` are those of the days' documents, `last_trip_ends` the latest end (epoch ms) of a trip of the day.
    """

    dates = fields.List(Date(), required=True)
    trip_counts = fields.List(Count(), required=True)
    last_trip_ends = fields.List(EpochMs(), required=True)
    versions = fields.List(Text(), required=True)


class DriverPeriod(_ReadModel):
    """What is known of a driver in a period: `all`, a `day`, a `week` or a `month`.

    `start_date` is the first UTC date of the period, and empty for `all`. `json` is what the API shows: the Driver for
    `all`, else the Daily, Weekly or Monthly summary; `version` is that of `json` and, for a day, of its trips. A day
    has its summary also as `summary`, and its trips by start and trip_id: `trips` is the summary form of each as JSON,
    `trip_ends` its end (epoch ms). A month has a `calendar` of its days.
    """

    driver_id = Identifier(required=True)
    period = Text(required=True, validate=OneOf(["all", "day", "week", "month"]))
    start_date = Text(required=True)
    json = Text(required=True)
    summary = fields.Nested(DailySummary)
    trip_count = Count()
    last_trip_end = EpochMs()
    trips = fields.List(Text())
    trip_ends = fields.List(EpochMs())
    calendar = fields.Nested(Calendar)


class TripTotals(Schema):
    """What of a trip is summed up in its day."""

    distance_miles = Number(required=True)
    duration_seconds = Number(required=True)
    night_driving_seconds = Number(required=True)
    highway_miles = Number(required=True)
    event_summary = fields.Nested(EventSummary, required=True)


class StoredTripDetail(_ReadModel):
    """A trip: what it is found by, what its day sums up, and its detail form as JSON in four fragments.

    It has the `_id` of its source. `summary` is the summary form; the other fragments are a field each.
    """

    trip_id = Identifier(required=True)
    tracking_id = Identifier(required=True, allow_none=True)
    driver_id = Identifier(required=True)
    date = Date(required=True)
    trip_start_time = EpochMs(required=True)
    trip_end_time = EpochMs(required=True)
    totals = fields.Nested(TripTotals, required=True)
    summary = Text(required=True)
    focus_area = Text(required=True)
    trail_path = Text(required=True)
    events = Text(required=True)


class StoredFile(Schema):
    """A file of a report: where it lies in GridFS, how long it is, and a digest of its content."""

    file_id = Text(required=True)
    bytes = Count(required=True)
    digest = Text(required=True)


class StoredReport(Schema):
    """A report that is built. It covers the seven days before `report_date`; `built_at` is in epoch milliseconds."""

    fleet = Identifier(required=True)
    report_date = Date(required=True)
    built_at = Int64(required=True)
    drivers = Count(required=True)
    csv = fields.Nested(StoredFile, required=True)
    page = fields.Nested(StoredFile, required=True)


class StoredKey(Schema):
    """An API key, by its digest. Times are epoch milliseconds."""

    key_id = Text(required=True)
    digest = Text(required=True)
    fleet = Identifier(required=True)
    created_at = Int64(required=True)
    expires_at = Int64(required=True, allow_none=True)
    revoked_at = Int64(required=True, allow_none=True)
