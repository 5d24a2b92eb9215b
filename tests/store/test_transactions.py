"""Commands that write to a fleet at the same time: the store ends up as after some serial order of their batches."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pymongo import MongoClient

from app.store import Store
from tests.command_listeners import Before, Listener
from tests.factories import make_driver, make_trip
from tests.fleet_states import Batch, differences, empty, state_of, write_batches

MARCH = "2026-03-{:02}T08:00".format


def trip(trip_id, driver_id, date, **fields):
    """Return a line of a trips file, of a date in March."""
    return make_trip(MARCH(date), driver_id, trip_id=trip_id, **fields)


@pytest.fixture
def connect(mongod, mongod_uri):
    """Write batches with a client of its own: `connect(batches, listeners)`."""

    def write(batches, *listeners):
        with MongoClient(mongod_uri, event_listeners=listeners) as client:
            write_batches(Store.of(client[mongod.name]), batches)

    return write


class Conflict(Listener):
    """Sets an event when a command fails because of another transaction."""

    def __init__(self):
        self.met = threading.Event()

    def failed(self, event):
        self.met.set()


@pytest.fixture
def overlap(connect):
    """Write a batch, and another one from before a command of the first; return whether the first came so far."""

    def overlap(first, second, command):
        conflict, began = Conflict(), []

        def write_second():
            try:
                connect([second], conflict)
            finally:
                conflict.met.set()

        def begin():
            began.append(pool.submit(write_second))
            conflict.met.wait()

        with ThreadPoolExecutor() as pool:
            connect([first], Before(command, begin))
        return [future.result() for future in began] == [None]

    return overlap


BASE = [
    Batch("drivers", [make_driver("d1", first_name="Ada")]),
    Batch("trips", [trip("a", "d1", 9), trip("b", "d1", 12), trip("c", "d2", 12)]),
]
TO_D3 = Batch("trips", [trip("b", "d3", 12), trip("n", "d3", 13)])
PAIRS = {
    "the same trip to two drivers": (BASE, TO_D3, Batch("trips", [trip("b", "d2", 11), trip("c", "d3", 12)])),
    "the same new driver": (BASE, TO_D3, Batch("drivers", [make_driver("d3"), make_driver("d2", alias="B")])),
    "added and deleted": (BASE, Batch("trips", [trip("n", "d2", 12)]), Batch("deleted", ["c", "b"])),
    "the first of a fleet": ([], BASE[0], TO_D3),
    # The two write different documents: alone, the second changes nothing in the profile of d1.
    "the last day goes while an earlier one comes": (
        [Batch("trips", [trip("first", "d1", 2), trip("last", "d1", 16)])],
        Batch("trips", [trip("last", "d2", 16)]),
        Batch("trips", [trip("n", "d1", 9)]),
    ),
}


# The second batch begins before each command of the first one, or before each of so many.
@pytest.mark.parametrize("step", [13, pytest.param(3, marks=pytest.mark.large)])
@pytest.mark.parametrize(("base", "first", "second"), PAIRS.values(), ids=PAIRS)
def test_a_batch_that_begins_while_another_is_written_comes_before_or_after_it(
    mongod, connect, overlap, base, first, second, step
):
    def begin():
        empty(mongod)
        connect(base)

    states, commands = [], 0
    for order in ([first, second], [second, first]):
        begin()
        connect(order)
        states.append(state_of(mongod))
    begin()
    while overlap(first, second, commands):
        assert state_of(mongod) in states, commands
        assert differences(mongod) == []
        begin()
        commands += step
    assert commands > 8
