"""driver-analytics prune: what is left is as if the trips before the date had never been loaded."""

import pytest

from app.store import Store
from scripts.lifecycle import prune
from scripts.materialize.fleet_settings import set_settings
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.feed_client import Client
from tests.fleet_states import differences, empty
from tests.store_contents import contents, load

DATE = "2026-03-11"
DRIVERS = [make_driver("d1"), make_driver("idle")]
# Of the week of the date, of the month before, and of a driver whom no other trip names.
OLD = [
    make_trip("2026-02-10T08:00", "d1", trip_id="february"),
    make_trip("2026-03-10T23:59", "d1", trip_id="tuesday", trip_end_time=1_773_200_000_000),
    make_trip("2026-03-09T08:00", "only old", trip_id="monday"),
]
NEW = [make_trip("2026-03-11T00:00", "d1", trip_id="midnight"), make_trip("2026-03-12T08:00", "d2", trip_id="new")]


@pytest.fixture
def loaded(mongod, clock):
    """A fleet with trips before and after the date."""
    load(mongod, *OLD, *NEW, drivers=DRIVERS)
    return mongod


def test_what_is_left_is_as_if_only_later_trips_had_been_loaded(command, loaded):
    ended = command("prune", "--before", DATE)
    assert (ended.exit_code, ended.stdout) == (0, f"f1: removed 3 trips before {DATE}, 0 reports\n")
    after = contents(loaded)
    empty(loaded)
    load(loaded, *NEW, drivers=DRIVERS)
    assert after == contents(loaded)


def test_dates_are_those_of_the_time_zone_of_each_fleet(command, mongod):
    for fleet, zone in (("denver", "America/Denver"), ("kolkata", "Asia/Kolkata")):
        set_settings(Store.of(mongod), fleet, time_zone=zone)
        load(
            mongod, make_trip("2026-03-10T18:30", trip_id="a"), make_trip("2026-03-11T06:00", trip_id="b"), fleet=fleet
        )
    assert command("prune", "--before", DATE).exit_code == 0
    assert sorted(trip["_id"] for trip in mongod.trips.find()) == ["denver/b", "kolkata/a", "kolkata/b"]


def test_the_change_feed_reports_no_deletion(command, loaded):
    client = Client(Service(loaded))
    client.sync()
    before = dict(client.copy)
    command("prune", "--before", DATE)
    client.sync()
    assert client.copy == before


def test_a_deletion_before_it_is_still_reported(command, loaded):
    command("erase", "--fleet", "f1", "--driver", "only old", "--yes")
    command("prune", "--before", DATE)
    assert loaded.trip_changes.count_documents({"deleted_at": {"$exists": True}}) == 1


def test_it_changes_when_trips_were_last_changed(command, loaded, clock):
    service = Service(loaded)
    before = service.get("/fleet").json["last_trip_received_at"]
    clock.shift(60)
    command("prune", "--before", DATE)
    assert service.get("/fleet").json["last_trip_received_at"] == before + 60_000


def test_a_dry_run_only_counts(command, loaded):
    before = contents(loaded)
    ended = command("prune", "--before", DATE, "--dry-run")
    assert ended.stdout == f"f1: 3 trips before {DATE} and 0 reports would be removed\n"
    assert contents(loaded) == before


def test_one_fleet_is_pruned_alone(command, loaded):
    load(loaded, *OLD, fleet="f2")
    command("prune", "--before", DATE, "--fleet", "f1")
    assert loaded.trips.count_documents({"fleet": "f2"}) == 3


def test_reports_go_whose_days_are_all_pruned(command, loaded):
    for date in (DATE, "2026-03-12"):
        assert command("reports", "build", "--fleet", "f1", "--report-date", date).exit_code == 0
    command("reports", "build", "--fleet", "f1", "--report-date", "2026-03-01", "--period", "month")
    command("prune", "--before", DATE)
    assert [report["report_date"] for report in loaded.reports.find()] == ["2026-03-12"]
    assert loaded["report_files.files"].count_documents({}) == 2


def test_a_kill_at_any_moment_leaves_what_the_next_run_removes(command, loaded, kills):
    list(kills(prune, lambda: command("prune", "--before", DATE), 10, 20, 10))
    assert loaded.trips.distinct("trip_id") == ["midnight", "new"]
    assert differences(loaded) == []
