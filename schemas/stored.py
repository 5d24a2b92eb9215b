"""Documents as they lie in the store: what is served, and what the store needs beside it."""

from marshmallow import Schema, fields

from schemas.driver import Driver
from schemas.fields import Date, Flag, Identifier, Text, Whole
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
    """A trip with the fleet and the day that it belongs to."""

    focus_area = fields.Nested(TripFocusArea, required=True)
    fleet = Identifier(required=True)
    day = fields.Nested(Day, required=True)


class StoredDailySummary(Schema):
    """A daily summary, marked stale while the trips of its day are being written; a new day has no summary yet."""

    fleet = Identifier(required=True)
    day = fields.Nested(Day, required=True)
    stale = Flag()
    summary = fields.Nested(DailySummary)


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
