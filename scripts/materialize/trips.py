"""Writing trips, with everything that follows from them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bson import ObjectId
from pymongo import InsertOne, ReplaceOne
from pymongo.client_session import ClientSession

from app.store import Document, Store
from scripts.materialize.dates import Day
from scripts.materialize.documents import make_trip_detail
from scripts.materialize.update import update, write

IDENTITY = {"trip_id": 1, "driver_id": 1, "date": 1, "version": 1}


class Trip(NamedTuple):
    """A trip (schema ImportedTrip) and the read model that is made of it."""

    source: Document
    detail: Document


def prepare_trip(fleet: str, trip: Document) -> Trip:
    """Return a trip ready to be written."""
    return Trip({"fleet": fleet, **trip}, make_trip_detail(fleet, trip))


def write_trips(store: Store, fleet: str, trips: Sequence[Trip]) -> None:
    """Write trips in one transaction, a later one over an earlier one of the same trip_id."""
    newest = {trip.source["trip_id"]: trip for trip in trips}
    write(store, fleet, lambda session: _write_trips(store, session, fleet, newest))


def _write_trips(store: Store, session: ClientSession, fleet: str, trips: Mapping[str, Trip]) -> None:
    match = {"fleet": fleet, "trip_id": {"$in": list(trips)}}
    ids = {found["trip_id"]: found["_id"] for found in store.trips.find(match, {"trip_id": 1}, session=session)}
    details = {found["trip_id"]: found for found in store.trip_details.find(match, IDENTITY, session=session)}
    changed = {
        trip_id: trip
        for trip_id, trip in trips.items()
        if trip_id not in ids or details.get(trip_id, {}).get("version") != trip.detail["version"]
    }
    if not changed:
        return
    new_ids = {trip_id: ids.get(trip_id) or ObjectId() for trip_id in changed}
    for collection, documents in (
        (store.trips, {trip_id: trip.source for trip_id, trip in changed.items()}),
        (store.trip_details, {trip_id: trip.detail for trip_id, trip in changed.items()}),
    ):
        known = ids if collection is store.trips else details
        collection.bulk_write(
            [
                ReplaceOne({"fleet": fleet, "trip_id": trip_id}, document)
                if trip_id in known
                else InsertOne({"_id": new_ids[trip_id], **document})
                for trip_id, document in documents.items()
            ],
            ordered=False,
            session=session,
        )
    replaced = [details[trip_id] for trip_id in changed if trip_id in details]
    update(store, session, fleet, _days([*replaced, *(trip.detail for trip in changed.values())]))


def delete_trips(store: Store, fleet: str, trip_ids: Sequence[str]) -> None:
    """Delete trips in one transaction."""

    def delete(session: ClientSession) -> None:
        match = {"fleet": fleet, "trip_id": {"$in": trip_ids}}
        days = _days(store.trip_details.find(match, IDENTITY, session=session))
        store.trips.delete_many(match, session=session)
        store.trip_details.delete_many(match, session=session)
        update(store, session, fleet, days)

    write(store, fleet, delete)


def _days(details: Iterable[Document]) -> set[Day]:
    return {Day(detail["driver_id"], detail["date"]) for detail in details}
