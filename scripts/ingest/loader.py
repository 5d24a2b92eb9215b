"""Loading drivers and trips, whether they come from a file, a pipe or another service: check, batch, write."""

import contextlib
import gc
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from marshmallow import ValidationError

from app.store import Document, Store
from schemas.driver import ImportedDriver
from schemas.periods import MS_PER_DAY, MS_PER_HOUR, now_ms
from schemas.trip import ImportedTrip
from scripts.command_line.output import echo
from scripts.ingest.rejects import Accepted, Record, RecordType, Rejected, Rejects, UtcDay, check
from scripts.materialize.doubts import Doubts
from scripts.materialize.periods import days_of
from scripts.materialize.write_sources import Trip, prepare_driver, prepare_trip, write_drivers, write_trips
from scripts.mongodb.connection import has_data, open_store

# A batch is one transaction, and ends at whichever limit comes first. So memory is bounded, and a transaction takes
# about a second; MongoDB's limit is 60 seconds. A transaction takes longer the more days of drivers it changes.
BATCH_RECORDS = 2_000
BATCH_DAYS = 1_000
BATCH_EVENTS = 10_000
BATCH_BYTES = 16_000_000
# Where records come slowly, a batch ends this long after its first one, so that it is committed within two seconds.
BATCH_SECONDS = 1.0
# A trip that has not ended cannot have been processed. The clock of another system may be ahead of that of this host.
MAX_FUTURE_MS = MS_PER_HOUR
GC_THRESHOLD = 100_000
# After so many bytes of rejected records, the search for cycles takes place all the same.
MAX_REJECTED_BYTES = 5_000_000


def _prepare_ended_trip(fleet: str, trip: Document) -> Trip:
    """Return the documents of a trip (schema ImportedTrip). Raises ValidationError if it ends in the future."""
    if trip["trip_end_time"] > now_ms() + MAX_FUTURE_MS:
        raise ValidationError({"trip_end_time": ["Must not be more than an hour in the future."]})
    return prepare_trip(fleet, trip)


def _doubt_trips(doubts: Doubts, store: Store, fleet: str, trips: Mapping[int, Trip]) -> None:
    for number, trip in trips.items():
        doubts.check(trip.source, number)
    numbers = {trip.source["trip_id"]: number for number, trip in trips.items()}
    doubts.check_overlaps(store, fleet, numbers, days_of(trip.detail for trip in trips.values()))


