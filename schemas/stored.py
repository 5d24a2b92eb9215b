"""The stored documents: sources, read models, and the documents that commands write for the service."""

import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import Schema
from marshmallow.validate import OneOf

from schemas.driver import Driver, GroupNames
from schemas.fields import (
    MAX_IDENTIFIER_BYTES,
    MIN_EPOCH_MS,
    SURROGATE,
    Bytes,
    Count,
    Date,
    EpochMs,
    Flag,
    FleetName,
    Identifier,
    Int64,
    List,
    Number,
    Object,
    Objects,
    Text,
    Time,
)
from schemas.fleet import CONTRIBUTION, IMPLAUSIBLE_COUNT
from schemas.periods import LONG_PERIODS, PERIODS, PROFILE
from schemas.plausibility import IMPLAUSIBLE, POLICIES
from schemas.score import BEHAVIOURS
from schemas.segments import INSURANCE_PERIOD, INSURANCE_PERIODS
from schemas.source import SourceSchema
from schemas.summary import AMOUNTS, TOTALS, DailySummary
from schemas.trip import MAX_EVENTS, EventSummary, FleetEvent, ImportedTrip

Expression = dict[str, Any]
# The number of the format of the read models and of the fleet state. Increment it with each change after which those
# that are stored differ from those that would be built: of a field, its meaning or its rounding, of what identifies a
# document, of the score. Then nothing reads or adds to stored ones until `rollups rebuild` has built them from scratch.
FORMAT = 6


def make_id(fleet: str, identifier: str) -> str:
    """Return the `_id` of a driver's or trip's source: it is the identity of the document."""
    return f"{fleet}/{identifier}"


def split_id(_id: Any) -> tuple[str, str] | None:
    """Return the fleet and the identifier of an `_id`, or None if it belongs to no fleet or is not UTF-8."""
    # What is not UTF-8 was read with surrogates, which MongoDB does not take back.
    fleet, slash, identifier = _id.partition("/") if isinstance(_id, str) else ("", "", "")
    return None if not fleet or not slash or SURROGATE.search(_id) else (fleet, identifier)


def ids_of_fleet(fleet: str) -> dict[str, str]:
    """Return the condition on the `_id` of a fleet's documents."""
    # In the order of MongoDB, 0 is the character after the slash.
    return {"$gte": f"{fleet}/", "$lt": f"{fleet}0"}


def make_event_id(fleet: str, start_ms: int, trip_id: str = "", index: int = 0) -> str:
    """Return the `_id` of an event of a trip that starts at a time: they are in order of time, trip_id and index.

    Without a trip, it is less than those of all events that start then.
    """
    in_trip = f"\t{index:0{len(str(MAX_EVENTS))}}" if trip_id else ""
    return f"{fleet}/{make_start_key(start_ms, trip_id)}{in_trip}"


def make_start_key(start_ms: int, trip_id: str = "") -> str:
    """Return the key of a trip that starts at a time: keys are in order of time and trip_id.

    Without a trip, it is less than those of all trips that start then.
    """
    # A tab is less than all characters that a trip_id may have.
    return f"{start_ms - MIN_EPOCH_MS:015}" + (f"\t{trip_id}" if trip_id else "")


def make_worst_key(fm_score: float, distance_miles: float, trip_id: str) -> str:
    """Return the key of a trip in the order of its score, then of its distance, the longer first, then of trip_id."""
    # The bits of doubles from 0 on are in the order of the doubles.
    (bits,) = struct.unpack(">Q", struct.pack(">d", distance_miles))
    return f"{fm_score:05.1f} {2**64 - 1 - bits:016x} {trip_id}"


def _text(name: str) -> Expression:
    """Return an expression for a string, which is empty for a value of another type."""
    return {"$cond": [{"$eq": [{"$type": f"${name}"}, "string"]}, f"${name}", ""]}


def _is_identity(name: str) -> Expression:
    """Return an expression for the `_id` that `make_id` returns."""
    return {"$eq": ["$_id", {"$concat": [_text("fleet"), "/", _text(name)]}]}


def _has_at_most_bytes(name: str) -> Expression:
    """Return an expression that limits an identifier in bytes: `maxLength` counts characters."""
    return {"$lte": [{"$strLenBytes": _text(name)}, MAX_IDENTIFIER_BYTES]}


