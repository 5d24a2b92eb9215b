"""What is written between the commands of one request: no summary is half of before and half of after."""

import itertools
from contextlib import suppress

import pytest
from pymongo import MongoClient
from scripts.derive import writing
from scripts.imports import load_trips

from schemas.trip import ImportedTrip
from scripts import sharing
from tests.commands.test_import_killed import Stop, StopAt
from tests.conftest import Service
from tests.factories import make_trip
from tests.store.test_plans import Recorder
from tests.store.test_what_is_read import DATA

TRIPS = [
    make_trip(f"2026-03-{9 + n:02}T08:00", trip_id=f"t{n}", tracking_id="k", distance_miles=2**n) for n in range(7)
]
# To another day of the week, and with another distance; some are new, and one goes to another driver.
MOVED = [
    make_trip("2026-03-15T07:00", trip_id="t0", tracking_id="k", distance_miles=2**20),
    make_trip("2026-03-09T07:00", trip_id="t6", tracking_id="k", distance_miles=2**21),
    *(
        make_trip(f"2026-03-15T07:{n:02}", trip_id=f"n{n}", tracking_id="k", distance_miles=2 ** (22 + n))
        for n in range(4)
    ),
    make_trip("2026-03-11T08:00", "d2", trip_id="t2", tracking_id=None, distance_miles=2**30),
]
PATHS = [
    "/driver/d1/trips?start_date=2026-03-01&limit=5&page=2",
    *(f"/trip/tracking_id/k?page={page}" for page in (1, 2)),
    "/driver-aggregate/daily?start_date=2026-03-09&driver_id=d1",
    "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1",
]
MASKS = ["*", "count,current_page,limit,trips{trip_id},data{driving_summary{trip_count,distance_miles}}"]
# Of an import's operations, so many are made, and then so many more, until all are.
STEP = 9
# A request makes no more at first.
COMMANDS = 4


class Interrupter(Recorder):
    """Does something just before commands of some numbers, and counts them."""

    def __init__(self):
        super().__init__()
        self.acts, self.count = {}, 0

    def started(self, event):
        if event.command_name in ("find", "aggregate") and "keys" not in event.command.values():
            self.count += 1
            self.acts.get(self.count, list)()


@pytest.fixture
def interrupter():
    """What interrupts the requests of the service."""
    return Interrupter()


@pytest.fixture
def db(mongod, mongod_uri, interrupter, patient):
    """An empty database of a real server, whose every command can be interrupted."""
    with MongoClient(mongod_uri, event_listeners=[interrupter]) as client:
        yield client[mongod.name]


def load(db, trips):
    with writing(db, "f1"):
        load_trips(db, "f1", [ImportedTrip().load(trip) for trip in trips])


def begin(db):
    """Bring the store to where the tests begin."""
    for name in DATA:
        db[name].delete_many({})
    load(db, TRIPS)


@pytest.fixture
def move_until(mongod, mongod_uri):
    """Import what moves, with so many operations at the most; return whether it was stopped."""

    def move_until(operations):
        with suppress(Stop), MongoClient(mongod_uri, event_listeners=[StopAt(operations)]) as client:
            load(client[mongod.name], MOVED)
            return False
        return True

    return move_until


def fits(answer, states):
    """Return whether a summary is of one of the states, and a page has as many trips as its count says."""
    if "data" in answer:
        return answer in states
    limit, before = answer["limit"], (answer["current_page"] - 1) * answer["limit"]
    return len(answer["trips"]) == max(0, min(limit, answer["count"] - before))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("path", PATHS)
def test_an_answer_holds_together(db, mongod, clock, interrupter, move_until, monkeypatch, path, mask):
    monkeypatch.setattr(sharing, "MANY", 3)
    service = Service(db)

    def get():
        return service.get(path, headers={"X-Fields": mask}).json

    begin(mongod)
    states = [get(), load(mongod, MOVED) or get()]
    stopped, operations = True, 0
    while stopped:
        for first, then in itertools.combinations(range(1, COMMANDS + 1), 2):
            begin(mongod)
            interrupter.count = 0
            interrupter.acts = {first: lambda most=operations: move_until(most), then: lambda: move_until(-1)}
            assert fits(get(), states), (operations, first, then)
        begin(mongod)
        stopped, operations = move_until(operations), operations + STEP
