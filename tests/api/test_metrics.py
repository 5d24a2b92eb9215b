"""What the service counts and times for Prometheus."""

import time

import pytest
from limits import parse
from prometheus_client import CollectorRegistry, generate_latest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from app.metrics import Metrics
from app.services import get_services
from app.store import Store
from scripts.server.collectors import StoreCollector, WorkersCollector
from tests.factories import make_driver, make_trip

BIND = "127.0.0.1:9100"
TRIPS = "/api/v1/driver/<segment:driver_id>/trips"


@pytest.fixture
def measured(make_service):
    return make_service(metrics_bind=BIND, rate_limit=parse("3 per minute"), auth_failure_limit=parse("2 per minute"))


def value(service, name, **labels):
    return get_services(service.app).metrics.registry.get_sample_value(f"driver_analytics_{name}", labels)


def requests(service, route, method, status):
    return value(service, "http_requests_total", route=route, method=method, status=status)


def test_requests_are_counted_by_rule_method_and_status_and_timed_by_rule(measured, load):
    load(drivers=[make_driver("d1")])
    for driver_id in ("d1", "nobody"):
        measured.get(f"/driver/{driver_id}/trips?start_date=2026-03-01")
    measured.get("/healthz", method="HEAD")
    assert [requests(measured, TRIPS, "GET", status) for status in ("200", "404", "500")] == [1, 1, None]
    assert requests(measured, "/api/v1/healthz", "HEAD", "200") == 1
    assert value(measured, "http_request_duration_seconds_count", route=TRIPS) == 2


def test_unknown_paths_count_as_one_and_so_do_unknown_methods(measured):
    for number in range(2):
        measured.get(f"/nothing/{number}")
        measured.get("/drivers", method=f"BREW{number}")
    assert requests(measured, "(unknown path)", "GET", "404") == 2
    assert requests(measured, "(unknown path)", "other", "405") == 2


def test_what_the_limit_of_a_fleet_refuses_is_counted(measured):
    for _ in range(5):
        measured.get("/drivers")
    assert value(measured, "rate_limit_refusals_total", limit="fleet") == 2
    assert value(measured, "authentication_failures_total") == value(measured, "uncounted_requests_total") == 0


def test_calls_without_a_valid_key_are_counted_and_so_is_what_the_limit_of_their_address_refuses(measured):
    for _ in range(5):
        measured.get("/drivers", fleet=None)
    assert value(measured, "authentication_failures_total") == 5
    assert value(measured, "rate_limit_refusals_total", limit="address") == 3


def test_requests_that_pass_uncounted_are_counted_in_a_metric(make_service):
    service = make_service(metrics_bind=BIND, ratelimit_storage_uri="redis://127.0.0.1:1")
    for path in ("/drivers", "/drivers", "/healthz"):
        service.get(path)
    assert value(service, "uncounted_requests_total") == 2


def test_no_metric_names_a_fleet_a_key_or_what_a_client_sent(measured, load):
    load(drivers=[make_driver("canary-driver")], fleet="canary-fleet")
    measured.get("/driver/canary-driver/trips?start_date=2026-03-01", fleet="canary-fleet")
    measured.get("/canary-path", fleet="canary-fleet")
    metrics = generate_latest(get_services(measured.app).metrics.registry).decode()
    assert not [word for word in ("canary", *measured.db["keys"].distinct("key_id")) if word in metrics]


@pytest.fixture
def timed(mongod, mongod_uri):
    """A client whose commands are timed, and its metrics."""
    metrics = Metrics()
    with MongoClient(mongod_uri, event_listeners=[metrics]) as client:
        yield client[mongod.name], metrics.registry


def operations(registry, what, outcome):
    name = f"driver_analytics_store_operation_duration_seconds_{what}"
    return registry.get_sample_value(name, {"command": "find", "outcome": outcome})


def test_operations_of_the_store_are_timed_in_seconds_by_command_and_outcome(timed):
    db, registry = timed
    started = time.monotonic()
    db.trips.find_one({})
    db.trips.find_one({})
    assert 0 < operations(registry, "sum", "ok") < time.monotonic() - started
    with pytest.raises(OperationFailure):
        db.trips.find_one({"$nope": 1})
    assert (operations(registry, "count", "ok"), operations(registry, "count", "BadValue")) == (2, 1)


def freshness(db):
    registry = CollectorRegistry()
    registry.register(StoreCollector(Store.of(db)))
    return lambda name, **labels: registry.get_sample_value(f"driver_analytics_{name}", labels)


def test_an_empty_store_is_up(db):
    metrics = freshness(db)
    assert (metrics("store_up"), metrics("newest_trip_timestamp_seconds")) == (1, None)


def test_the_newest_trip_metric_is_when_it_was_added(db, clock, load):
    load(make_trip())
    clock.shift(3600)
    load(make_trip())
    assert freshness(db)("newest_trip_timestamp_seconds") == 1_773_835_200 + 3600


def test_a_store_that_does_not_respond_is_down_and_has_no_other_metrics():
    with MongoClient("mongodb://127.0.0.1:1", timeoutMS=100) as client:
        metrics = freshness(client["test"])
        assert (metrics("store_up"), metrics("newest_trip_timestamp_seconds")) == (0, None)


def test_a_worker_that_starts_has_no_metrics_for_a_moment(tmp_path):
    (tmp_path / "counter_7.db").touch()
    assert list(WorkersCollector(str(tmp_path)).collect()) == []
