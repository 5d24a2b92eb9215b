"""gunicorn's settings. `gunicorn wsgi:app` reads them from the folder that it is started in, and so does `serve`."""

import gc
import os
import sys
from logging.config import dictConfig

from app.config import Config
from app.logs import build_config as build_log_config

service = Config.from_environment()

bind = service.bind
# Of one socket that workers share, one worker takes nearly all connections that are kept open; Linux shares out those
# of several sockets on one port. A Unix socket has one path.
reuse_port = sys.platform == "linux" and not bind.startswith("unix:")
workers = service.workers
worker_class = "gthread"
# Python runs one of them at a time: more would stand in each other's way sooner than wait for the store.
threads = 4

# A worker that has not been heard of for so long is killed.
timeout = 10
graceful_timeout = 20
# Longer than the idle timeout of the proxies, so that it is they who close an idle connection.
keepalive = 75

# Twenty of the longest driver_ids, percent-encoded, fit.
limit_request_line = 8190
# A client and its proxies send 30 or so; of X-Fields as many lines are one mask, which takes time to read.
limit_request_fields = 50
# No request header may set the path: the routes read it from the request line.
forwarder_headers = ""
control_socket_disable = True

# gunicorn's log goes where the service's goes, by `on_starting`. With `logconfig_dict` it would also make up a line for
# each request, which the service does itself.
errorlog = os.devnull
loglevel = "error"

# Requests leave few cycles behind, and looking for them each time that 700 objects were made takes 3 % of the time.
GC_THRESHOLD = 5_000


def on_starting(server):
    """Write gunicorn's log as JSON."""
    dictConfig(build_log_config())


def when_ready(server):
    """Serve the metrics of all workers from the first process."""
    if service.metrics_bind:
        from scripts.server.metrics_server import serve_metrics

        serve_metrics(service)


def post_worker_init(worker):
    """Let the garbage collector leave alone what was made so far, which stays."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


def child_exit(server, worker):
    """Forget the gauges of a worker that has ended."""
    if service.metrics_bind:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(worker.pid)
