"""Rebuilding and verifying the read models of a fleet, over one part of the fleet after another."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import click
from pymongo import ASCENDING
from pymongo.errors import OperationFailure

from app.store import READ_MODELS, Document, DocumentCollection, Store
from app.store.fleets import FORMAT, get_time_zone
from schemas.identity import split_id
from schemas.periods import DAY, FIRST_AND_LAST_DATE, LONG_PERIODS, PERIODS, PROFILE, PeriodName, is_date, midnight
from scripts.command_line.batches import batches
from scripts.materialize.days import Day, make_days
from scripts.materialize.drivers import find_groups_of, make_list, make_profiles
from scripts.materialize.fleet_periods import (
    FleetPeriods,
    add_up_month,
    change_sums,
    count_drivers,
    find_months,
    find_stored_groups,
    find_stored_sums,
)
from scripts.materialize.periods import first_days_of, make_periods
from scripts.materialize.read_models import (
    IDENTITY_FIELDS,
    DamagedReadModels,
    Documents,
    Step,
    build_days,
    build_trips,
    naming_damage,
    select_changed,
    write,
)
from scripts.materialize.sources import InvalidSource, divide_trips, find_invalid_drivers
from scripts.materialize.trips import TRIP_ID, read_trips
from scripts.materialize.unidentified import find_unidentified, is_identified
from scripts.materialize.versions import is_same
from scripts.mongodb.collections import drop_other_indexes, prepare_collections, update_validators
from scripts.mongodb.connection import BATCH_SIZE, find_fleets, find_identifiers
from scripts.mongodb.transactions import make_feed_key, transaction

# Building the details of a trip reads its trail, which may have megabytes.
TRIPS_PER_PART = 100
DAYS_PER_PART = DRIVERS_PER_PART = 500
BY_TRIP = [("trip_id", ASCENDING)]
T = TypeVar("T", str, Day)

# What is built from the sources, and from what stands before it alone, with the collections that are complete with it.
# So each is compared and built again after what it follows from, and no damage there can disturb it.
LAYERS: dict[str, Sequence[str]] = {
    "trips": ("trip_details", "trip_events", "trip_changes"),
    "days": ("driver_periods",),
    "weeks, months and profiles": (),
    "sums": ("fleet_periods",),
    "list": ("fleet_drivers",),
}
# A part of a layer that one transaction builds: what it is of, and these trips, days, drivers or months.
Part = tuple[str, Sequence[Any]]


class Outcome(NamedTuple):
    """The result for a part: the sources left out, and the differences found."""

    invalid: list[InvalidSource]
    differences: list[str]


def rebuild_fleet(store: Store, fleet: str, since: str = "") -> Iterator[Outcome]:
    """Write the read models of the days since a date, and of all drivers. Yields after each transaction.

    Those of another format are deleted before, and all are written, whatever the date. Raises click.ClickException if
    another rebuild has deleted them again since, and DamagedReadModels if one from before the date is damaged.
    """
    state, feed_key = store.fleets.find_one({"_id": fleet}) or {}, None
    if state.get("format") != FORMAT:
        since, feed_key = "", _mark_unfinished(store, fleet)
        for name in READ_MODELS:
            store.db[name].delete_many({"fleet": fleet})
    for layer, names in LAYERS.items():
        _delete_unidentified(store, fleet, find_unidentified(store, fleet, names))
        for part in _find_parts(store, fleet, layer, since):
            yield _rebuild_part(store, fleet, part, since, feed_key)
    if feed_key:
        store.fleets.update_one({"_id": fleet, "feed_key": feed_key}, {"$set": {"format": FORMAT}})


def discard_other_formats(store: Store) -> None:
    """Prepare the collections for a rebuild, whichever version has written them.

    What another version left could refuse a new document or index. So this deletes the indexes of other versions, and
    the read models of all fleets that have another format, or no state. Each of these fleets is then built from scratch
    by the first rebuild that includes it.
    """
    # Those of another version may refuse the state of a fleet.
    update_validators(store)
    current = [state["_id"] for state in store.fleets.find({"format": FORMAT}, {"_id": 1})]
    for fleet in {*find_fleets(store)}.difference(current):
        _mark_unfinished(store, fleet)
    drop_other_indexes(store)
    for name in READ_MODELS:
        store.db[name].delete_many({"fleet": {"$nin": current}})
    prepare_collections(store)


def _mark_unfinished(store: Store, fleet: str) -> str:
    """Remove the format from the state of a fleet, and return the new `feed_key`.

    Then nothing reads the read models, and after a kill the next rebuild begins from scratch again. A client of the
    change feed does so, too.
    """
    feed_key = make_feed_key()
    change = {"$unset": {"format": ""}, "$set": {"feed_key": feed_key}}
    store.fleets.update_one({"_id": fleet}, change, upsert=True)
    return feed_key


def verify_fleet(store: Store, fleet: str) -> Iterator[Outcome]:
    """Compare the read models of a fleet with its sources, and with those that they are built from.

    Ends with the first layer that differs: what follows from it cannot be compared. Yields after each part. Imports may
    run at the same time: each part is read in one committed state, so they cause no differences.
    """
    for layer, names in LAYERS.items():
        unidentified = find_unidentified(store, fleet, names)
        outcomes = itertools.chain(
            [Outcome([], list(map(_describe_unidentified, unidentified)))],
            (_verify(store, fleet, part) for part in _find_parts(store, fleet, layer)),
        )
        has_differences = False
        for outcome in outcomes:
            has_differences |= bool(outcome.differences)
            yield outcome
        if has_differences:
            return


def repair_fleet(store: Store, fleet: str) -> Iterator[Outcome]:
    """Compare all read models of a fleet with its sources, and write those of the parts that have differences."""
    for layer, names in LAYERS.items():
        unidentified = list(find_unidentified(store, fleet, names))
        _delete_unidentified(store, fleet, unidentified)
        yield Outcome([], list(map(_describe_unidentified, unidentified)))
        for part in _find_parts(store, fleet, layer):
            outcome = _verify(store, fleet, part)
            if outcome.differences:
                outcome = _rebuild_part(store, fleet, part)._replace(differences=outcome.differences)
            yield outcome


def _describe_unidentified(found: tuple[str, Any]) -> str:
    name, _id = found
    return f"{name} {_id}: should not be there"


def _delete_unidentified(store: Store, fleet: str, found: Iterable[tuple[str, Any]]) -> None:
    for name, _id in found:
        if name == store.trip_changes.name:
            # Nobody knows of which trip it was.
            store.fleets.update_one({"_id": fleet}, {"$set": {"feed_key": make_feed_key()}})
        store.db[name].delete_one({"_id": _id})


def _verify(store: Store, fleet: str, part: Part) -> Outcome:
    invalid, differences = list[InvalidSource](), list[str]()
    with store.snapshot():
        for collection, documents in _build(store, fleet, part, invalid):
            differences += _compare(collection, fleet, documents)
    return Outcome(invalid, differences)


def _rebuild_part(store: Store, fleet: str, part: Part, since: str = "", feed_key: str | None = None) -> Outcome:
    """Write a part, and with trips that have changed the days that they leave or reach.

    If damage prevents the latter, the days follow with their own part. But no part has those from before a date.
    """
    try:
        return _rebuild(store, fleet, part, feed_key)
    except (DamagedReadModels, OperationFailure):
        kind, trip_ids = part
        if kind != "trips" or since:
            raise
        return _rebuild(store, fleet, ("trips alone", trip_ids), feed_key)


@transaction
def _rebuild(store: Store, fleet: str, part: Part, feed_key: str | None) -> Outcome:
    """Write a part. With a `feed_key`, raises click.ClickException unless it is that of the fleet."""
    if feed_key and not store.fleets.find_one({"_id": fleet, "feed_key": feed_key}, {"_id": 1}):
        raise click.ClickException(
            f"Another command builds the read models of {fleet} from scratch. Run 'driver-analytics rollups rebuild' "
            "again after it has ended."
        )
    invalid = list[InvalidSource]()
    with naming_damage(fleet):
        steps = _with_changes(store, fleet, part, _build(store, fleet, part, invalid))
        write(store, fleet, steps, is_damaged=not feed_key)
    return Outcome(invalid, [])


def _with_changes(store: Store, fleet: str, part: Part, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps of a part, and what has to change in the same transaction although it is in a later part."""
    (kind, _), left = part, set[Day]()
    for collection, documents in steps:
        sums = FleetPeriods()
        if kind == "trips" and collection.name == store.trip_details.name:
            # Afterwards no trip names the day that it leaves.
            trips = {parts[1]: detail for (_id,), detail in documents.items() if (parts := split_id(_id))}
            _, left = select_changed(store, fleet, trips)
        elif kind in PERIODS:
            groups = find_stored_groups(store, fleet, {driver_id for driver_id, *_ in documents})
            sums = change_sums(store, fleet, kind, documents, groups)
        yield collection, documents
        yield store.fleet_periods, sums
    yield from build_days(store, fleet, left, find_groups_of(store, fleet, {day.driver_id for day in left}))


