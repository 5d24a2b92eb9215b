"""Writing trips and the read models that depend on them."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from bson import ObjectId
from pymongo import InsertOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
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
    ids = {source["trip_id"]: source["_id"] for source in store.trips.find(match, {"trip_id": 1}, session=session)}
    details = {detail["trip_id"]: detail for detail in store.trip_details.find(match, IDENTITY, session=session)}
    changed = {
        trip_id: trip
        for trip_id, trip in trips.items()
        if trip_id not in ids or details.get(trip_id, {}).get("version") != trip.detail["version"]
    }
    if not changed:
        return
    # A trip has the same _id in both collections.
    new_ids = {trip_id: ids.get(trip_id) or ObjectId() for trip_id in changed}
    sources = {trip_id: trip.source for trip_id, trip in changed.items()}
    new_details = {trip_id: trip.detail for trip_id, trip in changed.items()}
    store.trips.bulk_write(_operations(fleet, sources, ids, new_ids), ordered=False, session=session)
    store.trip_details.bulk_write(_operations(fleet, new_details, details, new_ids), ordered=False, session=session)
    update_feed(store, session, fleet, new_details)
    replaced = [details[trip_id] for trip_id in changed if trip_id in details]
    update_read_models(store, session, fleet, _days([*replaced, *new_details.values()]))


def _operations(
    fleet: str, documents: Mapping[str, Document], stored: Container[str], new_ids: Mapping[str, ObjectId]
) -> list[InsertOne[Document] | ReplaceOne[Document]]:
    """Return the operations that write documents by trip_id: replace those that are stored, insert the others."""
    return [
        ReplaceOne({"fleet": fleet, "trip_id": trip_id}, document)
        if trip_id in stored
        else InsertOne({"_id": new_ids[trip_id], **document})
        for trip_id, document in documents.items()
    ]


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
