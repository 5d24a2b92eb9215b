"""driver-analytics import, stopped at any moment and run again."""

import pytest

from app.store import Store
from scripts.ingest import loader
from tests.factories import make_driver, make_trip
from tests.fleet_states import FLEET, batches_of, differences, empty, locked, state_of, states_after, write_batches
from tests.import_processes import BATCH_LINES, make_trips, move, write_file

TRIPS = make_trips(2 * BATCH_LINES)
DRIVERS = [make_driver(f"d{n}", alias="A", last_travel_date="2026-12-31") for n in range(BATCH_LINES)]
BEFORE = batches_of("trips", TRIPS, BATCH_LINES)
# As an import of two files writes them.
BATCHES = batches_of("drivers", DRIVERS, BATCH_LINES) + batches_of("trips", move(TRIPS), BATCH_LINES)
# `make test-resilience` kills processes.
STEPS = [13, pytest.param(7, marks=pytest.mark.large)]


@pytest.mark.parametrize("step", STEPS)
def test_an_import_that_stops_before_any_command_leaves_whole_batches_and_the_next_one_finishes_it(
    command, mongod, kills, monkeypatch, tmp_path, step
):
    words = ["--drivers", write_file(tmp_path / "drivers", DRIVERS), "--trips", write_file(tmp_path / "t", move(TRIPS))]
    monkeypatch.setattr(loader, "BATCH_RECORDS", BATCH_LINES)
    write_batches(Store.of(mongod), BEFORE)
    states = [state_of(mongod), *states_after(mongod, BATCHES)]
    empty(mongod)
    write_batches(Store.of(mongod), BEFORE)
    left = []
    for _ in kills(loader, lambda: command("import", "--fleet", FLEET, *map(str, words)), 0, step, step):
        left.append(states.index(state_of(mongod)))
        assert differences(mongod) == []
    assert left == sorted(left)
    assert {*left} == {*range(len(states))}


def test_other_fleets_do_not_wait_for_a_locked_one(command, mongod, write_lines):
    path = write_lines("trips.ndjson", make_trip())
    with locked(mongod):
        assert command("import", "--fleet", "f2", "--trips", str(path)).exit_code == 0
