"""Trips with many events: MongoDB aborts a long transaction, so each writes a part of them, by their size."""

import pytest

from scripts.materialize import sources
from tests.factories import make_event, make_trip
from tests.fleet_states import differences
from tests.following import Following
from tests.store_contents import load

START_MS = 1_772_452_800_000
EVENTS = [make_event(START_MS + minute * 60_000) for minute in range(20)]
TRIPS = [make_trip("2026-03-02T12:00", "d1", trip_id=f"t{n}", events=EVENTS) for n in range(6)]
COMMANDS = {
    "erase": ("erase", "--fleet", "f1", "--driver", "d1", "--yes"),
    "prune": ("prune", "--fleet", "f1", "--before", "2026-03-03"),
    "rebuild": ("rollups", "rebuild", "--fleet", "f1"),
    "set": ("fleets", "set", "--fleet", "f1", "--time-zone", "Pacific/Kiritimati"),
}


@pytest.fixture
def count_transactions(mongod, monkeypatch):
    """Return how many transactions a call takes, each of which may write two of the trips."""
    load(mongod, *TRIPS)
    # Each event is in its source, and stored.
    monkeypatch.setattr(sources, "TRANSACTION_POINTS", 2 * (len(TRIPS[0]["trail_path"]) + 2 * 10 * len(EVENTS)))

    def count(write):
        before = mongod.fleets.find_one({"_id": "f1"})["writes"]
        write()
        return mongod.fleets.find_one({"_id": "f1"})["writes"] - before

    return count


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_writes_large_trips_in_several_transactions(mongod, count_transactions, command, words):
    assert count_transactions(lambda: command(*words)) >= 3
    assert differences(mongod) == []


def test_follow_writes_large_trips_in_several_transactions(mongod, count_transactions, monkeypatch):
    following = Following(mongod)
    following.catch_up()
    mongod.trips.delete_many({})
    monkeypatch.setattr(sources, "TRANSACTION_POINTS", 2 * 10 * len(EVENTS))
    assert count_transactions(following.catch_up) == 3
    assert mongod.trip_events.count_documents({}) == 0
    assert differences(mongod) == []
