"""Settings of gunicorn, for `serve` and for `gunicorn -c python:scripts.server.gunicorn_conf wsgi:app`.

Importing this module ends the program with one line if a setting of the service cannot be used.
"""

import ctypes
import gc
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

import click

from app import logs
from app.config import Config, ConfigError
from app.database import service_client
from app.services import EXTENSION, get_services
from app.store import OtherFormat, Store
from scripts.server.checks import check_addresses, check_application, open_connections

try:
    service = Config.from_environment()
except ConfigError as error:
    sys.exit(f"Error: {error}")

bind = service.bind
# If the workers share one socket, one of them gets nearly all keep-alive connections. With a socket per worker on the
# same port, Linux distributes the connections. This is not possible for a Unix socket.
reuse_port = sys.platform == "linux" and not bind.startswith("unix:")
workers = service.workers
worker_class = "gthread"
# Python runs only one thread at a time: with more threads, they would wait for each other and not for the store.
threads = 4

# Seconds without a sign of life after which a worker is killed.
timeout = 10
graceful_timeout = 20
# Longer than the idle timeout of the proxies, so that the proxies close idle connections.
keepalive = 75

# Long enough for 20 driver_ids of the maximum length, percent-encoded.
limit_request_line = 8190
# A client and its proxies send about 30 headers. All X-Fields headers of a request are parsed as one mask, which takes
# time.
limit_request_fields = 50
# No request header may replace the path: routes use the path of the request line.
forwarder_headers = ""
# Only trusted proxies say whether the client used HTTPS, which decides the scheme of links.
forwarded_allow_ips = ",".join(map(str, service.trusted_proxies))
secure_scheme_headers = {"X-FORWARDED-PROTO": "https"}
control_socket_disable = True

# `configure_log` sends gunicorn's log to the log of the service. With `logconfig_dict`, gunicorn would also write a
# line per request, which the service already does.
errorlog = os.devnull
loglevel = "error"

# Requests create few reference cycles. With the default threshold of 700 objects, the search for them takes 3 % of the
# time.
GC_THRESHOLD = 5_000

# mallopt(3) of the GNU C library: blocks from this size on are memory maps of their own, which the system gets back
# when they are freed. It is the default with which a process begins. But unless it is set, the first long response
# raises it to up to 32 MB, and the blocks of later ones leave gaps in the heap of each thread, which a worker keeps.
M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES = -3, 131_072


def on_starting(server: Any) -> None:
    """Check the settings, which `serve` does itself; an error ends the program with one line."""
    configure_log(server)
    try:
        # An option of the command line replaces BIND. After SIGUSR2, the process to replace still listens.
        api = bind if server.cfg.bind == [bind] and not server.master_pid else ""
        check_addresses({"BIND": api, "METRICS_BIND": service.metrics_bind})
        check_application(service)
    except (ConfigError, OtherFormat, click.ClickException) as error:
        sys.exit(f"Error: {error}")


def configure_log(server: Any) -> None:
    """Write gunicorn's log as JSON."""
    logs.configure()


def when_ready(server: Any) -> None:
    """Let Ctrl-C stop the service as SIGTERM does, and serve the metrics of all workers from the main process."""
    # At SIGINT, gunicorn does not let the workers finish their requests.
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    if service.metrics_bind:
        _serve_metrics()


def _serve_metrics() -> None:
    """Start a thread that serves the sums of the workers' metrics, and the metrics of a store that is not in memory."""
    # The folder of the files to which each worker writes its values. prometheus_client reads its name from this
    # variable when it is imported, so it is imported only here and in the workers.
    folder = os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="driver-analytics-metrics-")
    from prometheus_client import CollectorRegistry

    from scripts.command_line.metrics_server import serve_metrics
    from scripts.server.collectors import StoreCollector, WorkersCollector

    registry = CollectorRegistry()
    registry.register(WorkersCollector(folder))
    if service.mongodb_uri:
        registry.register(StoreCollector(Store.of(service_client(service)[service.mongodb_database])))
    serve_metrics(service.metrics_bind, registry)


def on_exit(server: Any) -> None:
    """Remove the files of the metrics. The main process alone calls this."""
    if service.metrics_bind:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)


def post_worker_init(worker: Any) -> None:
    """Leave Ctrl-C to the main process, open connections, and set how memory is collected and given back."""
    # A terminal sends it to the workers, too. If the main process then signals a worker that is ending, gunicorn's
    # handler waits forever for a lock that it holds itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The worker listens already, and accepts connections after this. With several new workers and busy processors, the
    # first requests would otherwise spend their whole time on connecting, and open the circuit breaker. Another WSGI
    # callable, such as one that wraps the application, connects with its first request.
    if EXTENSION in getattr(worker.wsgi, "extensions", {}):
        open_connections(get_services(worker.wsgi))
    # These objects stay until the worker ends.
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    _give_memory_back()


def _give_memory_back() -> None:
    """Let the memory of long responses go back to the system. Other C libraries than that of GNU do so anyway."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
