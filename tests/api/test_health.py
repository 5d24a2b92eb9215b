"""GET /healthz."""

import threading

import pytest
from pymongo import MongoClient
from pymongo.errors import NetworkTimeout

from app import create_app
from app.circuit_breaker import CircuitOpen
from app.config import Config
from app.store.api_keys import make_key
from schemas.page import Unhealthy

NOWHERE = "mongodb://127.0.0.1:1/?directConnection=true"


def test_it_is_ok_while_the_store_answers(service):
    answer = service.get("/healthz", fleet=None)
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/healthz", "/livez"])
def test_it_takes_no_parameters(service, path):
    assert list(service.errors(path, x="1")) == ["x"]


@pytest.fixture
def without_store():
    with MongoClient(NOWHERE, timeoutMS=200) as client:
        yield create_app(Config(mongodb_uri=NOWHERE, ratelimit_storage_uri="memory://"), client).test_client()


def test_it_is_unavailable_while_the_store_does_not_answer(without_store):
    answer = without_store.get("/api/v1/healthz")
    assert (answer.status_code, answer.json["status"], answer.json["error"]) == (503, "unavailable", "StoreUnavailable")
    assert list(answer.json) == list(Unhealthy().fields)


def test_a_check_that_fails_opens_the_circuit(without_store):
    without_store.get("/api/v1/healthz")
    breaker = without_store.application.extensions["store_breaker"]
    with breaker.guard(), pytest.raises(CircuitOpen), breaker.guard():
        pass


def test_the_service_runs_all_the_same(without_store):
    answer = without_store.get("/api/v1/livez")
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


def test_the_endpoints_are_unavailable_while_the_store_does_not_answer(without_store):
    answer = without_store.get("/api/v1/drivers", headers={"Authorization": f"APIKEY {make_key()}"})
    assert (answer.status_code, answer.json["error"]) == (503, "StoreUnavailable")
    assert answer.headers["Retry-After"] == "2"


@pytest.fixture
def waited_for(service):
    """The service while one thread waits for a store that hangs."""
    breaker, entered, leave = service.app.extensions["store_breaker"], threading.Event(), threading.Event()
    with pytest.raises(NetworkTimeout), breaker.guard():
        raise NetworkTimeout

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


@pytest.mark.parametrize("path", ["/healthz", "/drivers", "/trip/trip_id/t", "/report?report_time=2026-03-16T00:00:00"])
def test_while_one_request_waits_for_the_store_the_others_do_not(waited_for, path):
    answer = waited_for.get(path)
    assert (answer.status_code, answer.json["error"]) == (503, "StoreUnavailable")
    assert answer.headers["Retry-After"] == "2"
    assert path != "/healthz" or list(answer.json) == list(Unhealthy().fields)


def test_a_check_that_does_not_wait_says_as_much_as_one_that_did(waited_for):
    answer = waited_for.get("/healthz")
    assert (answer.json["status"], list(answer.json)) == ("unavailable", list(Unhealthy().fields))


@pytest.mark.parametrize(("path", "status"), [("/nothing", 401), ("/drivers?page=0", 401), ("/livez", 200)])
def test_what_needs_no_store_is_answered_while_it_hangs(waited_for, path, status):
    assert waited_for.get(path, fleet=None).status_code == status
