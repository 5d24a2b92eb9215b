"""driver-analytics import, stopped at any moment and run again."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from bson import ObjectId
from limits import parse
from pymongo import MongoClient
from pymongo.monitoring import CommandListener
from scripts.derive import writing

from scripts import imports, sharing
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.imports import (
    DEADLINE_SECONDS,
    assert_served_as_repaired,
    finish,
    make_trips,
    moved,
    restore,
    start_import,
    stored,
    write_moving,
)

POLL_SECONDS = 0.001


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files: trips, and where each of them moves to."""
    return write_moving(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def start(mongod_uri):
    """Start a real import of one file."""
    return lambda path, database="test": start_import(mongod_uri, database, "--trips", path)


@pytest.fixture(scope="module")
def clean_runs(mongod_uri, start, files):
    """What one clean run of the first file leaves behind, and of the second one after it."""
    with MongoClient(mongod_uri) as client:
        states = []
        for path in files:
            finish(start(path, "clean"))
            states.append(stored(client["clean"]))
        return states


def kill_once(process, reached):
    """Kill the import as soon as `reached()`, which may have ended by then."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not reached() and process.poll() is None:
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("count", [1, 200])
def test_a_run_after_a_kill_ends_like_one_clean_run(start, files, clean_runs, mongod, count):
    kill_once(start(files[0]), lambda: mongod.trips.estimated_document_count() >= count)
    assert mongod.writers.count_documents({}) == 1
    finish(start(files[0]))
    assert stored(mongod) == clean_runs[0]


@pytest.mark.parametrize("count", [1, 150])
def test_a_kill_while_trips_move_ends_like_one_clean_run(start, files, clean_runs, mongod, count):
    restore(mongod, clean_runs[0])
    new = {"fleet": "f1", "driver_id": {"$in": ["d20", "d21", "d22", "d23", "d24"]}}
    kill_once(start(files[1]), lambda: mongod.trips.count_documents(new) * 5 >= count)
    assert mongod.writers.count_documents({}) == 1
    finish(start(files[1]))
    assert stored(mongod) == clean_runs[1]


def test_a_kill_while_days_are_stale_is_repaired_by_an_import_of_another_file(start, files, mongod, write_lines):
    stale = {"fleet": "f1", "stale": True}
    kill_once(start(files[0]), lambda: mongod.daily_summaries.find_one(stale) and mongod.trips.find_one({}))
    finish(start(write_lines("none.ndjson")))
    counts = {(doc["day"]["driver_id"], doc["day"]["date"]): 0 for doc in mongod.daily_summaries.find({})}
    for trip in mongod.trips.find({}):
        counts[trip["driver_id"], trip["day"]["date"]] += 1
    assert mongod.daily_summaries.count_documents(stale) == 0
    assert counts == {tuple(doc["day"].values()): doc["summary"]["trip_count"] for doc in mongod.daily_summaries.find()}


# Stopped before any one operation of an import.


class Stop(BaseException):
    """The process ends here."""


class StopAt(CommandListener):
    """Lets so many operations through to the store, and no more."""

    def __init__(self, operations):
        self.left = operations

    def started(self, event):
        # A dead process cannot hold on to its right to write; this one lives, and has to let go.
        if event.command_name == "endSessions" or "writers" in event.command.values():
            return
        if self.left == 0:
            raise Stop
        self.left -= 1

    def succeeded(self, event):
        """Nothing to do."""

    def failed(self, event):
        """Nothing to do."""


@pytest.fixture
def load_until(command, mongod, mongod_uri, monkeypatch):
    """Import a file in batches of 3 lines, with so many operations at the most; return whether it was stopped."""
    monkeypatch.setattr(imports, "BATCH_LINES", 3)
    monkeypatch.setattr(sharing, "MANY", 1)

    def load_until(operations, *words):
        @contextmanager
        def open_store():
            with MongoClient(mongod_uri, event_listeners=[StopAt(operations)]) as client:
                yield client[mongod.name]

        monkeypatch.setattr(imports, "open_store", open_store)
        with suppress(Stop):
            assert command("import", "--fleet", "f1", *words).exit_code == 0
            return False
        return True

    return load_until


def test_a_stop_before_any_operation_is_made_good_by_the_next_run(load_until, mongod, write_lines):
    trips = make_trips(5)
    drivers = [make_driver(f"d{n}", alias="A", last_travel_date="2026-12-31") for n in range(3)]
    words = ("--trips", str(write_lines("second.ndjson", *moved(trips), {**trips[0], "driver_id": "d1"})))
    words += ("--drivers", str(write_lines("drivers.ndjson", *drivers)))
    assert not load_until(-1, "--trips", str(write_lines("first.ndjson", *trips)))
    first = stored(mongod)
    assert not load_until(-1, *words)
    clean, operations, stopped = stored(mongod), 0, True
    while stopped:
        restore(mongod, first)
        stopped = load_until(operations, *words)
        assert not load_until(-1, *words)
        assert stored(mongod) == clean, operations
        operations += 1
    assert operations > 20


@pytest.mark.parametrize("which", [slice(1, 3), slice(None)], ids=["to other days", "to new drivers"])
def test_what_is_served_after_a_stop_before_any_operation_is_what_is_once_that_is_repaired(
    load_until, mongod, write_lines, clock, which
):
    trips, service, operations = make_trips(5), Service(mongod, rate_limit=parse("100000 per minute")), 0
    second = ("--trips", str(write_lines("second.ndjson", *moved(trips)[which])))
    assert not load_until(-1, "--trips", str(write_lines("first.ndjson", *trips)))
    first = stored(mongod)
    while load_until(operations, *second):
        assert_served_as_repaired(mongod, service)
        restore(mongod, first)
        operations += 1
    assert operations > 20


# One writer a fleet.


def hold(db, **fields):
    """Write down that somebody writes to the fleet f1."""
    with writing(db, "f1"):
        held = db.writers.find_one({}, {"_id": 0})
    db.writers.insert_one({**held, **fields})


def finished_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_dead_process_held_blocks_nobody(command, mongod, write_lines):
    hold(mongod, pid=finished_pid())
    path = write_lines("trips.ndjson", make_trip())
    assert command("import", "--fleet", "f1", "--trips", str(path)).exit_code == 0
    assert mongod.trips.count_documents({}) == 1
    assert mongod.writers.count_documents({}) == 0


def test_an_import_waits_for_the_one_that_writes_to_its_fleet(start, mongod, write_lines):
    with writing(mongod, "f1"):
        process = start(write_lines("trips.ndjson", make_trip()))
        said = process.stderr.readline()
        assert said == f"Waiting for process {os.getpid()}, which is writing to this fleet ...\n"
        assert mongod.trips.count_documents({}) == 0
    finish(process)
    assert mongod.trips.count_documents({}) == 1


def test_other_fleets_do_not_wait(command, mongod, write_lines):
    path = write_lines("trips.ndjson", make_trip())
    with writing(mongod, "f1"):
        assert command("import", "--fleet", "f2", "--trips", str(path)).exit_code == 0


def test_writers_of_a_fleet_never_overlap(mongod, monkeypatch):
    monkeypatch.setattr("scripts.store.WAIT_SECONDS", POLL_SECONDS)
    inside, most = [], []

    def write():
        for _ in range(5):
            with writing(mongod, "f1"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 20


def test_a_writer_that_was_taken_over_stops_before_it_writes(command, mongod, write_lines, monkeypatch):
    path = write_lines("trips.ndjson", make_trip())
    taken = {"$set": {"beat": str(ObjectId())}}
    monkeypatch.setattr("scripts.derive.stale_days", lambda db, fleet: db.writers.update_one({}, taken) and set())
    result = command("import", "--fleet", "f1", "--trips", str(path))
    assert result.exit_code == 1
    assert "took over" in result.stderr
    assert mongod.trips.count_documents({}) == 0


def test_the_right_to_write_is_given_back_after_an_error(command, mongod, tmp_path):
    path = tmp_path / "trips.ndjson"
    path.write_bytes(b"\x1f\x8b")
    assert command("import", "--fleet", "f1", "--trips", str(path)).exit_code == 1
    assert mongod.writers.count_documents({}) == 0
