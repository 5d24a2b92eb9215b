"""The stored documents: sources, read models, and the documents that commands write for the service."""

from typing import Any, ClassVar

from marshmallow import Schema, fields
from marshmallow.validate import OneOf

from schemas.driver import Driver
from schemas.fields import (
    MAX_IDENTIFIER_BYTES,
    AnyValue,
    Bytes,
    Count,
    Date,
    EpochMs,
    Identifier,
    Int64,
    Number,
    Text,
    Time,
)
from schemas.periods import LONG_PERIODS, PERIODS, PROFILE
from schemas.summary import DailySummary
from schemas.trip import EventSummary, ImportedTrip

Expression = dict[str, Any]


def _has_at_most_bytes(name: str) -> Expression:
    """Return an expression that limits an identifier in bytes: `maxLength` counts characters."""
    text = {"$cond": [{"$eq": [{"$type": f"${name}"}, "string"]}, f"${name}", ""]}
    return {"$lte": [{"$strLenBytes": text}, MAX_IDENTIFIER_BYTES]}


def _is_date_or_null(name: str) -> Expression:
    """Return an expression for a date that exists: the pattern of `Date` also matches 2026-02-30."""
    date = {"dateString": f"${name}", "format": "%Y-%m-%d", "onError": None}
    text = {"$dateToString": {"date": {"$dateFromString": date}, "format": "%Y-%m-%d"}}
    exists = {"$and": [{"$eq": [f"${name}", text]}, {"$gte": [f"${name}", "0001-01-01"]}]}
    # In an expression, a field that is absent does not equal null.
    return {"$or": [{"$eq": [{"$ifNull": [f"${name}", None]}, None]}, exists]}


def _text_rules(schema: type[Schema]) -> list[Expression]:
    """Return the expressions for the identifiers and dates of a schema."""
    rules = {Identifier: _has_at_most_bytes, Date: _is_date_or_null}
    return [
        make_rule(name)
        for field_type, make_rule in rules.items()
        for name, field in schema().fields.items()
        if isinstance(field, field_type)
    ]


class StoredDriver(Driver):
    """A document of `drivers`, a source collection: a driver as imported, and the fleet."""

    # Rules of the schema that MongoDB's validator expresses as aggregation expressions only.
    validator_expressions: ClassVar[list[Expression]] = [_has_at_most_bytes("fleet"), *_text_rules(Driver)]

    fleet = Identifier(required=True)


class StoredTrip(ImportedTrip):
    """A document of `trips`, a source collection: a trip as imported, and the fleet."""

    validator_expressions: ClassVar[list[Expression]] = [
        _has_at_most_bytes("fleet"),
        *_text_rules(ImportedTrip),
        {"$gte": ["$trip_end_time", "$trip_start_time"]},
        {
            "$allElementsTrue": {
                "$map": {
                    "input": {"$cond": [{"$isArray": "$events"}, "$events", []]},
                    "as": "event",
                    "in": {"$gte": ["$$event.event_end_timestamp", "$$event.event_start_timestamp"]},
                }
            }
        },
    ]

    fleet = Identifier(required=True)


class _ReadModel(Schema):
    """A document derived from the sources. `version` changes whenever another field changes."""

    fleet = Identifier(required=True)
    version = Text(required=True)


class FleetDrivers(Schema):
    """A document of `fleet_drivers`: a block of consecutive drivers of a fleet, in order of driver_id.

    `drivers` is the Driver of each as rendered JSON, in the order of `driver_ids`; `position` is the number of drivers
    in the blocks before. The document at position -1 is the fleet state: it has the `driver_count` of the fleet, and
    `writes`, the number of transactions that wrote to the fleet. `written_at` is MongoDB's time in the last one.
    `feed_id` is random, and differs whenever the change feed of the fleet begins from scratch. `erasures` is the number
    of drivers erased.
    """

    fleet = Identifier(required=True)
    position = Int64(required=True)
    driver_count = Count(required=True)
    writes = Count()
    written_at = Time()
    feed_id = Text()
    erasures = Count()
    first_driver_id = Identifier()
    driver_ids = fields.List(Identifier())
    drivers = fields.List(Text())
    version = Text()


class Calendar(Schema):
    """The days of a month on which a driver drove, in order of date: parallel arrays with an element for each day.

    `versions` has the version of the day's document, `last_trip_ends` the latest end (epoch ms) of its trips.
    """

    dates = fields.List(Date(), required=True)
    trip_counts = fields.List(Count(), required=True)
    last_trip_ends = fields.List(EpochMs(), required=True)
    versions = fields.List(Text(), required=True)


