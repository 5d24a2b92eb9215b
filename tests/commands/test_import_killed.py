"""driver-analytics import, stopped at any moment and run again."""

from contextlib import suppress

import pytest
from pymongo.errors import BulkWriteError

from app.store import Store
from scripts.ingest.writes import prepare_trip, write_trips
from scripts.materialize.rebuild import rebuild_fleet
from tests.factories import make_driver, make_trip
from tests.fleet_states import (
    FLEET,
    Batch,
    batches_of,
    differences,
    empty,
    locked,
    state_of,
    states_after,
    transaction_lifetime,
    write_batches,
)
from tests.import_processes import (
    BATCH_LINES,
    finish,
    make_trips,
    move,
    start_import,
    wait_killed,
    write_file,
)
from tests.stop_before_command import Stop, open_store_until
from tests.store_contents import TRIP

TRIPS = make_trips(4 * BATCH_LINES)
DRIVERS = [make_driver(f"d{n}", alias="A", last_travel_date="2026-12-31") for n in range(BATCH_LINES)]
BEFORE = batches_of("trips", TRIPS, BATCH_LINES)
# As an import of two files writes them.
BATCHES = batches_of("drivers", DRIVERS, BATCH_LINES) + batches_of("trips", move(TRIPS), BATCH_LINES)


# The process is killed.


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The options of the import."""
    folder = tmp_path_factory.mktemp("import")
    return "--drivers", write_file(folder / "drivers", DRIVERS), "--trips", write_file(folder / "trips", move(TRIPS))


@pytest.fixture
def states(mongod):
    """The states after each whole batch of the import; the store is in the first of them."""
    write_batches(Store.of(mongod), BEFORE)
    states = [state_of(mongod), *states_after(mongod, BATCHES)]
    empty(mongod)
    write_batches(Store.of(mongod), BEFORE)
    with transaction_lifetime(mongod.client, 1):
        yield states


# `make test` stops a batch before many commands, below, and kills few processes, which take seconds.
KILLS = [
    (0, "commitTransaction"),
    *(pytest.param(*kill, marks=pytest.mark.large) for kill in ((1, "update"), (2, "delete"), (3, "aggregate"))),
]


@pytest.mark.parametrize(("batches", "before"), KILLS)
def test_a_killed_import_leaves_whole_batches_and_the_next_run_finishes_it(
    mongod_uri, mongod, words, states, batches, before, command
):
    wait_killed(start_import(mongod_uri, mongod.name, *words, kill_before=f"{batches} {before}"))
    assert state_of(mongod) == states[batches]
    assert differences(mongod) == []
    assert command("import", "--fleet", FLEET, *map(str, words)).exit_code == 0
    assert state_of(mongod) == states[-1]


# One batch is stopped before any command.


@pytest.fixture
def stopped(mongod, mongod_uri):
    """Run a function on the store until it sends a command of some number; return whether it came so far."""

    def stopped(write, command):
        with suppress(Stop), open_store_until(mongod_uri, mongod.name, command) as store:
            write(store)
            return False
        return True

    return stopped


FEW = TRIPS[:BATCH_LINES]
ALL = [trip["trip_id"] for trip in FEW]
KINDS = {
    "new drivers": Batch("drivers", [make_driver(f"new{n}") for n in range(3)]),
    "other travel dates": Batch("drivers", DRIVERS),
    "new trips": Batch("trips", [make_trip(driver_id=driver_id) for driver_id in ("d1", "new")]),
    "moved trips": Batch("trips", move(FEW)),
    "deleted trips": Batch("deleted", ALL[::2]),
    "the last trips": Batch("deleted", ALL),
}


# `make test` stops one kind before every third command.
STOPS = [("deleted trips", 3), *(pytest.param(kind, 1, marks=pytest.mark.large) for kind in KINDS)]


@pytest.mark.parametrize(("kind", "step"), STOPS)
def test_a_batch_that_stops_before_any_command_leaves_nothing(mongod, stopped, kind, step):
    write_batches(Store.of(mongod), [Batch("trips", FEW)])
    before, commands = state_of(mongod), 0
    while stopped(lambda store: write_batches(store, [KINDS[kind]]), commands):
        assert state_of(mongod) == before, commands
        commands += step
    assert commands > 5
    assert state_of(mongod) != before
    assert differences(mongod) == []


def test_a_batch_with_a_document_that_the_store_refuses_leaves_nothing(mongod):
    write_batches(Store.of(mongod), [Batch("trips", FEW)])
    before, trips = state_of(mongod), [prepare_trip(FLEET, TRIP.load(trip)) for trip in move(FEW)]
    trips[-1].detail["version"] = 1
    with pytest.raises(BulkWriteError, match="Document failed validation"):
        write_trips(Store.of(mongod), FLEET, trips)
    assert state_of(mongod) == before


@pytest.mark.large
def test_a_rebuild_that_stops_before_any_command_is_finished_by_the_next_one(mongod, stopped):
    write_batches(Store.of(mongod), [Batch("trips", FEW)])
    before, commands = state_of(mongod), 0
    mongod.driver_periods.delete_many({"period": "day", "driver_id": {"$in": ["d1", "d2"]}})
    while stopped(lambda store: list(rebuild_fleet(store, FLEET)), commands):
        commands += 1
    assert commands > 20
    assert state_of(mongod) == before


# Others write to the fleet.


@pytest.fixture
def locked_session(mongod):
    """The session of a transaction that has locked the fleet f1."""
    with locked(mongod) as session:
        yield session


def test_an_import_waits_for_the_one_that_writes_to_its_fleet(mongod_uri, mongod, tmp_path, locked_session):
    process = start_import(mongod_uri, mongod.name, "--trips", write_file(tmp_path / "trips", [make_trip()]))
    assert process.stderr.readline() == "Waiting for another command that writes to the fleet f1 ...\n"
    assert mongod.trips.count_documents({}) == 0
    locked_session.abort_transaction()
    finish(process)
    assert mongod.trips.count_documents({}) == 1


def test_other_fleets_do_not_wait(command, mongod, write_lines, locked_session):
    path = write_lines("trips.ndjson", make_trip())
    assert command("import", "--fleet", "f2", "--trips", str(path)).exit_code == 0
