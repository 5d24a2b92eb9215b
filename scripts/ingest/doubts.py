"""The trips of an input that are valid, but not plausible: how many of each kind, and the first of each."""

import datetime
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import orjson

from app.store import Store
from app.store.fleets import get_trips_state
from schemas.periods import DAY
from schemas.plausibility import COUNTED, IMPLAUSIBLE, MARGIN_MS, OVERLAP, WORDS, find_kinds
from scripts.materialize.days import Day, group_by_dates


class Doubts:
    """Counts trips by the kinds of what is doubtful about them, and keeps the name of the first of each kind.

    `name` is how a trip is named: "line {number}" or "trip {trip_id}". `implausible_count` is the number of implausible
    trips.
    """

    def __init__(self, name: str) -> None:
        self._name, self.firsts = name, dict[str, str]()
        self.counts, self.implausible_count = Counter[str](), 0

    def check(self, trip: Mapping[str, Any], number: int = 0) -> None:
        """Check a trip (schema ImportedTrip), which has this number in the input."""
        kinds = find_kinds(trip)
        self.implausible_count += not set(kinds).isdisjoint(IMPLAUSIBLE)
        for kind in kinds:
            self._add(kind, trip["trip_id"], number)

    def check_overlaps(self, store: Store, fleet: str, trips: Mapping[str, int], days: Iterable[Day]) -> None:
        """Check whether trips overlap others of their drivers. `trips` has their numbers by trip_id; they are stored.

        Of two trips that overlap, the one that began later is counted if it is in `trips`, and otherwise the other one.
        """
        for pair in _find_overlapping(store, fleet, days):
            if trip_id := next(filter(trips.__contains__, pair), None):
                self._add(OVERLAP, trip_id, trips[trip_id])

    def describe(self, store: Store, fleet: str) -> Iterator[str]:
        """Yield a sentence on each kind, and one on what the sums of the fleet do with implausible trips."""
        for kind, count in self.counts.items():
            yield f"{count} loaded, but with {WORDS[kind]}. The first: {self.firsts[kind]}"
        if self.implausible_count:
            policy, _ = get_trips_state(store, fleet)
            command = f"`driver-analytics fleets set --fleet {fleet} --implausible-trips leave-out`"
            counted = f"count in summaries and scores; {command} leaves them out"
            effect = counted if policy == COUNTED else "are left out of summaries and scores"
            yield f"implausible trips: {self.implausible_count}. They {effect}"

    def _add(self, kind: str, trip_id: str, number: int) -> None:
        self.firsts.setdefault(kind, self._name.format(trip_id=trip_id, number=number))
        self.counts[kind] += 1


def _find_overlapping(store: Store, fleet: str, days: Iterable[Day]) -> Iterator[tuple[str, str]]:
    """Yield each trip that began while an earlier one of its driver lasted, and that trip.

    Trips may last until the next date, so the dates before and after the days are read, too.
    Index: driver_periods (fleet, period, driver_id, start_date).
    """
    around = {Day(driver_id, date) for driver_id, day in days for date in _dates_around(day)}
    for driver_ids, dates in group_by_dates(around):
        match = {"fleet": fleet, "period": DAY, "driver_id": {"$in": driver_ids}, "start_date": {"$in": dates}}
        order = {"driver_id": 1, "start_date": 1}
        found = store.driver_periods.find(match, {"_id": 0, "driver_id": 1, "trips": 1}, sort=order).hint("period")
        for _, of_driver in itertools.groupby(found, lambda document: document["driver_id"]):
            yield from _find_pairs(orjson.loads(trip) for document in of_driver for trip in document["trips"])


def _dates_around(day: str) -> Collection[str]:
    date = datetime.date.fromisoformat(day)
    near = range(max(1, date.toordinal() - 1), min(datetime.date.max.toordinal(), date.toordinal() + 1) + 1)
    return [str(datetime.date.fromordinal(ordinal)) for ordinal in near]


def _find_pairs(trips: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each trip that overlaps an earlier one, and of the earlier ones the one that ends last.

    The trips are in order of their start.
    """
    longest: Mapping[str, Any] = {"trip_end_time": -math.inf}
    for trip in trips:
        end = trip["trip_end_time"]
        if min(end, longest["trip_end_time"]) - trip["trip_start_time"] > MARGIN_MS:
            yield trip["trip_id"], longest["trip_id"]
        if end > longest["trip_end_time"]:
            longest = trip
