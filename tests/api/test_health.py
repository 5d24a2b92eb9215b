"""GET /healthz."""

import threading

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect

from app import create_app
from app.circuit_breaker import CircuitOpen
from app.config import Config
from app.services import get_services
from app.store.api_keys import make_key
from schemas.error import Unhealthy

NOWHERE = "mongodb://127.0.0.1:1/?directConnection=true"


def test_it_is_ok_while_the_store_responds(service):
    response = service.get("/healthz", fleet=None)
    assert (response.status_code, response.json) == (200, {"status": "ok"})


@pytest.fixture
def without_store():
    with MongoClient(NOWHERE, timeoutMS=200) as client:
        yield create_app(Config(mongodb_uri=NOWHERE, ratelimit_storage_uri="memory://"), client).test_client()


def test_it_is_unavailable_while_the_store_does_not_respond(without_store):
    response = without_store.get("/api/v1/healthz")
    assert (response.status_code, response.json["status"]) == (503, "unavailable")
    assert (response.json["error"], list(response.json)) == ("StoreUnavailable", list(Unhealthy().fields))


@pytest.fixture
def waited_for(service):
    """The service while one thread waits for a store that hangs."""
    breaker, entered, leave = get_services(service.app).store_breaker, threading.Event(), threading.Event()
    with pytest.raises(AutoReconnect), breaker.guard():
        raise AutoReconnect

    def wait():
        with breaker.guard():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    entered.wait()
    yield service
    leave.set()
    thread.join()


@pytest.mark.parametrize("path", ["/healthz", "/drivers", "/report?report_time=2026-03-16T00:00:00", "/changes"])
def test_only_one_request_waits_for_a_store_that_hangs(waited_for, path):
    response = waited_for.get(path)
    assert (response.status_code, response.json["error"]) == (503, "StoreUnavailable")
    assert response.headers["Retry-After"] == "2"
    assert response.json.get("status") == ("unavailable" if path == "/healthz" else None)
    assert path != "/healthz" or list(response.json) == list(Unhealthy().fields)


@pytest.mark.parametrize(("path", "status"), [("/nothing", 401), ("/drivers?page=0", 401), ("/livez", 200)])
def test_endpoints_that_need_no_store_respond_while_it_hangs(waited_for, path, status):
    assert waited_for.get(path, fleet=None).status_code == status


def test_a_failed_check_opens_the_circuit(without_store):
    without_store.get("/api/v1/healthz")
    breaker = get_services(without_store.application).store_breaker
    with breaker.guard(), pytest.raises(CircuitOpen), breaker.guard():
        pass


def test_the_endpoints_are_unavailable_while_the_store_does_not_respond(without_store):
    response = without_store.get("/api/v1/drivers", headers={"Authorization": f"APIKEY {make_key()}"})
    assert (response.status_code, response.json["error"]) == (503, "StoreUnavailable")
    assert response.headers["Retry-After"] == "2"
