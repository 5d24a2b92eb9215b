"""The metrics of all workers and of the store, which gunicorn's main process reads at each scrape.

prometheus_client reads PROMETHEUS_MULTIPROC_DIR when it is imported, so set it before you import this module.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pymongo
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from pymongo import DESCENDING
from pymongo.errors import PyMongoError

from app.metrics import PREFIX
from app.store import Store
from schemas.periods import MS_PER_SECOND

# How long a scrape waits for the database.
SCRAPE_TIMEOUT_SECONDS = 1.0


class WorkersCollector(Collector):
    """The sums of the workers' metrics, which each worker writes to files in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics. A worker that starts has an empty file for a moment, which cannot be read."""
        files = [str(path) for path in self._folder.glob("*.db") if path.stat().st_size]
        metrics: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return metrics


class StoreCollector(Collector):
    """Gauges that are read from the database at each scrape: whether it responds, and when a trip was last written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges; only `store_up` if the database does not respond in time."""
        newest, is_up = None, True
        try:
            with pymongo.timeout(SCRAPE_TIMEOUT_SECONDS):
                match, by_time = {"trips_written_at": {"$ne": None}}, [("trips_written_at", DESCENDING)]
                newest = self._store.fleets.find_one(match, {"trips_written_at": 1}, sort=by_time)
        except PyMongoError:
            is_up = False
        yield _gauge("store_up", "Whether the database responded to this scrape within a second.", is_up)
        if newest is not None:
            seconds = newest["trips_written_at"] / MS_PER_SECOND
            yield _gauge("newest_trip_timestamp_seconds", "Time at which a trip was last written.", seconds)


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", meaning, value)
