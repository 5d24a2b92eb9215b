"""scripts/workers.py: which worker listens where, what it does, and what headers it lets through."""

import functools
import queue
from types import SimpleNamespace

import pytest
from gunicorn.http import wsgi

from scripts.workers import Threads, WholeResponse, give_socket


@pytest.fixture
def arbiter():
    """What of gunicorn's arbiter decides: two sockets, a worker at each, and workers by process id."""
    found = SimpleNamespace(LISTENERS=["a", "b"], WORKERS={})
    for _ in range(2):
        spawn(found)
    return found


def spawn(arbiter):
    """Give a worker its socket as gunicorn spawns it, and return that."""
    age = max(arbiter.WORKERS, default=0) + 1
    worker = SimpleNamespace(age=age, sockets=arbiter.LISTENERS)
    give_socket(arbiter, worker)
    arbiter.WORKERS[age] = worker
    return worker.sockets


def test_each_worker_has_a_socket_of_its_own(arbiter):
    assert [worker.sockets for worker in arbiter.WORKERS.values()] == [["a"], ["b"]]


@pytest.mark.parametrize(("died", "socket"), [(1, "a"), (2, "b")])
def test_the_next_worker_takes_the_place_of_one_that_died(arbiter, died, socket):
    del arbiter.WORKERS[died]
    assert spawn(arbiter) == [socket]


def test_a_reload_puts_a_new_worker_at_every_socket(arbiter):
    assert [spawn(arbiter), spawn(arbiter)] == [["a"], ["b"]]


@pytest.mark.parametrize(("died", "socket"), [(3, "a"), (4, "b")])
@pytest.mark.parametrize("gone", [[], [1], [2], [1, 2]])
def test_a_new_worker_that_died_while_the_old_ones_end_is_replaced_where_it_was(arbiter, gone, died, socket):
    spawn(arbiter), spawn(arbiter)
    for age in (*gone, died):
        del arbiter.WORKERS[age]
    assert spawn(arbiter) == [socket]


def process(*headers):
    response = WholeResponse(None, None, None)
    response.process_headers(list(headers))
    return response


@pytest.mark.parametrize("value", ["a\r\nX-Injected: b", "a\nb", "a\x00b", "\u20ac"])
def test_a_header_that_would_break_the_answer_is_refused(value):
    with pytest.raises(wsgi.InvalidResponseHeader):
        process(("Content-Type", "text/csv"), ("Content-Disposition", value))


def test_an_answer_is_as_long_as_its_header_says():
    assert process(("Content-Length", "12")).response_length == 12
    assert process(("Content-Type", "text/csv")).response_length is None


def test_threads_do_all_that_they_are_given_before_they_end():
    threads, done = Threads(2), queue.SimpleQueue()
    for number in range(20):
        threads.submit(functools.partial(done.put, number))
    threads.shutdown()
    assert {done.get(timeout=10) for _ in range(20)} == set(range(20))
