"""The metrics of `driver-analytics serve`, on their own port."""

import contextlib
import os
import signal
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.commands.test_serve import workers
from tests.service_process import GUNICORN, ServiceProcess, free_port, run_service, wait_until

ROUTE = {"route": "/api/v1/healthz", "method": "GET", "status": "200"}


@contextlib.contextmanager
def measured(mongod_uri, folder, name, **settings):
    """Run the service; yield it, its database and where its metrics are."""
    bind = f"127.0.0.1:{free_port()}"
    settings |= {"METRICS_BIND": bind, "LOG_LEVEL": "WARNING", "TMPDIR": str(folder)}
    with run_service(mongod_uri, folder / "data", name, **settings) as (process, db):
        yield process, db, bind


@pytest.fixture(scope="module")
def live(tmp_path_factory, mongod_uri, redis_server):
    folder = tmp_path_factory.mktemp("measured")
    with measured(mongod_uri, folder, "measured", RATELIMIT_STORAGE_URI=redis_server.uri) as values:
        yield values


def scrape(bind, name, **labels):
    """Return the value of a metric, collected from all workers."""
    with urllib.request.urlopen(f"http://{bind}/metrics", timeout=10) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    labelled = (f"driver_analytics_{name}", labels)
    values = [
        sample.value for family in families for sample in family.samples if (sample.name, sample.labels) == labelled
    ]
    return values[0] if values else 0


def send_requests(process, times):
    """Send each request over its own connection; Linux distributes them among the workers."""
    assert {process.get("/healthz")[0] for _ in range(times)} == {200}


def test_every_worker_reports_the_sum_of_all_workers(live):
    process, _, bind = live
    before = scrape(bind, "http_requests_total", **ROUTE)
    send_requests(process, 40)
    assert {scrape(bind, "http_requests_total", **ROUTE) for _ in range(10)} == {before + 40}
    assert scrape(bind, "http_request_duration_seconds_count", route=ROUTE["route"]) >= 40


def test_an_idle_connection_does_not_block_the_metrics(live):
    _, _, bind = live
    host, port = bind.split(":")
    with socket.create_connection((host, int(port))), socket.create_connection((host, int(port))):
        assert scrape(bind, "store_up") == 1


def replace_workers(process, pid, number):
    """Send a signal, and wait until it has put new workers in the place of some."""
    wait_until(lambda: len(workers(process)) == 2)
    before = {*workers(process)}
    os.kill(pid, number)
    wait_until(lambda: len(workers(process)) == 2 and before - {*workers(process)} and process.responds())


def test_counts_survive_the_end_of_a_worker(live):
    process, _, bind = live
    send_requests(process, 20)
    before = scrape(bind, "http_requests_total", **ROUTE)
    replace_workers(process, workers(process)[0], signal.SIGKILL)
    replace_workers(process, process.process.pid, signal.SIGHUP)
    send_requests(process, 20)
    assert scrape(bind, "http_requests_total", **ROUTE) == before + 20


def test_the_files_of_the_workers_go_with_the_service(mongod_uri, tmp_path):
    with measured(mongod_uri, tmp_path, "measured_alone") as (process, _, _):
        send_requests(process, 1)
        (folder,) = tmp_path.glob("driver-analytics-metrics-*")
        assert list(folder.iterdir())
        process.stop()
        assert not folder.exists()


def test_gunicorn_by_itself_serves_the_metrics_and_removes_their_files(mongod_uri, tmp_path):
    bind = f"127.0.0.1:{free_port()}"
    settings = {"MONGODB_URI": mongod_uri, "METRICS_BIND": bind, "TMPDIR": str(tmp_path)}
    with ServiceProcess(tmp_path / "data", words=(GUNICORN, "wsgi:app"), **settings) as process:
        wait_until(process.responds)
        send_requests(process, 1)
        assert scrape(bind, "http_requests_total", **ROUTE) >= 1
    assert [*tmp_path.glob("driver-analytics-metrics-*")] == []
