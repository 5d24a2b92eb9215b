"""GET /healthz."""

import pytest
from pymongo import MongoClient

from app import create_app
from app.config import Config
from app.store.keys import make_key
from schemas.page import Unhealthy

NOWHERE = "mongodb://127.0.0.1:1/?directConnection=true"


def test_it_is_ok_while_the_store_answers(service):
    answer = service.get("/healthz", fleet=None)
    assert (answer.status_code, answer.json) == (200, {"status": "ok"})


def test_it_takes_no_parameters(service):
    assert list(service.errors("/healthz", x="1")) == ["x"]


@pytest.fixture
def without_store():
    with MongoClient(NOWHERE, timeoutMS=200) as client:
        yield create_app(Config(mongodb_uri=NOWHERE, ratelimit_storage_uri="memory://"), client).test_client()


def test_it_is_unavailable_while_the_store_does_not_answer(without_store):
    answer = without_store.get("/api/v1/healthz")
    assert (answer.status_code, answer.json["status"], answer.json["error"]) == (503, "unavailable", "StoreUnavailable")
    assert list(answer.json) == list(Unhealthy().fields)


def test_the_endpoints_are_unavailable_while_the_store_does_not_answer(without_store):
    answer = without_store.get("/api/v1/drivers", headers={"Authorization": f"APIKEY {make_key()}"})
    assert (answer.status_code, answer.json["error"]) == (503, "StoreUnavailable")
    assert answer.headers["Retry-After"] == "2"
