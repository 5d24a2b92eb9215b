"""app/circuit_breaker.py: one call at a time to what does not respond. A guard within a guard is a call beside it."""

import contextlib

import pymongo
import pytest
from pymongo import MongoClient
from pymongo.errors import (
    AutoReconnect,
    ExecutionTimeout,
    NetworkTimeout,
    OperationFailure,
    ServerSelectionTimeoutError,
)

from app import database
from app.circuit_breaker import CircuitBreaker, CircuitOpen
from app.store import Store


def is_outage(error):
    return isinstance(error, TimeoutError)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ServerSelectionTimeoutError("no server"), True),
        (AutoReconnect("connection reset"), True),
        (ExecutionTimeout("operation exceeded time limit", 50), False),
        (OperationFailure("no such command"), False),
        (ValueError(), False),
    ],
    ids=str,
)
def test_a_database_that_does_not_respond_is_an_outage_and_a_slow_query_is_none(store, error, expected):
    assert database.is_outage(error, store) == expected


def test_after_a_timeout_the_database_is_asked_although_the_deadline_has_passed(store):
    with pymongo.timeout(1e-9), contextlib.closing(MongoClient("127.0.0.1", 1)) as client:
        assert not database.is_outage(NetworkTimeout("no response"), store)
        assert database.is_outage(NetworkTimeout("no response"), Store.of(client["down"]))


def call(breaker, error=None):
    """Make a call that ends with an error, or with a response."""
    with contextlib.suppress(TimeoutError, ValueError), breaker.guard():
        if error:
            raise error


@pytest.fixture
def breaker():
    return CircuitBreaker(is_outage)


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param([], id="no call yet"),
        pytest.param([ValueError()], id="an error that is a response"),
        pytest.param([TimeoutError(), None], id="a probe that gets a response"),
        pytest.param([TimeoutError(), ValueError()], id="a probe that gets an error as its response"),
    ],
)
def test_a_closed_circuit_lets_all_through(breaker, errors):
    for error in errors:
        call(breaker, error)
    with breaker.guard(), breaker.guard():
        pass


@pytest.mark.parametrize("failures", [1, 2])
def test_an_open_circuit_lets_one_probe_through_and_refuses_the_others(breaker, failures):
    for _ in range(failures):
        call(breaker, TimeoutError())
    with breaker.guard():
        for _ in range(2):
            with pytest.raises(CircuitOpen), breaker.guard():
                pass


def test_only_a_probe_runs_within_the_context_of_probes():
    entered = []

    @contextlib.contextmanager
    def probe():
        entered.append("entered")
        yield
        entered.append("left")

    breaker = CircuitBreaker(is_outage, probe)
    call(breaker, TimeoutError())
    assert entered == []
    call(breaker)
    call(breaker)
    assert entered == ["entered", "left"]
