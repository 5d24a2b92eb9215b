"""Documents as they lie in the store: what is served, and what the store needs beside it."""

from marshmallow import Schema, fields

from schemas.driver import Driver
from schemas.fields import Bytes, Count, Date, Flag, Identifier, Text, Whole
from schemas.summary import DailySummary
from schemas.trip import ImportedTrip, TripFocusArea


class TravelDates(Schema):
    """The travel dates that a driver file gave."""

    first_travel_date = Date(required=True, allow_none=True)
    last_travel_date = Date(required=True, allow_none=True)


class Day(Schema):
    """A driver's UTC date: what a trip belongs to and a daily summary is made for."""

    driver_id = Identifier(required=True)
    date = Date(required=True)


class StoredDriver(Driver):
    """A driver with the fleet and the travel dates as imported; those served take the stored trips in."""

    fleet = Identifier(required=True)
    imported = fields.Nested(TravelDates, required=True)


class StoredTrip(ImportedTrip):
    """A trip with the fleet and the day that it belongs to, and with its detail form as JSON, unless that is large."""

    focus_area = fields.Nested(TripFocusArea, required=True)
    fleet = Identifier(required=True)
    day = fields.Nested(Day, required=True)
    version = Bytes(required=True)
    text = Bytes()


class StoredDailySummary(Schema):
    """A daily summary, marked stale while the trips of its day are being written; a new day has no summary yet."""

    fleet = Identifier(required=True)
    day = fields.Nested(Day, required=True)
    stale = Flag()
    summary = fields.Nested(DailySummary)


class Counts(Schema):
    """How many trips there are by date, or part of one: packed arrays of the same length (app.store.buckets)."""

    keys = Bytes(required=True)
    counts = Bytes(required=True)
    ends = Bytes(required=True)


class Buckets(Counts):
    """Which trips a driver has, a bucket an item."""

    versions = Bytes(required=True)


class ServedSpan(Schema):
    """What is served of a driver, as JSON. `span` tells what the document holds (app.store.served).

    The driver as such, with the buckets of the trips; a day's summary, with a bucket of trip summaries and their ends;
    more such buckets of a day; a week's summary. The driver is marked stale while any of these is being written.
    """

    fleet = Identifier(required=True)
    driver_id = Identifier(required=True)
    span = Text(required=True)
    version = Bytes()
    text = Bytes()
    stale = Flag()
    buckets = fields.Nested(Buckets)
    rows = fields.List(Bytes())
    ends = Bytes()


class ServedDrivers(Schema):
    """A hundred of a fleet's drivers as JSON, in order, `first` being the id of the first one; or how many there are.

    Marked stale while they are being written. `number` counts from 0; at -1 is how many drivers the fleet has.
    """

    fleet = Identifier(required=True)
    number = Whole(required=True)
    stale = Flag()
    count = Count()
    first = Text()
    version = Bytes()
    rows = fields.List(Bytes())


class ServedTracking(Schema):
    """How many trips share a tracking id, by date or part of one; marked stale while such trips are being written."""

    fleet = Identifier(required=True)
    tracking_id = Identifier(required=True)
    stale = Flag()
    dates = fields.Nested(Counts, required=True)


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


class Writer(Schema):
    """Who is writing to a fleet: one at a time. `beat` changes as long as it is alive."""

    fleet = Identifier(required=True)
    machine = Text(required=True)
    pid = Whole(required=True)
    beat = Text(required=True)
