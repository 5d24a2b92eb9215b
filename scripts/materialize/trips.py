"""Writing trips and the read models that depend on them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import click
from bson import ObjectId
from pymongo import DeleteOne, InsertOne, ReplaceOne
from pymongo.client_session import ClientSession
from pymongo.errors import BulkWriteError

from app.store import Document, DocumentCollection, Store
from scripts.materialize.dates import days_of
from scripts.materialize.documents import make_trip_detail
from scripts.materialize.feed import delete_from_feed, find_without_source, forget_in_feed, update_feed
from scripts.materialize.update import run_transaction, update_read_models

DUPLICATE_KEY = 11_000
# By which to tell whether the details of a trip differ, and which day they are of.
DAY_AND_VERSION = {"trip_id": 1, "driver_id": 1, "date": 1, "version": 1}


class Trip(NamedTuple):
    """The documents of a trip in `trips` (schema StoredTrip) and in `trip_details`, both without `_id`."""

    source: Document
    detail: Document


def prepare_trip(fleet: str, trip: Document) -> Trip:
    """Return the documents of a trip (schema ImportedTrip)."""
    return Trip({"fleet": fleet, **trip}, make_trip_detail(fleet, trip))


def write_trips(store: Store, fleet: str, trips: Sequence[Trip]) -> None:
    """Write trips in one transaction. Of several with the same trip_id, the last one is written."""
    newest = {trip.source["trip_id"]: trip for trip in trips}
    run_transaction(store, fleet, lambda session: _write_trips(store, session, fleet, newest))


def _write_trips(store: Store, session: ClientSession, fleet: str, trips: Mapping[str, Trip]) -> None:
    match = {"fleet": fleet, "trip_id": {"$in": list(trips)}}
    sources = {source["trip_id"]: source for source in store.trips.find(match, session=session)}
    details = {detail["trip_id"]: detail for detail in store.trip_details.find(match, DAY_AND_VERSION, session=session)}
    new_sources, new_details = dict[str, Document](), dict[str, Document]()
    kept_ids = _find_kept_ids(store, session, sources, details)
    for trip_id, trip in trips.items():
        # A trip has the same _id in both collections.
        _id = kept_ids.get(trip_id) or ObjectId()
        # Another program may have changed the source.
        if sources.get(trip_id) != (source := {"_id": _id, **trip.source}):
            new_sources[trip_id] = source
        if trip_id in new_sources or details.get(trip_id, {}).get("version") != trip.detail["version"]:
            new_details[trip_id] = {"_id": _id, **trip.detail}
    write_documents(store.trips, session, fleet, new_sources, sources)
    write_documents(store.trip_details, session, fleet, new_details, details)
    update_feed(store, session, fleet, new_details)
    replaced = [details[trip_id] for trip_id in new_details if trip_id in details]
    update_read_models(store, session, fleet, days_of([*replaced, *new_details.values()]))


def _find_kept_ids(
    store: Store, session: ClientSession, sources: Mapping[str, Document], details: Mapping[str, Document]
) -> dict[str, Any]:
    """Return the `_id` of the sources by trip_id, but for those that the details of another trip have.

    Another program has given such a source another fleet or trip_id, and `follow` has not applied that yet. It finds
    the details by their `_id`, so they keep it.
    """
    ids = {trip_id: source["_id"] for trip_id, source in sources.items()}
    unknown = {trip_id: _id for trip_id, _id in ids.items() if details.get(trip_id, {}).get("_id") != _id}
    if unknown:
        match = {"_id": {"$in": list(unknown.values())}}
        taken = [detail["_id"] for detail in store.trip_details.find(match, {"_id": 1}, session=session)]
        ids = {trip_id: _id for trip_id, _id in ids.items() if trip_id not in unknown or _id not in taken}
    return ids


def write_documents(
    collection: DocumentCollection,
    session: ClientSession,
    fleet: str,
    documents: Mapping[str, Document | None],
    stored: Mapping[str, Document],
) -> None:
    """Write documents of `trips` or `trip_details` by trip_id, or delete those that are None.

    `stored` has the stored ones of these, with `_id`. Raises click.ClickException if another document has an `_id`.
    """
    deletions, writes = list[DeleteOne](), list[InsertOne[Document] | ReplaceOne[Document]]()
    for trip_id, document in documents.items():
        match = {"fleet": fleet, "trip_id": trip_id}
        if document and trip_id in stored and stored[trip_id]["_id"] == document["_id"]:
            writes.append(ReplaceOne(match, document))
        else:
            # MongoDB cannot change an _id.
            deletions += [DeleteOne(match)] if trip_id in stored else []
            writes += [InsertOne(document)] if document else []
    # Deletions come first: an _id may have moved from one trip to another.
    if operations := [*deletions, *writes]:
        try:
            collection.bulk_write(operations, session=session)
        except BulkWriteError as error:
            if any(failure["code"] != DUPLICATE_KEY for failure in error.details["writeErrors"]):
                raise
            raise click.ClickException(
                f"Another program moved trips of other fleets to the fleet {fleet}, and the read models do not show it "
                "yet. Start 'driver-analytics follow', or run 'driver-analytics rollups rebuild' for all fleets."
            ) from error


def delete_trips(
    store: Store,
    fleet: str,
    trip_ids: Sequence[str],
    condition: Mapping[str, Any] = MappingProxyType({}),
    *,
    in_feed: bool = True,
) -> int:
    """Delete those of the trips that meet a condition, in one transaction, with all that is derived from them.

    Read models of trips without a source are deleted, too. The change feed reports the deletions; if `in_feed` is
    false, it has no entries of these trips afterwards. Returns how many sources were deleted.
    """

    def delete(session: ClientSession) -> int:
        match = {"fleet": fleet, "trip_id": {"$in": list(trip_ids)}}
        count = store.trips.delete_many({**condition, **match}, session=session).deleted_count
        gone = find_without_source(store, fleet, list(trip_ids), session)
        match_gone = {"fleet": fleet, "trip_id": {"$in": gone}}
        days = days_of(store.trip_details.find(match_gone, DAY_AND_VERSION, session=session))
        store.trip_details.delete_many(match_gone, session=session)
        (delete_from_feed if in_feed else forget_in_feed)(store, session, fleet, gone)
        update_read_models(store, session, fleet, days)
        return count

    return run_transaction(store, fleet, delete)


def rewrite_trips(store: Store, fleet: str, trip_ids: Sequence[str]) -> None:
    """Write again what is derived from those of the trips that have a source, in one transaction."""

    def rewrite(session: ClientSession) -> None:
        match = {"fleet": fleet, "trip_id": {"$in": list(trip_ids)}}
        sources = store.trips.find(match, {"_id": 0}, session=session)
        trips = {source["trip_id"]: prepare_trip(fleet, source) for source in sources}
        _write_trips(store, session, fleet, trips)
        update_feed(store, session, fleet, {trip_id: trip.detail for trip_id, trip in trips.items()})

    run_transaction(store, fleet, rewrite)
