"""A group of any size: no command to MongoDB has the ids of all of its drivers, which 16 MB have no room for."""

import functools

import pytest
from pymongo import MongoClient

from scripts.mongodb import connection
from tests.command_listeners import Recorder
from tests.conftest import NO_LIMITS, Service
from tests.factories import make_driver, make_event, make_trip
from tests.fleet_states import differences
from tests.operations import MONDAY, OPERATIONS, make_target, parameters_of
from tests.store_contents import load

LIMIT, MOST_IDS, DRIVERS = 3, 10, 25
NAMES = [f"d{n:02}" for n in range(DRIVERS)]
VARIANTS = [{}, {"page": 4}, {"search": "d"}, {"order": "worst"}, {"order": "newest"}, {"behaviour": "hard_brake"}]
OF_GROUPS = [path for path in OPERATIONS if "group" in parameters_of(path)]
# The other numbers of drivers that commands take at once are of changes: those of an import, or of a part of a fleet.
BATCHES = [
    "mongodb.connection.IDS_PER_COMMAND",
    "lifecycle.groups.IDS_PER_COMMAND",
    "lifecycle.groups.MOVES_PER_TRANSACTION",
    "materialize.fleet_periods.IDS_PER_COMMAND",
    *(f"materialize.rebuild_and_verify.{kind}_PER_PART" for kind in ("TRIPS", "DAYS", "DRIVERS")),
    "reports.content.CHUNK_DRIVERS",
]
COMMANDS = [
    ("groups", "list"),
    ("groups", "set", "--group", "all"),
    ("groups", "set", "--group", "new"),
    ("rollups", "verify"),
    ("rollups", "rebuild"),
    ("reports", "build", "--report-date", "2026-03-16"),
    ("groups", "delete", "--group", "all"),
]


@pytest.fixture
def group(mongod, clock):
    """Load a fleet of which all drivers are in a group, and each has a trip with an event."""
    trips = [make_trip(f"{MONDAY}T08:{n:02}", name) for n, name in enumerate(NAMES)]
    trips = [{**trip, "events": [make_event(trip["trip_start_time"])]} for trip in trips]
    load(mongod, *trips, drivers=[make_driver(name, groups=["all"]) for name in NAMES])
    return "all"


def count_drivers(part):
    """Return how many drivers a part of a command looks for at once, by their driver_id or the `_id` of a source."""
    if isinstance(part, dict):
        found = [str(value).removeprefix("f1/") for value in part.get("$in", ())]
        return max([len(set(NAMES).intersection(found)), *map(count_drivers, part.values())])
    return max(map(count_drivers, part), default=0) if isinstance(part, list) else 0


def check(recorder):
    commands, recorder.commands = recorder.commands, []
    assert [command for command in commands if count_drivers(command) > MOST_IDS] == []


@pytest.mark.parametrize("path", OF_GROUPS)
def test_no_request_sends_all_of_them(mongod_uri, mongod, group, monkeypatch, path):
    # Three reads of each entry, in two ranges.
    monkeypatch.setattr("app.store.cursor_lists.MAX_ENTRIES", 3 * 2 * MOST_IDS)
    recorder = Recorder()
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        service = Service(client[mongod.name], **NO_LIMITS)
        service.get("/fleet")
        recorder.commands.clear()
        for variant in VARIANTS:
            if variant.keys() <= parameters_of(path).keys():
                response = service.get(make_target(path, group=group, limit=LIMIT, **variant))
                # Each list has an order of its own.
                assert (response.status_code == 200 and recorder.commands) or "order" in variant
                check(recorder)


def test_no_command_sends_all_of_them(mongod, group, command, monkeypatch, tmp_path):
    for name in BATCHES:
        monkeypatch.setattr(f"scripts.{name}", MOST_IDS)
    recorder = Recorder()
    connect = functools.partial(connection.connect, event_listeners=[recorder])
    monkeypatch.setattr(connection, "connect", connect)
    for words in COMMANDS:
        result = command(*words, "--fleet", "f1", stdin="\n".join(NAMES[1:]))
        assert result.exit_code == 0, result.output
        check(recorder)
    assert differences(mongod) == []
