"""Writing trips and the read models that depend on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bson import ObjectId
from pymongo import DeleteOne, InsertOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Documents, Store
from scripts.materialize.dates import Day
from scripts.materialize.documents import make_trip_detail
from scripts.materialize.feed import delete_from_feed, update_feed
from scripts.materialize.update import run_transaction, update_read_models

IDENTITY = {"trip_id": 1, "driver_id": 1, "date": 1, "version": 1}


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
    details = {detail["trip_id"]: detail for detail in store.trip_details.find(match, IDENTITY, session=session)}
    new_sources, new_details = dict[str, Document](), dict[str, Document]()
    for trip_id, trip in trips.items():
        # A trip has the same _id in both collections.
        _id = (sources.get(trip_id) or details.get(trip_id) or {"_id": ObjectId()})["_id"]
        # Another program may have changed the source.
        if sources.get(trip_id) != (source := {"_id": _id, **trip.source}):
            new_sources[trip_id] = source
        if trip_id in new_sources or details.get(trip_id, {}).get("version") != trip.detail["version"]:
            new_details[trip_id] = {"_id": _id, **trip.detail}
    write_documents(store.trips, session, fleet, new_sources, sources)
    write_documents(store.trip_details, session, fleet, new_details, details)
    update_feed(store, session, fleet, new_details)
    replaced = [details[trip_id] for trip_id in new_details if trip_id in details]
    update_read_models(store, session, fleet, _days([*replaced, *new_details.values()]))


def write_documents(
    collection: Documents,
    session: ClientSession,
    fleet: str,
    documents: Mapping[str, Document | None],
    stored: Mapping[str, Document],
) -> None:
    """Write documents of `trips` or `trip_details` by trip_id, or delete those that are None.

    `stored` has the stored ones of these, with `_id`.
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
        collection.bulk_write(operations, session=session)


def delete_trips(store: Store, fleet: str, trip_ids: Sequence[str]) -> None:
    """Delete trips in one transaction, with all that is derived from them. The change feed reports the deletions."""

    def delete(session: ClientSession) -> None:
        match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
        days = _days(store.trip_details.find(match, IDENTITY, session=session))
        store.trips.delete_many(match, session=session)
        store.trip_details.delete_many(match, session=session)
        delete_from_feed(store, session, fleet, list(trip_ids))
        update_read_models(store, session, fleet, days)

    run_transaction(store, fleet, delete)


def _days(details: Iterable[Document]) -> set[Day]:
    return {Day(detail["driver_id"], detail["date"]) for detail in details}
