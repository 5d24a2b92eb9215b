"""`driver-analytics follow`: applies what other programs write to the sources, as they write it."""

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import click
from prometheus_client import CollectorRegistry, Counter, Gauge
from pymongo.errors import PyMongoError

from app.database import get_refusal
from app.logs import make_logger
from app.store import SOURCES, Store
from schemas.identity import split_id
from schemas.periods import now_ms
from schemas.plausibility import WORDS
from scripts.command_line.batches import batches
from scripts.command_line.metrics_server import serve_metrics
from scripts.command_line.output import echo, with_progress
from scripts.command_line.signals import end_on_signals
from scripts.ingest.change_stream import Batch, ChangeStream, ResumeTokenLost
from scripts.ingest.doubts import Doubts
from scripts.ingest.resume_tokens import FOLLOW, ResumeToken, get_resume_token, save_resume_token
from scripts.materialize.days import days_of
from scripts.materialize.read_models import MOVES_PER_TRANSACTION, materialize
from scripts.materialize.rebuild_and_verify import repair_fleet
from scripts.materialize.sources import InvalidSource, divide_trips, find_invalid_drivers, find_unidentified
from scripts.materialize.trips import read_trips
from scripts.mongodb.collections import prepare_collections
from scripts.mongodb.connection import find_fleets, open_store, read_config
from scripts.mongodb.transactions import NothingToWrite, transaction

PREFIX = "driver_analytics_follow"
RETRY_SECONDS = 1.0
# How often the resume token is stored without changes, so that it stays in the oplog.
SAVE_SECONDS = 10.0
TRIPS_PER_TRANSACTION = 1_000


@click.command()
def follow() -> None:
    """Apply what other programs write to drivers, driver_groups and trips.

    They may insert, update, replace and delete documents of the collections. The command keeps the read models, which
    the API reads, up to date. docs/data.md describes the documents.

    It runs until Ctrl-C or SIGTERM. Started again, it resumes where it stopped. At the first start it compares all
    documents.
    """
    config = read_config()
    metrics = FollowMetrics()
    if config.metrics_bind:
        serve_metrics(config.metrics_bind, metrics.registry)
    with open_store(config) as store:
        end_on_signals()
        log = make_logger(logging.getLevelNamesMapping()[config.log_level])
        for _ in Follower(store, metrics, log).follow():
            pass