def _build(store: Store, fleet: str, part: Part, invalid: list[InvalidSource]) -> Iterator[Step]:
    """Yield the read models of a part, also of trips whose version is stored: their content may be damaged.

    Adds the invalid sources to `invalid`.
    """
    match part:
        case "trips" | "trips alone", trip_ids:
            yield from build_trips(store, fleet, read_trips(store, fleet, trip_ids, invalid))
        case "day", days:
            yield store.driver_periods, make_days(store, fleet, days)
        case "week" | "month" as period, days:
            # Their groups are those of the sources: the profiles come later.
            groups = find_groups_of(store, fleet, {day.driver_id for day in days})
            first_of, _ = FIRST_AND_LAST_DATE[period]
            firsts = [day for day in days if is_date(day.date) and first_of(day.date) == day.date]
            # A damaged one may begin on any day, such as a week on a Tuesday.
            others = {(driver_id, period, date): None for driver_id, date in days}
            yield store.driver_periods, others | make_periods(store, fleet, period, firsts, groups)
        case "profile", driver_ids:
            invalid += find_invalid_drivers(store, fleet, driver_ids)
            yield store.driver_periods, make_profiles(store, fleet, driver_ids)
        case "sums", [month]:
            yield store.fleet_periods, add_up_month(store, fleet, month)
        case "other sums", dates:
            yield store.fleet_periods, find_stored_sums(store, fleet, {"start_date": {"$in": dates}})
        case "counts", _:
            yield store.fleet_periods, count_drivers(store, fleet)
        case "list", _:
            yield store.fleet_drivers, make_list(store, fleet)


