"""Documents as they lie in the store: sources, read models, and what the commands keep for the service."""

from marshmallow import Schema, fields

from schemas.driver import Driver
from schemas.fields import Count, Date, EpochMs, Identifier, Number, Text, Whole
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


class Bookmarks(Schema):
    """Where to find the drivers by position: `counts[i]` of them from `driver_ids[i]` up to the next bookmark."""

    driver_ids = fields.List(Identifier(), required=True)
    counts = fields.List(Count(), required=True)


class Fleet(_ReadModel):
    """How many drivers a fleet has, and bookmarks to page them. `writes` counts the transactions that wrote to it."""

    driver_count = Count(required=True)
    bookmarks = fields.Nested(Bookmarks, required=True)
    writes = Count(required=True)


class DriverProfile(_ReadModel):
    """A driver: the Driver as JSON."""

    driver_id = Identifier(required=True)
    json = Text(required=True)


class DriverDay(_ReadModel):
    """What a driver drove on a UTC date: the Daily summary, and each trip of the day, by start and trip_id.

    `trips` has their summary form as JSON, `trip_ends` their ends (epoch ms), in the same order.
    """

    driver_id = Identifier(required=True)
    date = Date(required=True)
    summary = fields.Nested(DailySummary, required=True)
    json = Text(required=True)
    trip_count = Count(required=True)
    last_trip_end = EpochMs(required=True)
    trips = fields.List(Text(), required=True)
    trip_ends = fields.List(EpochMs(), required=True)


class DriverPeriod(_ReadModel):
    """What a driver drove in a week: the Weekly summary as JSON. `period` is `week`, `start_date` its Monday."""

    driver_id = Identifier(required=True)
    period = Text(required=True)
    start_date = Date(required=True)
    json = Text(required=True)


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
    built_at = Whole(required=True)
    drivers = Count(required=True)
    csv = fields.Nested(StoredFile, required=True)
    page = fields.Nested(StoredFile, required=True)


class StoredKey(Schema):
    """An API key, by its digest. Times are epoch milliseconds."""

    key_id = Text(required=True)
    digest = Text(required=True)
    fleet = Identifier(required=True)
    created_at = Whole(required=True)
    expires_at = Whole(required=True, allow_none=True)
    revoked_at = Whole(required=True, allow_none=True)
