"""app/circuit_breaker.py: one thread at a time to what does not respond."""

import contextlib
import threading

import pytest

from app.circuit_breaker import CircuitBreaker, CircuitOpen


def fail(breaker, error):
    with pytest.raises(type(error)), breaker.guard():
        raise error


@pytest.fixture
def breaker():
    return CircuitBreaker(lambda error: isinstance(error, TimeoutError))


@pytest.fixture
def elsewhere(breaker):
    """Use the dependency in another thread until it may continue, which then may end with an error."""
    entered, leave, threads = threading.Event(), threading.Event(), []

    def use(error=None):
        with contextlib.suppress(TimeoutError), breaker.guard():
            entered.set()
            leave.wait()
            if error:
                raise error

    def start(error=None):
        threads.append(threading.Thread(target=use, args=(error,)))
        threads[0].start()
        entered.wait()

    def end():
        leave.set()
        threads[0].join()

    start.end = end
    yield start
    end()


def test_a_closed_circuit_lets_all_through(breaker, elsewhere):
    elsewhere()
    with breaker.guard():
        pass


def test_an_error_that_is_a_response_leaves_the_circuit_closed(breaker, elsewhere):
    fail(breaker, ValueError())
    elsewhere()
    with breaker.guard():
        pass


def test_an_open_circuit_lets_one_probe_through_and_refuses_the_others(breaker, elsewhere):
    fail(breaker, TimeoutError())
    elsewhere()
    with pytest.raises(CircuitOpen), breaker.guard():
        pass


def test_a_probe_that_gets_a_response_closes_the_circuit(breaker, elsewhere):
    fail(breaker, TimeoutError())
    elsewhere()
    elsewhere.end()
    with breaker.guard(), breaker.guard():
        pass


def test_a_probe_that_gets_an_error_as_its_response_closes_the_circuit(breaker, elsewhere):
    fail(breaker, TimeoutError())
    fail(breaker, ValueError())
    elsewhere()
    with breaker.guard():
        pass


def test_after_a_probe_without_a_response_the_next_use_is_the_probe(breaker, elsewhere):
    fail(breaker, TimeoutError())
    elsewhere(TimeoutError())
    elsewhere.end()
    with breaker.guard(), pytest.raises(CircuitOpen), breaker.guard():
        pass


def test_only_a_probe_runs_within_the_context_of_probes():
    entered = []

    @contextlib.contextmanager
    def probe():
        entered.append("entered")
        yield
        entered.append("left")

    breaker = CircuitBreaker(lambda error: isinstance(error, TimeoutError), probe)
    fail(breaker, TimeoutError())
    assert entered == []
    for _ in range(2):
        with breaker.guard():
            pass
    assert entered == ["entered", "left"]


class CannotBeEntered:
    def __enter__(self):
        raise RuntimeError

    def __exit__(self, *error):
        pass


def test_after_a_probe_that_cannot_start_the_next_use_is_the_probe():
    contexts = iter([CannotBeEntered(), contextlib.nullcontext()])
    breaker = CircuitBreaker(lambda error: isinstance(error, TimeoutError), lambda: next(contexts))
    fail(breaker, TimeoutError())
    with pytest.raises(RuntimeError), breaker.guard():
        pass
    with breaker.guard(), pytest.raises(CircuitOpen), breaker.guard():
        pass
