"""Changing a setting of a fleet, and what follows from it, a part in each transaction.

With another time zone, trips move to their dates there. If implausible trips are left out of the sums, or counted, the
read models of these trips are written again, and so are their events and days.
"""

import heapq
import itertools
import operator
from collections.abc import Iterable, Iterator

from pymongo import ASCENDING, DESCENDING

from app.store import Store
from app.store.fleets import get_settings, get_time_zone
from schemas.plausibility import LEFT_OUT
from scripts.materialize.read_models import materialize
from scripts.materialize.sources import InvalidSource, divide_trips
from scripts.materialize.trips import get_date, read_trips
from scripts.mongodb.connection import BATCH_SIZE, find_identifiers
from scripts.mongodb.transactions import transaction

TRIPS_PER_TRANSACTION = 100
# The fields of the index day_trips, in its order. So the trips of a driver and date follow one another.
DATED = ("driver_id", "date", "trip_start_time", "trip_id")


@transaction
def set_settings(store: Store, fleet: str, /, **settings: str) -> None:
    """Set `time_zone` or `implausible_trips` of a fleet. From then on, whatever writes trips and days follows them."""
    store.fleets.update_one({"_id": fleet}, {"$set": settings})


def find_trips_to_move(store: Store, fleet: str) -> Iterator[str]:
    """Yield the trip_id of each trip whose read model has not its date in the time zone of the fleet.

    Reads only indexes: trip_details (fleet, driver_id, date, trip_start_time, trip_id), and those of `_id`.
    """
    zone, fields = get_time_zone(store, fleet), {"_id": 0, **dict.fromkeys(DATED, 1)}
    # First those that move to an earlier date, the oldest first; then those that move to a later date, the newest
    # first. So the trips of a driver stay in their order, and a date loses its trips before it gets others.
    for direction, moves in ((ASCENDING, operator.lt), (DESCENDING, operator.gt)):
        order = [(name, direction) for name in DATED]
        trips = store.trip_details.find({"fleet": fleet}, fields, sort=order, batch_size=BATCH_SIZE).hint("day_trips")
        for trip in trips:
            if moves(get_date(trip["trip_start_time"], zone) or "", trip["date"]):
                yield trip["trip_id"]
    # In the former time zone, a trip may have had no date, or no room on it. It has a source, but no read model.
    identifiers = heapq.merge(*(find_identifiers(trips, fleet) for trips in (store.trips, store.trip_details)))
    for trip_id, found in itertools.groupby(identifiers):
        if len(list(found)) == 1:
            yield trip_id


def find_trips_to_count(store: Store, fleet: str) -> Iterator[str]:
    """Yield the trip_id of each trip that the fleet leaves out and its read model counts, or the other way round.

    Index: trip_details (implausible), which has such trips alone.
    """
    _, policy = get_settings(store, fleet)
    differs = {"totals": {"$ne": None} if policy == LEFT_OUT else None}
    match = {"fleet": fleet, "implausible": {"$exists": True}, **differs}
    found = store.trip_details.find(match, {"_id": 0, "trip_id": 1}, batch_size=BATCH_SIZE).hint("implausible")
    return (detail["trip_id"] for detail in found)


def apply_to_trips(store: Store, fleet: str, trip_ids: Iterable[str], invalid: list[InvalidSource]) -> Iterator[int]:
    """Apply the settings of the fleet to trips. Yields after each transaction how many trips it was about.

    Each transaction leaves a trip as it was before or after. Adds the invalid sources to `invalid`.
    """
    for part in divide_trips(store, fleet, trip_ids, TRIPS_PER_TRANSACTION):
        invalid += _apply(store, fleet, part)
        yield len(part)


@transaction
def _apply(store: Store, fleet: str, trip_ids: list[str]) -> list[InvalidSource]:
    invalid = list[InvalidSource]()
    materialize(store, fleet, (), read_trips(store, fleet, trip_ids, invalid))
    return invalid
