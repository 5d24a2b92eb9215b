"""Rebuilding and verifying the read models of a fleet, over one part of the fleet after another."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click
from pymongo import ASCENDING

from app.store import READ_MODELS, Document, DocumentCollection, Store
from app.store.fleets import FORMAT, get_time_zone
from schemas.periods import DAY, PERIODS, PROFILE, midnight
from scripts.command_line.batches import batches
from scripts.materialize.days import Day
from scripts.materialize.drivers import find_groups_of, make_list, make_profiles
from scripts.materialize.fleet_periods import add_up_month, count_drivers, find_months
from scripts.materialize.read_models import (
    IDENTITY_FIELDS,
    Documents,
    Step,
    build_days,
    build_trips,
    select_changed,
    write,
)
from scripts.materialize.sources import InvalidSource, divide_trips, find_invalid_drivers
from scripts.materialize.trips import TRIP_ID, read_trips
from scripts.mongodb.collections import drop_other_indexes, prepare_collections, update_validators
from scripts.mongodb.connection import BATCH_SIZE, find_identifiers
from scripts.mongodb.transactions import make_feed_key, transaction

# Building the details of a trip reads its trail, which may have megabytes.
TRIPS_PER_PART = 100
DAYS_PER_PART = DRIVERS_PER_PART = 500
BY_TRIP = [("trip_id", ASCENDING)]


# A part of a fleet that one transaction builds: which read models, and their trips, days, drivers or month.
Part = tuple[str, Sequence[Any]]


class Outcome(NamedTuple):
    """The result for a part: the sources left out, and the differences found."""

    invalid: list[InvalidSource]
    differences: list[str]


def rebuild_fleet(store: Store, fleet: str, since: str = "") -> Iterator[Outcome]:
    """Write the read models of the days since a date, and of all drivers. Yields after each transaction.

    Those of another format are deleted before, and all are written, whatever the date. Raises click.ClickException if
    another rebuild has deleted them again since.
    """
    state, feed_key = store.fleets.find_one({"_id": fleet}) or {}, None
    if state.get("format") != FORMAT:
        since, feed_key = "", _mark_unfinished(store, fleet)
        for name in READ_MODELS:
            store.db[name].delete_many({"fleet": fleet})
    for part in _find_parts(store, fleet, since):
        yield _rebuild(store, fleet, part, feed_key)
    if feed_key:
        store.fleets.update_one({"_id": fleet, "feed_key": feed_key}, {"$set": {"format": FORMAT}})


def discard_other_formats(store: Store) -> None:
    """Prepare the collections for a rebuild, whichever version has written them.

    What another version left could refuse a new document or index. So this deletes the indexes of other versions, and
    the read models of all fleets that have another format, or no state. Each of these fleets is then built from scratch
    by the first rebuild that includes it.
    """
    current = {"format": FORMAT}
    # Those of another version may refuse the state of a fleet.
    update_validators(store)
    for state in store.fleets.find({"$nor": [current]}, {"_id": 1}):
        _mark_unfinished(store, state["_id"])
    drop_other_indexes(store)
    fleets = [state["_id"] for state in store.fleets.find(current, {"_id": 1})]
    for name in READ_MODELS:
        store.db[name].delete_many({"fleet": {"$nin": fleets}})
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
    """Compare all read models of a fleet with its sources. Yields after each part.

    Imports may run at the same time: each part is read in one committed state, so they cause no differences.
    """
    for part in _find_parts(store, fleet):
        yield _verify(store, fleet, part)


def repair_fleet(store: Store, fleet: str) -> Iterator[Outcome]:
    """Compare all read models of a fleet with its sources, and write those of the parts that have differences."""
    for part in _find_parts(store, fleet):
        outcome = _verify(store, fleet, part)
        if outcome.differences:
            outcome = _rebuild(store, fleet, part)._replace(differences=outcome.differences)
        yield outcome


def _verify(store: Store, fleet: str, part: Part) -> Outcome:
    invalid, differences = list[InvalidSource](), list[str]()
    with store.snapshot():
        for collection, documents in _build(store, fleet, part, invalid):
            differences += _compare(collection, fleet, documents)
    return Outcome(invalid, differences)


@transaction
def _rebuild(store: Store, fleet: str, part: Part, feed_key: str | None = None) -> Outcome:
    """Write a part. With a `feed_key`, raises click.ClickException unless it is that of the fleet."""
    if feed_key and not store.fleets.find_one({"_id": fleet, "feed_key": feed_key}, {"_id": 1}):
        raise click.ClickException(
            f"Another command builds the read models of {fleet} from scratch. Run 'driver-analytics rollups rebuild' "
            "again after it has ended."
        )
    invalid = list[InvalidSource]()
    write(store, fleet, _build(store, fleet, part, invalid))
    return Outcome(invalid, [])


def _build(store: Store, fleet: str, part: Part, invalid: list[InvalidSource]) -> Iterator[Step]:
    """Yield the read models of a part, also of trips whose version is stored: their content may be damaged.

    Adds the invalid sources to `invalid`.
    """
    match part:
        case "trips", trip_ids:
            trips = read_trips(store, fleet, trip_ids, invalid)
            # The day that a trip leaves is built with it: afterwards no trip names that day, which may be before
            # `since`.
            _, days = select_changed(store, fleet, trips)
            yield from build_trips(store, fleet, trips)
            yield from _build_days(store, fleet, days)
        case "days", days:
            yield from _build_days(store, fleet, days)
        case "profiles", driver_ids:
            invalid += find_invalid_drivers(store, fleet, driver_ids)
            yield store.driver_periods, make_profiles(store, fleet, driver_ids)
        case "sums", [month]:
            yield store.fleet_periods, add_up_month(store, fleet, month)
        case "driver counts", _:
            yield store.fleet_periods, count_drivers(store, fleet)
        case "list", _:
            yield store.fleet_drivers, make_list(store, fleet)


def _build_days(store: Store, fleet: str, days: Iterable[Day]) -> Iterator[Step]:
    """Yield the steps of days. Their groups are those of the sources: the profiles come later, and may be damaged."""
    groups = find_groups_of(store, fleet, {day.driver_id for day in days})
    return build_days(store, fleet, days, groups)


def _compare(collection: DocumentCollection, fleet: str, documents: Documents) -> Iterator[str]:
    """Yield a line for each stored document that differs."""
    if not documents:
        return
    # All identities of a step have the same fields: those of profiles lack the last one. This matches all combinations
    # of their values, so also documents with other identities.
    fields = zip(IDENTITY_FIELDS[collection.name], zip(*documents, strict=True), strict=False)
    values = {name: {"$in": sorted(set(of_name))} for name, of_name in fields}
    found = collection.find({"fleet": fleet, **values}, None if "_id" in values else {"_id": 0})
    stored = {tuple(document[name] for name in values): document for document in found}
    for identity in sorted(documents):
        if documents[identity] != stored.get(identity):
            expected = "differs" if documents[identity] else "should not be there"
            problem = expected if identity in stored else "is missing"
            yield f"{collection.name} {' '.join(filter(None, map(str, identity)))}: {problem}"


def _find_parts(store: Store, fleet: str, since: str = "") -> Iterator[Part]:
    """Yield the parts of a fleet: all trips, days and profiles, sums by month, numbers of drivers, and the list.

    The days of a driver may be in several parts.
    """
    for trip_ids in divide_trips(store, fleet, _find_trip_ids(store, fleet, since), TRIPS_PER_PART):
        yield "trips", trip_ids
    for days in batches(_find_days(store, fleet, since), DAYS_PER_PART):
        yield "days", days
    for driver_ids in batches(_find_driver_ids(store, fleet), DRIVERS_PER_PART):
        yield "profiles", driver_ids
    for month in find_months(store, fleet):
        yield "sums", [month]
    yield "driver counts", []
    yield "list", []


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
    for trip_id, _ in itertools.groupby(heapq.merge(*streams, (event["trip_id"] for event in events))):
        yield trip_id


def _find_days(store: Store, fleet: str, since: str) -> Iterator[Day]:
    """Yield the days since a date of which details or days are stored, and the first dates of weeks and months.

    They are in order of driver and date.
    """
    # Damaged details may have an empty date.
    dates = {"$gte": since or "0001-01-01"}
    streams = [
        _read_days(store.trip_details, {"fleet": fleet, "date": dates}, "date"),
        *(
            _read_days(store.driver_periods, {"fleet": fleet, "period": name, "start_date": dates}, "start_date")
            for name in PERIODS
        ),
    ]
    for day, _ in itertools.groupby(heapq.merge(*streams)):
        yield day


def _find_driver_ids(store: Store, fleet: str) -> list[str]:
    """Return the drivers who have a source, also of groups alone, a profile or a day."""
    drivers = {*find_identifiers(store.drivers, fleet), *find_identifiers(store.driver_groups, fleet)}
    for period in (PROFILE, DAY):
        pipeline = [{"$match": {"fleet": fleet, "period": period}}, {"$group": {"_id": "$driver_id"}}]
        drivers.update(found["_id"] for found in store.driver_periods.aggregate(pipeline))
    return sorted(drivers)


def _read_days(collection: DocumentCollection, match: Document, date_field: str) -> Iterator[Day]:
    """Yield the days of a collection by driver and date."""
    order = [("driver_id", ASCENDING), (date_field, ASCENDING)]
    for document in collection.find(match, {"_id": 0, **dict(order)}, sort=order, batch_size=BATCH_SIZE):
        yield Day(document["driver_id"], document[date_field])
