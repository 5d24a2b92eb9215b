"""driver-analytics erase: nothing is left of a driver, and all else is as if the driver had never existed."""

import os
import pty
import struct

import bson
import pytest

from app.store import Store
from schemas.report import ReportWindow
from scripts.lifecycle import erase
from scripts.lifecycle.erase import erase_driver
from scripts.reports.build import build_report
from tests.conftest import Service
from tests.factories import make_driver, make_event, make_point, make_trip
from tests.feed_client import Client
from tests.fleet_states import differences, empty
from tests.following import make_source
from tests.store_contents import contents, issue_key, load

SECRET = "driver-to-erase"
NAMES = {"first_name": "Zebedee", "last_name": "Quackenbush", "email": "zebedee@example.com", "alias": "Zeb"}
LATITUDE = 12.3456789
REPORT = ("--fleet", "f1", "--report-date", "2026-03-16")
ERASE = ("erase", "--fleet", "f1", "--driver", SECRET)
OTHERS = [make_trip("2026-03-10T09:00", "d2", trip_id="other"), make_trip("2026-03-17T09:00", "d2", trip_id="later")]


def make_trips(count=4):
    """Return trips of the driver on consecutive days, with positions that no other trip has."""
    return [
        make_trip(
            f"2026-03-{10 + day:02}T08:00",
            SECRET,
            trip_id=f"erased {day}",
            start_latitude=LATITUDE,
            trail_path=[make_point(1_773_000_000_000, latitude=LATITUDE)],
            events=[make_event(1_773_000_000_000, event_start_latitude=LATITUDE)],
        )
        for day in range(count)
    ]


@pytest.fixture
def loaded(mongod, clock):
    """A fleet with the driver and another one."""
    load(mongod, *make_trips(), *OTHERS, drivers=[make_driver(SECRET, **NAMES), make_driver("d2")])
    for driver_id in (SECRET, SECRET, "d2", None):
        issue_key(mongod, "f1", driver_id)
    mongod["keys"].update_one({"driver_id": SECRET}, {"$set": {"revoked_at": 1}})
    return mongod


def traces(db):
    """Return the names of the collections that have something of the driver, apart from tombstones."""
    values = [SECRET, LATITUDE, *NAMES.values()]
    wanted = [struct.pack("<d", value) if isinstance(value, float) else value.encode() for value in values]
    wanted.append(str(LATITUDE).encode())
    return {
        name
        for name in db.list_collection_names()
        for document in db[name].find({"deleted_at": {"$exists": False}})
        if any(value in bson.encode(document) for value in wanted)
    }


def test_nothing_is_left_in_any_collection_or_file(command, loaded):
    for _ in range(2):
        assert command("reports", "build", *REPORT).exit_code == 0
    assert traces(loaded) > {"drivers", "trips", "keys", "report_files.chunks"}
    ended = command(*ERASE, "--yes")
    assert (ended.exit_code, traces(loaded)) == (0, set())
    last = ended.stdout.splitlines()[-1]
    assert last == f"f1: erased the driver {SECRET}: 4 trips removed, 1 reports built again"
    assert {key["driver_id"] for key in loaded["keys"].find()} == {None, "d2"}


def test_a_tombstone_has_the_identifiers_of_its_trip_and_no_more(command, loaded):
    command(*ERASE, "--yes")
    tombstones = list(loaded.trip_changes.find({"deleted_at": {"$exists": True}}))
    assert {tombstone["trip_id"] for tombstone in tombstones} == {f"erased {day}" for day in range(4)}
    names = {"_id", "fleet", "trip_id", "driver_id", "change", "replaced", "deleted_at", "checksum"}
    assert {*tombstones[0]} == names


def test_all_else_is_as_if_the_driver_had_never_existed(command, loaded):
    command(*ERASE, "--yes")
    after = contents(loaded)
    empty(loaded)
    load(loaded, *OTHERS, drivers=[make_driver("d2")])
    assert after == contents(loaded)


def test_a_client_of_the_change_feed_learns_of_every_trip(command, loaded):
    client = Client(Service(loaded))
    client.sync()
    assert "erased 0" in client.copy
    command(*ERASE, "--yes")
    client.sync()
    assert set(client.copy) == {"other", "later"}


def test_repeated_it_finds_nothing_even_after_the_last_driver(command, loaded):
    ended = [command("erase", "--fleet", "f1", "--driver", driver, "--yes") for driver in (SECRET, "d2", "d2")]
    assert [result.exit_code for result in ended] == [0, 0, 0]
    assert ended[-1].stdout == "f1: nothing is stored of the driver d2\n"


def test_without_a_terminal_and_yes_nothing_is_removed(command, loaded):
    before = contents(loaded)
    ended = command(*ERASE)
    assert (ended.exit_code, contents(loaded)) == (1, before)
    assert "4 documents in trips" in ended.stdout
    assert ended.stderr == "Error: Nothing was removed: there is no terminal to ask on. Confirm with --yes.\n"


@pytest.mark.parametrize(("response", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 1, 4)])
def test_on_a_terminal_it_asks(command, run_main, loaded, monkeypatch, response, status, left):
    terminal, user = pty.openpty()
    os.write(terminal, response)
    with open(user) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        ended = run_main(*ERASE)
    os.close(terminal)
    assert (ended.status, "Remove all of it?" in ended.stdout) == (status, True)
    assert loaded.trips.count_documents({"driver_id": SECRET}) == left


def test_a_kill_at_any_moment_leaves_what_the_next_run_removes(command, loaded, kills):
    command("reports", "build", *REPORT)
    for _ in kills(erase, lambda: command(*ERASE, "--yes"), 20, 30, 70):
        assert differences(loaded) == []
    assert traces(loaded) == set()


def test_a_report_that_was_begun_before_is_built_again_without_the_driver(loaded, monkeypatch):
    store = Store.of(loaded)

    def make_page(figures, units):
        if figures.drivers == 2:
            list(erase_driver(store, "f1", SECRET))
        return b"page"

    monkeypatch.setattr("scripts.reports.build.make_page", make_page)
    assert build_report(store, "f1", ReportWindow("2026-03-16"))["drivers"] == 1
    assert traces(loaded) == set()


def test_another_fleet_keeps_its_driver_of_the_same_id(command, loaded):
    load(loaded, *make_trips(), fleet="f2")
    before = loaded.driver_periods.count_documents({"fleet": "f2"})
    command(*ERASE, "--yes")
    assert loaded.trips.count_documents({"fleet": "f2"}) == 4
    assert loaded.driver_periods.count_documents({"fleet": "f2"}) == before


def test_a_driver_of_a_fleet_without_read_models_is_erased(command, mongod):
    mongod.trips.insert_one(make_source(make_trip("2026-03-10T08:00", SECRET)))
    assert [command(*ERASE, "--yes").exit_code for _ in range(2)] == [0, 0]
    assert traces(mongod) == set()


def test_a_driver_whom_only_a_report_has_is_erased(command, loaded):
    command("reports", "build", *REPORT)
    for name in loaded.list_collection_names():
        if not name.startswith("report"):
            loaded[name].delete_many({})
    assert (command(*ERASE, "--yes").exit_code, traces(loaded)) == (0, set())


def test_a_trip_that_another_program_gave_to_another_driver_stays(command, loaded):
    loaded.trips.update_one({"trip_id": "erased 1"}, {"$set": {"driver_id": "d2"}})
    command(*ERASE, "--yes")
    assert loaded.trip_details.find_one({"trip_id": "erased 1"})["driver_id"] == "d2"
    assert differences(loaded) == []
