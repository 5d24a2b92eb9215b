"""driver-analytics import, stopped at any moment and run again."""

import pytest

from app.store import Store
from scripts.ingest import importer, loader
from scripts.mongodb.transactions import lock_fleet
from tests.factories import make_driver, make_trip
from tests.fleet_states import FLEET, batches_of, differences, empty, state_of, states_after, write_batches

BATCH_LINES = 15


def make_trips(days, drivers, tracking_ids):
    """Return two batches of trips, in turn of so many days, drivers and tracking ids."""
    return [
        make_trip(
            f"2026-03-{9 + n % days:02}T08:00", f"d{n % drivers}", trip_id=f"t{n}", tracking_id=f"k{n % tracking_ids}"
        )
        for n in range(2 * BATCH_LINES)
    ]


DRIVERS = [make_driver(f"d{n}", alias="A", last_travel_date="2026-12-31") for n in range(BATCH_LINES)]
MOVED = make_trips(5, 25, 3)
BEFORE = batches_of("trips", make_trips(9, 20, 2), BATCH_LINES)
# As an import of two files writes them.
BATCHES = batches_of("drivers", DRIVERS, BATCH_LINES) + batches_of("trips", MOVED, BATCH_LINES)
STEPS = [13, pytest.param(7, marks=pytest.mark.large)]


@pytest.mark.parametrize("step", STEPS)
def test_an_import_that_stops_before_any_command_leaves_whole_batches_and_the_next_one_finishes_it(
    command, mongod, kills, monkeypatch, write_lines, step
):
    words = ["--drivers", write_lines("drivers", *DRIVERS), "--trips", write_lines("trips", *MOVED)]
    monkeypatch.setattr(loader, "BATCH_RECORDS", BATCH_LINES)
    write_batches(Store.of(mongod), BEFORE)
    states = [state_of(mongod), *states_after(mongod, BATCHES)]
    empty(mongod)
    write_batches(Store.of(mongod), BEFORE)
    left = []
    for _ in kills(importer, lambda: command("import", "--fleet", FLEET, *map(str, words)), 0, step, step):
        left.append(states.index(state_of(mongod)))
        assert differences(mongod) == []
    assert left == sorted(left)
    assert {*left} == {*range(len(states))}


def test_other_fleets_do_not_wait_for_a_locked_one(command, mongod, write_lines):
    path = write_lines("trips.ndjson", make_trip())
    with mongod.client.start_session() as session, session.start_transaction():
        with session.bind(end_session=False):
            lock_fleet(Store.of(mongod), FLEET)
        assert command("import", "--fleet", "f2", "--trips", str(path)).exit_code == 0
