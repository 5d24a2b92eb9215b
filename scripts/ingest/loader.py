"""Loading drivers and trips, whether they come from a file, a pipe or another service: check, batch, write."""

import gc
import threading
import time
from collections.abc import Generator, Iterator

from app.store import Store
from scripts.ingest.doubts import Doubts
from scripts.ingest.records import Accepted, Record, RecordType, Rejected, Rejects, check

# A batch is one transaction, and ends at whichever limit comes first. So memory is bounded, and a transaction takes
# about a second, or four if each trip is of another day or driver; MongoDB's limit is 60 seconds.
BATCH_RECORDS = 2_000
BATCH_EVENTS = 10_000
BATCH_BYTES = 16_000_000
# Where records come slowly, a batch ends this long after its first one, so that it is committed within two seconds.
BATCH_SECONDS = 1.0
GC_THRESHOLD = 100_000
# After so many bytes of rejected records, the search for cycles takes place all the same.
MAX_REJECTED_BYTES = 5_000_000


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
    # The documents have no reference cycles. With the default threshold, the search for cycles takes 10 % of the time.
    gc.set_threshold(GC_THRESHOLD)
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
    for record in records:
        checked = check(record, fleet, record_type) if isinstance(record, Record) else record
        if isinstance(checked, Rejected):
            # marshmallow's exceptions are in reference cycles, with all that was read of the record.
            rejected_bytes += len(checked.content)
            if rejected_bytes > MAX_REJECTED_BYTES:
                gc.collect()
                rejected_bytes = 0
        yield checked


class _Batch:
    """Records that fit into one transaction."""

    def __init__(self) -> None:
        self.items, self.began = list[Accepted | Rejected](), 0.0
        self._events = self._bytes = 0

    def add(self, item: Accepted | Rejected) -> bool:
        """Add a record. Returns whether there was room: the first record always fits."""
        events = item.events if isinstance(item, Accepted) else 0
        has_room = (
            len(self.items) < BATCH_RECORDS
            and self._events + events <= BATCH_EVENTS
            and self._bytes + len(item.content) <= BATCH_BYTES
        )
        if self.items and not has_room:
            return False
        self.began = self.began or time.monotonic()
        self.items.append(item)
        self._events += events
        self._bytes += len(item.content)
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
    while batch := collector.take(max_seconds):
        yield batch


class _Collector:
    """The batch that one thread fills and another one takes."""

    def __init__(self) -> None:
        self._changed, self._batch = threading.Condition(), _Batch()
        self._is_full = self._has_ended = False
        self._error: BaseException | None = None

    def collect(self, items: Generator[Accepted | Rejected]) -> None:
        """Fill one batch after the other. Waits while a full one has not been taken."""
        try:
            for item in items:
                with self._changed:
                    while not self._batch.add(item):
                        self._is_full = True
                        self._changed.notify()
                        self._changed.wait()
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