def _compare(collection: DocumentCollection, fleet: str, documents: Documents) -> Iterator[str]:
    """Yield a line for each stored document that differs."""
    if not documents:
        return
    # All identities of a step have the same fields: those of profiles lack the last one. This matches all combinations
    # of their values, so also documents with other identities.
    fields = zip(IDENTITY_FIELDS[collection.name], zip(*documents, strict=True), strict=False)
    values = {name: {"$in": list(set(of_name))} for name, of_name in fields}
    found = collection.find({"fleet": fleet, **values}, None if "_id" in values else {"_id": 0})
    stored = dict[tuple[Any, ...], Document]()
    for document in found:
        # In place of a value, a damaged document may have an array with it.
        identity = tuple(document[name] for name in values)
        if not any(isinstance(value, list) for value in identity):
            stored[identity] = document
    for identity in sorted(documents, key=str):
        if problem := _find_problem(documents[identity], stored.get(identity)):
            yield f"{collection.name} {' '.join(filter(None, map(str, identity)))}: {problem}"


def _find_problem(document: Document | None, stored: Document | None) -> str | None:
    if stored is None:
        return "is missing" if document else None
    if document is None:
        return "should not be there"
    return None if is_same(document, stored) else "differs"


def _find_parts(store: Store, fleet: str, layer: str, since: str = "") -> Iterator[Part]:
    """Yield the parts of a layer of a fleet. The days of a driver may be in several parts."""
    match layer:
        case "trips":
            for trip_ids in divide_trips(store, fleet, _find_trip_ids(store, fleet, since), TRIPS_PER_PART):
                yield layer, trip_ids
        case "days":
            days = _merge(_find_days(store, fleet, since), _find_stored(store, fleet, DAY, since))
            yield from _divide(DAY, days, DAYS_PER_PART)
        case "weeks, months and profiles":
            for period in LONG_PERIODS:
                first_of, _ = FIRST_AND_LAST_DATE[period]
                firsts = first_days_of(period, _find_stored(store, fleet, DAY, since))
                stored = _find_stored(store, fleet, period, since and first_of(since))
                yield from _divide(period, _merge(firsts, stored), DAYS_PER_PART)
            yield from _divide(PROFILE, _find_driver_ids(store, fleet), DRIVERS_PER_PART)
        case "sums":
            months, others = find_months(store, fleet)
            yield from _divide(layer, months, 1)
            yield from _divide("other sums", others, DAYS_PER_PART)
            yield "counts", []
        case "list":
            yield "list", []