DRIVERS = RecordType(
    option="--drivers",
    schema=ImportedDriver(),
    prepare=prepare_driver,
    write=write_drivers,
    get_utc_day=lambda driver: None,
    doubt=lambda *drivers: None,
)
TRIPS = RecordType(
    option="--trips",
    schema=ImportedTrip(),
    prepare=_prepare_ended_trip,
    write=write_trips,
    get_utc_day=lambda trip: (trip.source["driver_id"], trip.source["trip_start_time"] // MS_PER_DAY),
    doubt=_doubt_trips,
)


def open_for_loading() -> AbstractContextManager[Store]:
    """Open the store for loading many documents."""
    # The documents have no reference cycles. With the default threshold, the search for cycles takes 10 % of the time.
    gc.set_threshold(GC_THRESHOLD)
    return open_store()


@contextlib.contextmanager
def naming_new_fleet(store: Store, fleet: str) -> Iterator[None]:
    """Name the fleet if the block creates it: the name may be a mistake."""
    is_new = not has_data(store, fleet)
    yield
    if is_new and has_data(store, fleet):
        echo(f"{fleet}: a new fleet", err=True)


def load(
    store: Store,
    fleet: str,
    record_type: RecordType,
    records: Generator[Record | Rejected],
    rejects: Rejects,
    doubts: Doubts,
    max_seconds: float | None = None,
) -> Iterator[int]:
    """Write the valid records, each batch in one transaction. Yields how many were written after each batch.

    Invalid records go to `rejects`. Trips that are not plausible are added to `doubts`, too. `max_seconds` is how long
    the first record of a batch waits for others; None is for ever.
    """
    for batch in make_batches(_check_all(records, fleet, record_type), max_seconds):
        accepted = [item for item in batch if isinstance(item, Accepted)]
        left_out = record_type.write(store, fleet, [item.document for item in accepted]) if accepted else {}
        reasons = {accepted[index].number: reason for index, reason in left_out.items()}
        for item in batch:
            if isinstance(item, Rejected):
                rejects.add(*item)
            elif item.number in reasons:
                rejects.add(item.number, item.content, reasons[item.number])
        written = {item.number: item.document for item in accepted if item.number not in reasons}
        record_type.doubt(doubts, store, fleet, written)
        yield len(written)


def _check_all(
    records: Generator[Record | Rejected], fleet: str, record_type: RecordType
) -> Generator[Accepted | Rejected]:
    rejected_bytes = 0
    with contextlib.closing(records):
        for record in records:
            checked = check(record, fleet, record_type) if isinstance(record, Record) else record
            if isinstance(checked, Rejected):
                if isinstance(record, Record):
                    checked = checked._replace(hint=_get_hint(record.value, record_type))
                # marshmallow's exceptions are in reference cycles, with all that was read of the record.
                rejected_bytes += len(checked.content)
                if rejected_bytes > MAX_REJECTED_BYTES:
                    gc.collect()
                    rejected_bytes = 0
            yield checked


def _get_hint(value: Any, record_type: RecordType) -> str:
    """Return a sentence that the input is of the other type if what is invalid for its own type is valid for that."""
    other = next(other for other in (DRIVERS, TRIPS) if other != record_type)
    with contextlib.suppress(ValidationError):
        if other.schema.load(value):
            return f"these look like {other.option.removeprefix('--')}. Give the file as {other.option}."
    return ""


class _Batch:
    """Records that fit into one transaction."""

    def __init__(self) -> None:
        self.items, self._days, self._size, self.began = list[Accepted | Rejected](), set[UtcDay](), 0, 0.0
        self._events = 0

    def add(self, item: Accepted | Rejected) -> bool:
        """Add a record. Returns whether there was room: the first record always fits."""
        day, size = item.utc_day if isinstance(item, Accepted) else None, len(item.content)
        has_room = len(self.items) < BATCH_RECORDS and self._size + size <= BATCH_BYTES
        events = item.events if isinstance(item, Accepted) else 0
        has_room &= self._events + events <= BATCH_EVENTS
        has_room &= day is None or day in self._days or len(self._days) < BATCH_DAYS
        if self.items and not has_room:
            return False
        self.began = self.began or time.monotonic()
        self.items.append(item)
        self._size += size
        self._events += events
        self._days |= {day} if day else set()
        return True


def make_batches(
    items: Generator[Accepted | Rejected], max_seconds: float | None
) -> Iterator[list[Accepted | Rejected]]:
    """Yield the items in batches. A thread collects the next batch while the caller works on one.

    A batch ends when the next item has no room in it, when there are no more items, or `max_seconds` after its first
    item came. What the items raise is raised here.
    """
    collector = _Collector()
    # A daemon, because it may wait for a line when the command ends.
    threading.Thread(target=collector.collect, args=[items], daemon=True).start()
    try:
        while batch := collector.take(max_seconds):
            yield batch
    finally:
        collector.stop()


class _Collector:
    """The batch that one thread fills and another one takes."""

    def __init__(self) -> None:
        self._changed, self._batch = threading.Condition(), _Batch()
        self._is_full = self._has_ended = self._is_stopped = False
        self._error: BaseException | None = None

    def collect(self, items: Generator[Accepted | Rejected]) -> None:
        """Fill one batch after the other. Waits while a full one has not been taken."""
        try:
            # What reads a file closes it at once.
            with contextlib.closing(items):
                for item in items:
                    with self._changed:
                        while not self._is_stopped and not self._batch.add(item):
                            self._is_full = True
                            self._changed.notify()
                            self._changed.wait()
                        if self._is_stopped:
                            return
                        if len(self._batch.items) == 1:
                            self._changed.notify()
        except BaseException as error:
            self._error = error
        with self._changed:
            self._has_ended = True
            self._changed.notify()

    def take(self, max_seconds: float | None) -> list[Accepted | Rejected]:
        """Wait for a batch, and return its items; none at the end. Raises what the items raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._batch.items or self._has_ended)
            wait = None if max_seconds is None else max(0.0, self._batch.began + max_seconds - time.monotonic())
            self._changed.wait_for(lambda: self._is_full or self._has_ended, wait)
            if self._error:
                raise self._error
            batch, self._batch, self._is_full = self._batch, _Batch(), False
            self._changed.notify()
            return batch.items

    def stop(self) -> None:
        """End the thread that fills batches when it has its next item."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