class DriverPeriod(_ReadModel):
    """A document of `driver_periods`: a driver in a period, which is `all`, a `day`, a `week` or a `month`.

    `start_date` is the first UTC date of the period, and empty for `all`. `version` covers the rendered JSON and, for a
    day, its trips. `all` and a day have `json`: the Driver, or the Daily summary. A day also has its summary as BSON,
    and its trips in order of start and trip_id: `trips` has the summary form of each as rendered JSON, `trip_ends` the
    end (epoch ms) of each. A week and a month have their summary as rendered JSON in two fragments: `driving_summary`
    is the DrivingSummary, `breakdown` the object with the other fields. They also have what ranks the driver,
    `fm_score` and `distance_miles`. A month has the calendar of its days. `all` has the `_id` of its source document
    as `source_id`, if there is one.
    """

    driver_id = Identifier(required=True)
    period = Text(required=True, validate=OneOf((PROFILE, *PERIODS)))
    start_date = Text(required=True)
    json = Text()
    summary = fields.Nested(DailySummary)
    driving_summary = Text()
    breakdown = Text()
    fm_score = Number()
    distance_miles = Number()
    trip_count = Count()
    last_trip_end = EpochMs()
    trips = fields.List(Text())
    trip_ends = fields.List(EpochMs())
    calendar = fields.Nested(Calendar)
    source_id = AnyValue()


class RankingBound(Schema):
    """A driver in a ranking, and `position`: how many drivers with the same score come before this driver."""

    fm_score = Number(required=True)
    distance_miles = Number(required=True)
    driver_id = Identifier(required=True)
    position = Count(required=True)


class RankingCounts(Schema):
    """A document of `ranking_counts`: the number of drivers by score, of a fleet in a week or month.

    `fm_scores`, in ascending order, and `counts` are parallel arrays. `bounds` has about one driver in 256, in the
    order of the ranking from the lowest score. With it, a page that begins among many drivers of one score is found
    without counting them.
    """

    fleet = Identifier(required=True)
    period = Text(required=True, validate=OneOf(LONG_PERIODS))
    start_date = Date(required=True)
    driver_count = Count(required=True)
    fm_scores = fields.List(Number(), required=True)
    counts = fields.List(Count(), required=True)
    bounds = fields.List(fields.Nested(RankingBound), required=True)


class TripTotals(Schema):
    """The values of a trip that are added up in its Daily summary."""

    distance_miles = Number(required=True)
    duration_seconds = Number(required=True)
    night_driving_seconds = Number(required=True)
    highway_miles = Number(required=True)
    event_summary = fields.Nested(EventSummary, required=True)


class StoredTripDetail(_ReadModel):
    """A document of `trip_details`: the filter and sort fields of a trip, its totals, and its detail form.

    It has the `_id` of its source. The detail form is rendered JSON in four fragments: `summary` is the summary form,
    the others are one field each.
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


class ReplacedTrip(Schema):
    """An earlier version of a trip: its end, the number of the change that replaced it, and when (epoch ms)."""

    trip_end_time = EpochMs(required=True)
    change = Count(required=True)
    replaced_at = Int64(required=True)


class StoredTripChange(Schema):
    """A document of `trip_changes`: a trip, or the tombstone of a deleted trip, which has a `deleted_at`.

    `change` is the number, by `writes` of the fleet, of the transaction that last changed the trip. `json` is the
    summary form as rendered JSON, and `version` that of the trip's details. `replaced` has earlier versions in order of
    change; each ended after the one before.
    """

    fleet = Identifier(required=True)
    trip_id = Identifier(required=True)
    driver_id = Identifier(required=True)
    change = Count(required=True)
    replaced = fields.List(fields.Nested(ReplacedTrip), required=True)
    trip_end_time = EpochMs()
    version = Text()
    json = Text()
    deleted_at = Time()


class StoredFile(Schema):
    """A file of a report: its identifier in GridFS, its length in bytes, and a digest of its content."""

    file_id = Text(required=True)
    bytes = Count(required=True)
    digest = Text(required=True)


class StoredReport(Schema):
    """A document of `reports`: a report on the seven days before `report_date`. `built_at` is epoch milliseconds."""

    fleet = Identifier(required=True)
    report_date = Date(required=True)
    built_at = Int64(required=True)
    drivers = Count(required=True)
    csv = fields.Nested(StoredFile, required=True)
    page = fields.Nested(StoredFile, required=True)


class StoredKey(Schema):
    """A document of `keys`: an API key, with a digest instead of the key. Times are epoch milliseconds."""

    key_id = Text(required=True)
    digest = Text(required=True)
    fleet = Identifier(required=True)
    created_at = Int64(required=True)
    expires_at = Int64(required=True, allow_none=True)
    revoked_at = Int64(required=True, allow_none=True)


class StreamPosition(Schema):
    """A document of `stream_positions`: how far `follow` has applied the changes of the sources.

    `token` is the resume token of the change stream in BSON. `applied_until` is epoch milliseconds: all changes that
    were committed until then are applied.
    """

    token = Bytes(required=True)
    applied_until = Int64(required=True)
