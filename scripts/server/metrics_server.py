"""The metrics of all workers, on a separate port.

Each worker writes its values to files in the folder PROMETHEUS_MULTIPROC_DIR, and the main process of gunicorn returns
their sums. prometheus_client reads this variable when it is imported, so set it before you import this module.
"""

from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from app.config import Config
from app.database import service_client
from app.metrics import StoreCollector
from app.store import Store
from scripts import addresses


def serve_metrics(config: Config) -> None:
    """Start a thread that serves the metrics on METRICS_BIND: those of all workers, and those of the store.

    A store in memory has no metrics of its own.
    """
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    if config.mongodb_uri:
        registry.register(StoreCollector(Store.of(service_client(config)[config.mongodb_database])))
    addresses.serve_metrics(config.metrics_bind, registry)
