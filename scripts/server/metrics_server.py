"""The metrics of all workers, on a port of their own.

Each worker keeps what it counts in files of the folder PROMETHEUS_MULTIPROC_DIR, and the first process of gunicorn
serves their sum. prometheus_client reads that variable when it is imported, so it has to be set before this is.
"""

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

from app.config import Config
from app.database import service_client
from app.middleware.metrics import StoreCollector
from app.store import Store


def serve_metrics(config: Config) -> None:
    """Serve the metrics of all workers, and of the store unless it lies in memory, on METRICS_BIND from a thread."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    if config.mongodb_uri:
        registry.register(StoreCollector(Store.of(service_client(config)[config.mongodb_database])))
    host, _, port = config.metrics_bind.rpartition(":")
    start_http_server(int(port), host.strip("[]"), registry)