class FollowMetrics:
    """The metrics of a process, and their registry. `until_ms` is the time until which all changes are applied."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.until_ms = now_ms()
        lag = Gauge(f"{PREFIX}_lag_seconds", "Age of the oldest change that may not be applied.", registry=registry)
        lag.set_function(lambda: max(0.0, time.time() - self.until_ms / 1000))
        self.changes = self._count("changes", "Changes that were read, those of the commands included.")
        self.invalid = self._count("invalid_documents", "Invalid source documents that were left out.")
        self.doubtful = self._count("doubtful_trips", "Trips that are not plausible, by kind.", "kind")
        for kind in WORDS:
            # So that a kind is 0, not absent, before its first trip.
            self.doubtful.labels(kind)
        self.comparisons = self._count("comparisons", "Comparisons of all documents, without a usable resume token.")
        self.repairs = self._count("repairs", "Documents of read models that such a comparison repaired.")

    def _count(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", description, labels, registry=self.registry)


class Follower:
    """Follows the change stream, and applies the changes."""

    def __init__(self, store: Store, metrics: FollowMetrics, log: Any) -> None:
        self._store, self._metrics, self._log = store, metrics, log
        self._saved, self._is_ready, self._is_lost = 0.0, False, False

    def follow(self) -> Iterator[Batch]:
        """Apply the changes from the stored resume token on, and yield each batch, whatever happens to MongoDB.

        Raises PyMongoError if MongoDB refuses the user.
        """
        while True:
            try:
                yield from self._follow()
            except ResumeTokenLost as error:
                self._log.error("resume token lost", reason=str(error))
                self._is_lost = True
            except PyMongoError as error:
                if get_refusal(error):
                    raise
                self._log.warning("MongoDB failed", error=type(error).__name__)
                time.sleep(RETRY_SECONDS)

    def _follow(self) -> Iterator[Batch]:
        resume_token = (None if self._is_lost else get_resume_token(self._store, FOLLOW)) or self._compare()
        self._metrics.until_ms = resume_token.until_ms
        with ChangeStream(self._store, resume_token) as stream:
            self._log.info("following the change stream")
            if not self._is_ready:
                echo(f"Following {', '.join(f'{self._store.db.name}.{name}' for name in SOURCES)}")
                self._is_ready = True
            while True:
                batch = stream.read()
                self._apply(batch)
                yield batch

    def _compare(self) -> ResumeToken:
        """Compare all documents, repair what differs, and return the resume token from before the comparison."""
        self._metrics.comparisons.inc()
        self._log.warning("comparing all documents")
        # A collection that was dropped has lost its validator and its indexes.
        prepare_collections(self._store)
        with ChangeStream(self._store) as stream:
            resume_token = stream.resume_token()
        self._log_left_out(find_unidentified(self._store))
        repaired = sum(map(self._repair, find_fleets(self._store)))
        self._metrics.repairs.inc(repaired)
        self._log.warning(
            "all documents are compared", repaired=repaired, seconds=(now_ms() - resume_token.until_ms) // 1000
        )
        save_resume_token(self._store, FOLLOW, resume_token)
        self._is_lost = False
        return resume_token

    def _repair(self, fleet: str) -> int:
        """Repair the read models of a fleet, and return how many documents differed."""
        count = 0
        for outcome in with_progress(fleet, repair_fleet(self._store, fleet)):
            self._log_left_out(outcome.invalid)
            count += len(outcome.differences)
        return count

    def _apply(self, batch: Batch) -> None:
        self._log_left_out(InvalidSource.unidentified(name, _id) for name, _id in batch.documents if not split_id(_id))
        for fleet, driver_ids, trip_ids in divide(self._store, batch.documents):
            invalid, doubts = apply_changes(self._store, fleet, driver_ids, trip_ids)
            self._log_left_out(invalid)
            for kind, count in doubts.counts.items():
                self._metrics.doubtful.labels(kind).inc(count)
                self._log.warning("trips not plausible", fleet=fleet, kind=kind, count=count, first=doubts.firsts[kind])
        # After a kill before this, the changes of the batch are applied again, which changes nothing.
        if batch.documents or time.monotonic() - self._saved > SAVE_SECONDS:
            save_resume_token(self._store, FOLLOW, batch.resume_token)
            self._saved = time.monotonic()
        self._metrics.changes.inc(batch.change_count)
        self._metrics.until_ms = batch.resume_token.until_ms

    def _log_left_out(self, invalid: Iterable[InvalidSource]) -> None:
        for source in invalid:
            self._metrics.invalid.inc()
            names = {"collection": source.collection, "source_id": source.printable_id, "reason": source.reason}
            self._log.error("document left out", **names)


def divide(
    store: Store, documents: Iterable[tuple[str, Any]]
) -> Iterator[tuple[str, Collection[str], Collection[str]]]:
    """Divide changed documents, each a collection and an `_id`, by fleet and within the limits of a transaction.

    Yields a fleet, drivers and trips for each transaction. Documents whose `_id` belongs to no fleet are left out.
    """
    fleets = defaultdict[str, defaultdict[str, dict[str, None]]](lambda: defaultdict(dict))
    for collection, _id in documents:
        if parts := split_id(_id):
            fleet, identifier = parts
            fleets[fleet][collection][identifier] = None
    for fleet, changed in fleets.items():
        trips, moved = changed["trips"], changed["driver_groups"]
        for part in batches(moved, MOVES_PER_TRANSACTION):
            yield fleet, part, ()
        drivers = changed["drivers"].keys() - moved.keys()
        if not (drivers or trips):
            continue
        first, *others = divide_trips(store, fleet, trips, TRIPS_PER_TRANSACTION) if trips else [[]]
        yield fleet, drivers, first
        for part in others:
            yield fleet, (), part


@transaction
def apply_changes(
    store: Store, fleet: str, driver_ids: Collection[str], trip_ids: Collection[str]
) -> tuple[list[InvalidSource], Doubts]:
    """Materialize what changed, and return the invalid sources, and what is not plausible in the trips.

    If nothing differs, the transaction leaves no trace.
    """
    invalid, doubts = list[InvalidSource](), Doubts("{trip_id}")
    details = read_trips(store, fleet, trip_ids, invalid, doubts.check)
    invalid += find_invalid_drivers(store, fleet, driver_ids)
    count = materialize(store, fleet, driver_ids, details)
    doubts.check_overlaps(store, fleet, dict.fromkeys(trip_ids, 0), days_of(filter(None, details.values())))
    if not count:
        raise NothingToWrite((invalid, doubts))
    return invalid, doubts