def _divide(name: str, values: Iterable[Any], size: int) -> Iterator[Part]:
    return ((name, part) for part in batches(values, size))


def _merge(*streams: Iterable[T]) -> Iterator[T]:
    """Yield each value of streams in order once."""
    return (value for value, _ in itertools.groupby(heapq.merge(*streams)))


def _find_trip_ids(store: Store, fleet: str, since: str) -> Iterator[str]:
    """Yield the trip_id of each trip that started since a date and has a source or a read model, in order.

    Without a date, MongoDB reads only indexes: those of `_id`, and trip_events (fleet, trip_id).
    """
    since_ms = midnight(since, get_time_zone(store, fleet)) if since else 0
    starts = {"trip_start_time": {"$gte": since_ms}} if since else {}
    ends = {"trip_end_time": {"$gte": since_ms}} if since else {}
    streams = (
        find_identifiers(collection, fleet, match)
        for collection, match in ((store.trips, starts), (store.trip_details, starts), (store.trip_changes, ends))
    )
    events = store.trip_events.find({"fleet": fleet, **ends}, TRIP_ID, sort=BY_TRIP, batch_size=BATCH_SIZE)
    of_events = (event["trip_id"] for event in events if is_identified(event, "trip_id"))
    return _merge(*streams, of_events)


def _find_days(store: Store, fleet: str, since: str) -> Iterator[Day]:
    """Yield the days since a date of which details are stored, by driver and date."""
    return _read_days(store.trip_details, {"fleet": fleet}, "date", since)


def _find_stored(store: Store, fleet: str, period: PeriodName, since: str) -> Iterator[Day]:
    """Yield the first days of the stored days, weeks or months that begin since a date, by driver and date."""
    return _read_days(store.driver_periods, {"fleet": fleet, "period": period}, "start_date", since)


def _find_driver_ids(store: Store, fleet: str) -> list[str]:
    """Return the drivers who have a source, also of groups alone, a profile or a day."""
    drivers = {*find_identifiers(store.drivers, fleet), *find_identifiers(store.driver_groups, fleet)}
    for period in (PROFILE, DAY):
        pipeline = [{"$match": {"fleet": fleet, "period": period}}, {"$group": {"_id": "$driver_id"}}]
        drivers.update(found["_id"] for found in store.driver_periods.aggregate(pipeline))
    return sorted(drivers)


def _read_days(collection: DocumentCollection, match: Document, date_field: str, since: str) -> Iterator[Day]:
    """Yield the days of a collection since a date, by driver and date."""
    order, dates = [("driver_id", ASCENDING), (date_field, ASCENDING)], {date_field: {"$gte": since}}
    for document in collection.find({**match, **dates}, {"_id": 0, **dict(order)}, sort=order, batch_size=BATCH_SIZE):
        if is_identified(document, "driver_id", date_field):
            yield Day(document["driver_id"], document[date_field])
