"""Changing a setting of a fleet, and what follows from it, a part in each transaction.

With another time zone, trips move to their dates there. If implausible trips are left out of the sums, or counted, the
days with such trips are added up again.
"""

import heapq
import itertools
import operator
from collections.abc import Iterable, Iterator

from pymongo import ASCENDING, DESCENDING

from app.store import Store
from app.store.fleets import get_time_zone
from scripts.command_line.batches import batches
from scripts.materialize.days import Day, days_of
from scripts.materialize.read_models import materialize
from scripts.materialize.rebuild_and_verify import DAYS_PER_PART, TRIPS_PER_PART
from scripts.materialize.sources import InvalidSource
from scripts.materialize.trips import get_date, read_trips
from scripts.mongodb.connection import BATCH_SIZE, find_identifiers
from scripts.mongodb.transactions import transaction

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


def move_trips(store: Store, fleet: str, invalid: list[InvalidSource]) -> Iterator[int]:
    """Move these trips to their dates. Yields after each transaction how many it was about.

    Each transaction leaves a trip on its old date or on its new one. Adds the invalid sources to `invalid`.
    """
    for trip_ids in batches(find_trips_to_move(store, fleet), TRIPS_PER_PART):
        invalid += _move(store, fleet, trip_ids)
        yield len(trip_ids)


@transaction
def _move(store: Store, fleet: str, trip_ids: list[str]) -> list[InvalidSource]:
    invalid = list[InvalidSource]()
    materialize(store, fleet, (), read_trips(store, fleet, trip_ids, invalid))
    return invalid


def find_implausible_days(store: Store, fleet: str) -> set[Day]:
    """Return the days with implausible trips. Index: trip_details (implausible), which has such trips alone."""
    match = {"fleet": fleet, "implausible": {"$exists": True}}
    found = store.trip_details.find(match, {"_id": 0, "driver_id": 1, "date": 1}, batch_size=BATCH_SIZE)
    return days_of(found.hint("implausible"))


def add_up_again(store: Store, fleet: str, days: Iterable[Day]) -> Iterator[int]:
    """Add up days again. Yields after each transaction how many it was about."""
    for part in batches(sorted(days), DAYS_PER_PART):
        transaction(materialize)(store, fleet, (), {}, part)
        yield len(part)
