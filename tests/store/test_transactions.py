"""Commands that write to a fleet at the same time: the store ends up as after some serial order of their batches."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from graphlib import TopologicalSorter

import pytest
from pymongo import MongoClient
from pymongo.monitoring import CommandListener

from app.store import Store
from tests.factories import make_driver, make_trip
from tests.fleet_states import Batch, batches_of, differences, empty, locked, state_of, write_batches
from tests.import_processes import BATCH_LINES, finish, make_trips, shift, start_import, write_file

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


# Two batches, one of which begins while the other is written.


class Before(CommandListener):
    """Calls a function before a command, counted from 0."""

    def __init__(self, command, function):
        self.left, self.function = command, function

    def started(self, event):
        self.left -= 1
        if self.left == -1:
            self.function()

    def succeeded(self, event):
        """Do nothing."""

    failed = succeeded


class Conflict(CommandListener):
    """Sets an event when a command fails because of another transaction."""

    def __init__(self):
        self.met = threading.Event()

    def started(self, event):
        """Do nothing."""

    succeeded = started

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


# Several imports.


def make_imports(count):
    """Return the lines of imports of the same trips, each in another order, on other days and of other drivers."""
    lines, imports = make_trips(4 * BATCH_LINES), []
    for n in range(count):
        own = [
            {**shift(line, days=(i + n) % 3), "driver_id": f"d{(i + n * i) % 7}", "insurance_period": n + 1}
            for i, line in enumerate(lines)
        ]
        imports.append(random.Random(n).sample(own, len(own)))
    return imports


def serial_order(db, imports):
    """Return an order of the imports' batches that ends with the stored trips. Raises graphlib.CycleError."""
    graph, batch_of = TopologicalSorter(), {}
    for n, lines in enumerate(imports):
        batch_of |= {(n, line["trip_id"]): (n, i // BATCH_LINES) for i, line in enumerate(lines)}
        for batch in range(1, len(lines) // BATCH_LINES):
            graph.add((n, batch), (n, batch - 1))
    for trip in db.trips.find():
        last = trip["insurance_period"] - 1
        earlier = [batch_of[n, trip["trip_id"]] for n in range(len(imports)) if n != last]
        graph.add(batch_of[last, trip["trip_id"]], *earlier)
    return [batches_of("trips", imports[n], BATCH_LINES)[batch] for n, batch in graph.static_order()]


@pytest.mark.large
def test_processes_that_import_at_the_same_time_end_like_a_serial_order(mongod, mongod_uri, connect, tmp_path):
    imports = make_imports(3)
    files = [write_file(tmp_path / str(n), lines) for n, lines in enumerate(imports)]
    with locked(mongod) as session:
        processes = [start_import(mongod_uri, mongod.name, "--trips", path) for path in files]
        assert all("Waiting" in process.stderr.readline() for process in processes)
        session.abort_transaction()
        for process in processes:
            finish(process)
    ended, order = state_of(mongod), serial_order(mongod, imports)
    assert differences(mongod) == []
    empty(mongod)
    connect(order)
    assert state_of(mongod) == ended
