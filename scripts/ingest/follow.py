"""`driver-analytics follow`: applies what other programs write to `drivers` and `trips`, as they write it."""

import logging
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import click
from pymongo.errors import OperationFailure, PyMongoError

from app.config import Config
from app.logs import make_logger
from app.store import Store
from app.store.dates import now_ms
from scripts.ingest.change_stream import (
    Batch,
    ChangeStream,
    Position,
    PositionLost,
    get_position,
    save_position,
)
from scripts.ingest.changed_sources import Applier, find_groups
from scripts.ingest.compare import compare_everything
from scripts.mongodb.connection import open_store, prepare_collections

if TYPE_CHECKING:
    from scripts.ingest.follow_metrics import FollowMetrics

RETRY_SECONDS = 1.0
# Without changes, the position is stored as often, so that it stays in the oplog.
SAVE_SECONDS = 10.0
UNAUTHORIZED = 13


@click.command()
def follow() -> None:
    """Apply what other programs write to drivers and trips.

    They may insert, update, replace and delete documents of the collections. The command keeps the read models, which
    the API reads, up to date. docs/data.md describes the documents.

    It runs until Ctrl-C or SIGTERM. Started again, it resumes where it stopped. At the first start it compares all
    documents.
    """
    # prometheus_client reads PROMETHEUS_MULTIPROC_DIR when it is imported, and `serve` sets that first.
    from scripts.ingest.follow_metrics import FollowMetrics

    config = Config.from_environment()
    metrics = FollowMetrics()
    if config.metrics_bind:
        metrics.serve(config.metrics_bind)
    with open_store(config) as store:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _stop)
        log = make_logger(logging.getLevelNamesMapping()[config.log_level])
        for _ in Follower(store, metrics, log).follow():
            pass


def _stop(number: int, frame: Any) -> NoReturn:
    # Whatever is in progress is a transaction, which MongoDB aborts, or can be repeated.
    sys.exit(0)


class Follower:
    """Follows the change stream, and applies the changes."""

    def __init__(self, store: Store, metrics: "FollowMetrics", log: Any) -> None:
        self._store, self._metrics, self._log = store, metrics, log
        self._applier = Applier(store, metrics, log)
        self._saved, self._is_ready, self._is_lost = 0.0, False, False

    def follow(self) -> Iterator[Batch]:
        """Apply the changes from the stored position on, and yield each batch, whatever happens to MongoDB.

        Raises OperationFailure if the user lacks a privilege.
        """
        while True:
            try:
                yield from self._follow()
            except PositionLost as error:
                self._log.error("position lost", reason=str(error))
                self._is_lost = True
            except PyMongoError as error:
                if isinstance(error, OperationFailure) and error.code == UNAUTHORIZED:
                    raise
                self._log.warning("MongoDB failed", error=type(error).__name__)
                time.sleep(RETRY_SECONDS)

    def _follow(self) -> Iterator[Batch]:
        position = (None if self._is_lost else get_position(self._store)) or self._compare()
        self._metrics.until_ms = position.until_ms
        with ChangeStream(self._store, position) as stream:
            self._log.info("following the change stream")
            if not self._is_ready:
                click.echo(f"Following {self._store.db.name}.drivers and {self._store.db.name}.trips")
                self._is_ready = True
            while True:
                batch = stream.read()
                self._apply(batch)
                yield batch

    def _compare(self) -> Position:
        """Compare all documents, and return the position from before the comparison."""
        self._metrics.comparisons.inc()
        self._log.warning("comparing all documents")
        # A collection that was dropped has lost its validator and its indexes.
        prepare_collections(self._store)
        with ChangeStream(self._store) as stream:
            position = stream.position()
        repaired = compare_everything(self._store, self._applier)
        self._metrics.repairs.inc(repaired)
        self._log.warning(
            "all documents are compared", repaired=repaired, seconds=(now_ms() - position.until_ms) // 1000
        )
        save_position(self._store, position)
        self._is_lost = False
        return position

    def _apply(self, batch: Batch) -> None:
        groups = find_groups(self._store, batch.ids, self._applier.log_left_out)
        save = partial(save_position, self._store, batch.position)
        for number, (fleet, identifiers, without_sources) in enumerate(groups, 1):
            # It is the position after the whole batch, so it belongs into the last transaction.
            before_commit = save if number == len(groups) else None
            self._applier.apply(fleet, identifiers, without_sources=without_sources, before_commit=before_commit)
        if time.monotonic() - self._saved > SAVE_SECONDS:
            save()
            self._saved = time.monotonic()
        self._metrics.changes.inc(batch.change_count)
        self._metrics.until_ms = batch.position.until_ms
