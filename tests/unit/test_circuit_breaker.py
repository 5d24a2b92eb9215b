"""app/circuit_breaker.py: one call at a time to what does not respond. A guard within a guard is a call beside it."""

import contextlib

import pytest

from app.circuit_breaker import CircuitBreaker, CircuitOpen


def is_outage(error):
    return isinstance(error, TimeoutError)


def fail(breaker, error):
    with pytest.raises(type(error)), breaker.guard():
        raise error


def assert_closed(breaker):
    with breaker.guard(), breaker.guard():
        pass


@pytest.fixture
def breaker():
    return CircuitBreaker(is_outage)


def test_a_closed_circuit_lets_all_through(breaker):
    assert_closed(breaker)


def test_an_error_that_is_a_response_leaves_the_circuit_closed(breaker):
    fail(breaker, ValueError())
    assert_closed(breaker)


def test_an_open_circuit_lets_one_probe_through_and_refuses_the_others(breaker):
    fail(breaker, TimeoutError())
    with breaker.guard():
        for _ in range(2):
            with pytest.raises(CircuitOpen), breaker.guard():
                pass


def test_a_probe_that_gets_a_response_closes_the_circuit(breaker):
    fail(breaker, TimeoutError())
    with breaker.guard():
        pass
    assert_closed(breaker)


def test_a_probe_that_gets_an_error_as_its_response_closes_the_circuit(breaker):
    fail(breaker, TimeoutError())
    fail(breaker, ValueError())
    assert_closed(breaker)


def test_after_a_probe_without_a_response_the_next_call_is_the_probe(breaker):
    fail(breaker, TimeoutError())
    fail(breaker, TimeoutError())
    with breaker.guard(), pytest.raises(CircuitOpen), breaker.guard():
        pass


def test_only_a_probe_runs_within_the_context_of_probes():
    entered = []

    @contextlib.contextmanager
    def probe():
        entered.append("entered")
        yield
        entered.append("left")

    breaker = CircuitBreaker(is_outage, probe)
    fail(breaker, TimeoutError())
    assert entered == []
    for _ in range(2):
        with breaker.guard():
            pass
    assert entered == ["entered", "left"]


def test_after_a_probe_that_cannot_start_the_next_call_is_the_probe():
    def probe():
        raise RuntimeError

    breaker = CircuitBreaker(is_outage, probe)
    fail(breaker, TimeoutError())
    for _ in range(2):
        with pytest.raises(RuntimeError), breaker.guard():
            pass