def _are_names(name: str) -> list[Expression]:
    """Return the expressions for `GroupNames`: each within the limit in bytes, and none twice."""
    names = {"$cond": [{"$isArray": f"${name}"}, f"${name}", []]}
    text = {"$cond": [{"$eq": [{"$type": "$$this"}, "string"]}, "$$this", ""]}
    sizes = {"$map": {"input": names, "in": {"$lte": [{"$strLenBytes": text}, MAX_IDENTIFIER_BYTES]}}}
    return [{"$allElementsTrue": [sizes]}, {"$eq": [{"$size": names}, {"$size": {"$setUnion": [names]}}]}]


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
    validator_expressions: ClassVar[list[Expression]] = [
        _is_identity("driver_id"),
        _has_at_most_bytes("fleet"),
        *_text_rules(Driver),
    ]

    fleet = FleetName()


class StoredDriverGroups(SourceSchema):
    """A document of `driver_groups`, a source collection: the groups that a driver is in. It may be absent.

    It is no part of the driver's source, which `mirror` replaces, and which a driver known from trips alone lacks.
    """

    validator_expressions: ClassVar[list[Expression]] = [
        _is_identity("driver_id"),
        _has_at_most_bytes("fleet"),
        _has_at_most_bytes("driver_id"),
        *_are_names("groups"),
    ]

    fleet = FleetName()
    driver_id = Identifier()
    groups = GroupNames()


