"""app/gate.py: one thread at a time to what hangs."""

import contextlib
import threading

import pytest

from app.gate import Closed, Gate


def fail(gate, error):
    with pytest.raises(type(error)), gate:
        raise error


@pytest.fixture
def gate():
    return Gate(lambda error: isinstance(error, TimeoutError))


@pytest.fixture
def elsewhere(gate):
    """Hold the gate in another thread until told to go on, there failing with an error or not."""
    entered, leave, threads = threading.Event(), threading.Event(), []

    def hold(error=None):
        try:
            with gate:
                entered.set()
                leave.wait()
                if error:
                    raise error
        except TimeoutError:
            pass

    def start(error=None):
        threads.append(threading.Thread(target=hold, args=(error,)))
        threads[0].start()
        entered.wait()

    def end():
        leave.set()
        threads[0].join()

    start.end = end
    yield start
    end()


def test_all_get_through_to_what_answers(gate, elsewhere):
    elsewhere()
    with gate:
        pass


def test_an_error_that_is_an_answer_closes_nothing(gate, elsewhere):
    fail(gate, ValueError())
    elsewhere()
    with gate:
        pass


def test_of_what_hangs_one_thread_finds_out_and_the_others_are_told_so_at_once(gate, elsewhere):
    fail(gate, TimeoutError())
    elsewhere()
    with pytest.raises(Closed), gate:
        pass


def test_when_that_one_is_answered_all_get_through(gate, elsewhere):
    fail(gate, TimeoutError())
    elsewhere()
    elsewhere.end()
    with gate, gate:
        pass


def test_an_error_that_is_an_answer_lets_all_through_again(gate, elsewhere):
    fail(gate, TimeoutError())
    fail(gate, ValueError())
    elsewhere()
    with gate:
        pass


def test_when_that_one_is_not_answered_the_next_one_finds_out(gate, elsewhere):
    fail(gate, TimeoutError())
    elsewhere(TimeoutError())
    elsewhere.end()
    with gate, pytest.raises(Closed), gate:
        pass


def test_only_the_thread_that_finds_out_is_on_trial():
    tried = []

    @contextlib.contextmanager
    def trial():
        tried.append("begun")
        yield
        tried.append("ended")

    gate = Gate(lambda error: True, trial)
    with contextlib.suppress(TimeoutError), gate:
        raise TimeoutError
    assert tried == []
    for _ in range(2):
        with gate:
            pass
    assert tried == ["begun", "ended"]
