"""The metrics of `follow`, for Prometheus."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge

from schemas.periods import now_ms
from schemas.plausibility import WORDS

PREFIX = "driver_analytics_follow"


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