class StoredTrip(ImportedTrip):
    """A document of `trips`, a source collection: a trip as imported, and the fleet."""

    validator_expressions: ClassVar[list[Expression]] = [
        _is_identity("trip_id"),
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

    fleet = FleetName()


class StoredFleet(Schema):
    """A document of `fleets`: the state of a fleet, whose name is the `_id`. Every transaction changes it first.

    `writes` is the number of transactions that wrote to the fleet, and `written_at` MongoDB's time in the last one.
    `feed_key` is a random secret that signs the cursors of the change feed, and differs whenever the feed begins from
    scratch. `trips_written_at` is when a trip was last changed (epoch ms). `erasures` is the number of drivers erased.
    `time_zone` is the name of the time zone of its dates, UTC if it is absent. `implausible_trips` says whether its
    sums count implausible trips; absent, they do. `format` is the FORMAT of its read models. It is absent while they
    are built from scratch, and in a fleet of an earlier version.
    """

    writes = Count()
    written_at = Time()
    feed_key = Text()
    trips_written_at = Int64(required=False)
    erasures = Count(required=False)
    time_zone = Text(required=False)
    format = Count(required=False)
    implausible_trips = Text(validate=OneOf(POLICIES), required=False)


class _ReadModel(Schema):
    """A document derived from the sources.

    `version` is a hash of what is returned; fields such as `date` may change without it.
    """

    fleet = FleetName()
    version = Text()


class FleetDrivers(Schema):
    """A document of `fleet_drivers`: a block of the list of a fleet's drivers, which is in order of driver_id.

    `offset` is the number of drivers before the block, and `driver_count` the number of those in it. `drivers` is the
    Driver of each as rendered JSON, in the order of `driver_ids`, and `search_texts` what a search reads of each. The
    document at offset -1 is the head of the list: its `driver_count` is the number of all drivers, and it has no other
    fields.
    """

    fleet = FleetName()
    offset = Int64()
    driver_count = Count()
    first_driver_id = Identifier(required=False)
    driver_ids = List(Identifier(), required=False)
    drivers = List(Text(), required=False)
    search_texts = List(Text(), required=False)
    version = Text(required=False)


class StoredCalendar(Schema):
    """The days of a month on which a driver drove, in order of date: parallel arrays with an element for each day.

    `versions` has the version of the day's document, `last_trip_ends` the latest end (epoch ms) of its trips.
    """

    dates = List(Date())
    trip_counts = List(Count())
    last_trip_ends = List(EpochMs())
    versions = List(Text())


# What a window adds up: parallel arrays with an element for each date of a month, null for one without trips. These are
# the version of the day's document, and the totals in its summary.
DayTotals = Schema.from_dict(
    {
        "versions": List(Text(allow_none=True)),
        **{name: List((Count if name.endswith("_count") else Number)(allow_none=True)) for name in TOTALS},
    },
    name="DayTotals",
)
PointsLost = Schema.from_dict({behaviour.name: Number() for behaviour in BEHAVIOURS}, name="PointsLost")
# See `schemas.fleet`.
Contribution = Schema.from_dict({name: Int64() for name in CONTRIBUTION}, name="Contribution")
ContributionPart = Schema.from_dict(
    {
        INSURANCE_PERIOD: Text(validate=OneOf(INSURANCE_PERIODS)),
        **{name: Int64(required=False) for name in CONTRIBUTION},
    },
    name="ContributionPart",
)
FleetPeriodPart = ContributionPart.from_dict({"json": Text(required=False)}, name="FleetPeriodPart")
# The totals of a day by insurance period.
InsurancePeriodTotals = Schema.from_dict(
    {
        "trip_count": Count(),
        **{name: Number() for name in AMOUNTS},
        "events_summary": Object(EventSummary),
        IMPLAUSIBLE_COUNT: Count(),
    },
    name="InsurancePeriodTotals",
)
InsurancePeriods = Schema.from_dict(
    {name: Object(InsurancePeriodTotals, required=False) for name in INSURANCE_PERIODS}, name="InsurancePeriods"
)


class DriverPeriod(_ReadModel):
    """A document of `driver_periods`: the profile of a driver, or a driver's day, week or month.

    `period` is `profile`, `day`, `week` or `month`. `start_date` is the first date of the day, week or month, and
    absent in a profile. `version` covers the rendered JSON and, for a day, its trips. A profile and a day have `json`:
    the Driver, or the Daily summary. A day, week or month without counted trips has no rendered JSON. A profile also
    has what a search reads, `search_text` (see `schemas.search`), and the `groups` of a driver who is in any, which are
    no part of the version. A day also has its summary as BSON, and its trips in
    order of start and trip_id: `trips` has the summary form of each as rendered JSON, `trip_ends` the end (epoch ms) of
    each. A day, a week and a month have their `contribution` to `fleet_periods`. If a trip has an insurance period,
    they also have its `parts` (`schemas.fleet.make_parts`), and a day has its totals by insurance period. A week and a
    month have their summary as rendered JSON in two fragments: `driving_summary` is the DrivingSummary, `breakdown` the
    object with the other fields. They also have what ranks the driver: `fm_score`, `distance_miles` and `points_lost`.
    A month has the calendar of its days, and their totals.
    """

    driver_id = Identifier()
    period = Text(validate=OneOf((PROFILE, *PERIODS)))
    start_date = Date(required=False)
    json = Text(required=False)
    search_text = Text(required=False)
    groups = GroupNames(required=False)
    summary = Object(DailySummary, required=False)
    driving_summary = Text(required=False)
    breakdown = Text(required=False)
    fm_score = Number(required=False)
    distance_miles = Number(required=False)
    points_lost = Object(PointsLost, required=False)
    trip_count = Count(required=False)
    last_trip_end = EpochMs(required=False)
    trips = List(Text(), required=False)
    trip_ends = List(EpochMs(), required=False)
    calendar = Object(StoredCalendar, required=False)
    day_totals = Object(DayTotals, required=False)
    contribution = Object(Contribution, required=False)
    parts = Objects(ContributionPart, required=False)
    insurance_periods = Object(InsurancePeriods, required=False)


class FleetPeriod(_ReadModel):
    """A document of `fleet_periods`: a day, week or month of a segment of a fleet in which somebody drove.

    `segment` is its name (`schemas.segments`). `sums` is what the contributions of its drivers add up to, and `json`
    the FleetSummary that follows. It is absent if no trip is counted. `parts` is what the parts of the contributions
    add up to, each with the `json` that follows, and absent without any.
    """

    segment = Text()
    period = Text(validate=OneOf(PERIODS))
    start_date = Date()
    sums = Object(Contribution)
    parts = Objects(FleetPeriodPart, required=False)
    json = Text(required=False)


# The values of a trip that are added up in its Daily summary.
TripTotals = Schema.from_dict(
    {**{name: Number() for name in AMOUNTS}, "event_summary": Object(EventSummary)}, name="TripTotals"
)


class StoredTripDetail(_ReadModel):
    """A document of `trip_details`: the filter and sort fields of a trip, its totals, and its detail form.

    It has the `_id` of its source. The detail form is rendered JSON in four fragments: `summary` is the summary form,
    the others are one field each. `implausible` has the kinds of an implausible trip, and is absent for any other;
    `insurance_period` is absent if it is null. `start_key` and `worst_key` have the two orders of lists of trips
    (`make_start_key`, `make_worst_key`).
    """

    validator_expressions: ClassVar[list[Expression]] = [_is_identity("trip_id")]

    trip_id = Identifier()
    tracking_id = Identifier(allow_none=True)
    driver_id = Identifier()
    date = Date()
    trip_start_time = EpochMs()
    trip_end_time = EpochMs()
    start_key = Text()
    worst_key = Text()
    fm_score = Number()
    is_implausible = Flag()
    totals = Object(TripTotals)
    implausible = List(Text(validate=OneOf(IMPLAUSIBLE)), required=False)
    insurance_period = Int64(low=1, high=3, required=False)
    summary = Text()
    focus_area = Text()
    trail_path = Text()
    events = Text()


class StoredTripEvent(FleetEvent):
    """A document of `trip_events`: an event, and what filters it.

    Its `_id` (`make_event_id`) is in the order of the list of events. The collection is stored in this order, so a page
    reads neighbouring documents, whatever its filters. It has no rendered JSON, which would double it. `is_implausible`
    is true for those of an implausible trip, and absent for others.
    """

    # The source has been checked.
    validator_keywords: ClassVar[dict[str, Any]] = {}

    fleet = FleetName()
    trip_end_time = EpochMs()
    is_implausible = Flag(required=False)

    class Meta:
        """The order of the fields."""

        fields = ("fleet", *FleetEvent.Meta.fields, "trip_end_time", "is_implausible")


class ReplacedTrip(Schema):
    """The earlier versions of a trip as one.

    It has the earliest end of them, the number of the last change that replaced one, and when that was (epoch ms).
    """

    trip_end_time = EpochMs()
    change = Count()
    replaced_at = Int64()


class StoredTripChange(Schema):
    """A document of `trip_changes`: a trip, or the tombstone of a deleted trip, which has a `deleted_at`.

    It has the `_id` of the trip's source. `change` is the number, by `writes` of the fleet, of the transaction that
    last changed the trip. `json` is the summary form as rendered JSON, and `version` that of the trip's details.
    `replaced` stands for the earlier versions, and is null without any.
    """

    validator_expressions: ClassVar[list[Expression]] = [_is_identity("trip_id")]

    fleet = FleetName()
    trip_id = Identifier()
    driver_id = Identifier()
    change = Count()
    replaced = Object(ReplacedTrip, allow_none=True)
    tracking_id = Identifier(allow_none=True, required=False)
    trip_end_time = EpochMs(required=False)
    version = Text(required=False)
    json = Text(required=False)
    deleted_at = Time(required=False)


class StoredFile(Schema):
    """A file of a report: its identifier in GridFS, its length in bytes, and a digest of its content."""

    file_id = Text()
    bytes = Count()
    digest = Text()


class StoredReport(Schema):
    """A document of `reports`: a report on the week or month before `report_date`. `built_at` is epoch milliseconds.

    `report_date` and `period` are those of a ReportWindow. `units` are those of the page: miles or km. `trips_version`
    is a version of what the report shows of trips and groups, and absent in a report of an earlier version of the
    service.
    """

    fleet = FleetName()
    report_date = Date()
    period = Text(validate=OneOf(LONG_PERIODS))
    built_at = Int64()
    drivers = Count()
    csv = Object(StoredFile)
    page = Object(StoredFile)
    units = Text()
    trips_version = Text(required=False)


class StoredKey(Schema):
    """A document of `keys`: an API key, with a digest instead of the key. Times are epoch milliseconds.

    `driver_id` is that of the only driver that the key opens, or null for a key of the fleet.
    """

    key_id = Text()
    digest = Text()
    fleet = FleetName()
    driver_id = Identifier(allow_none=True)
    label = Identifier(allow_none=True)
    created_at = Int64()
    expires_at = Int64(allow_none=True)
    revoked_at = Int64(allow_none=True)


class StoredResumeToken(Schema):
    """A document of `resume_tokens`: how far `follow` has applied the change stream, or `mirror` a change feed.

    `token` is the resume token of the change stream in BSON, or the cursor in the change feed of another service.
    `applied_until` is epoch milliseconds: all changes that were committed until then are applied.
    """

    token = Bytes()
    applied_until = Int64()


# The schema of each collection.
STORED: Mapping[str, type[Schema]] = {
    "drivers": StoredDriver,
    "driver_groups": StoredDriverGroups,
    "trips": StoredTrip,
    "fleets": StoredFleet,
    "fleet_drivers": FleetDrivers,
    "driver_periods": DriverPeriod,
    "fleet_periods": FleetPeriod,
    "trip_details": StoredTripDetail,
    "trip_events": StoredTripEvent,
    "trip_changes": StoredTripChange,
    "reports": StoredReport,
    "keys": StoredKey,
    "resume_tokens": StoredResumeToken,
}
