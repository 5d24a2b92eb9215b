"""`driver-analytics demo`, loaded."""

import datetime

import pytest
import time_machine
from pymongo import MongoClient

from app.config import Config
from app.store import Store
from scripts.admin.keys import issue_key
from scripts.demo import greeting
from scripts.demo import load as demo
from scripts.demo.fleet import FLEET
from scripts.materialize.rebuild import verify_fleet
from scripts.mongodb.connection import prepare_collections
from tests.factories import epoch_ms, make_driver, make_trip
from tests.store_contents import everything


def load_at(db, now):
    with time_machine.travel(now, tick=False):
        demo.load_demo(Store.of(db))


@pytest.fixture(scope="module")
def loaded(mongod_uri):
    """A database with the fleet in it, which tests only load again."""
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["demo"]))
        load_at(client["demo"], "2026-03-18T12:00:00Z")
        yield client["demo"]
        client.drop_database("demo")


# Loading it takes seconds. tests/unit/test_demo_fleet.py says the same of the trips, and test_serve.py loads it.
@pytest.mark.large
def test_the_demo_fleet_has_every_case_of_the_contract(loaded):
    drivers = list(loaded.drivers.find())
    assert len(drivers) == 20
    assert [driver for driver in drivers if driver["first_name"] is driver["last_name"] is driver["email"] is None]
    assert [driver for driver in drivers if loaded.trips.count_documents({"driver_id": driver["driver_id"]}) == 0]
    assert set(loaded.trips.distinct("events.event_type")) == {1, 2, 7, 9}
    assert set(loaded.trips.distinct("insurance_period")) == {None, 1, 2, 3}
    assert set(loaded.driver_periods.distinct("summary.fm_grade")) == {"excellent", "good", "fair", "poor"}


# tests/commands/test_import.py says the same of any trips.
@pytest.mark.large
def test_loading_it_again_changes_nothing(loaded):
    before = everything(loaded)
    load_at(loaded, "2026-03-18T12:00:00Z")
    assert everything(loaded) == before


@pytest.mark.large
def test_loading_it_on_another_day_moves_it_there_without_leftovers(loaded):
    load_at(loaded, "2026-05-01T12:00:00Z")
    earliest = str(datetime.date(2026, 5, 1) - datetime.timedelta(weeks=8))
    dates = loaded.driver_periods.distinct("start_date", {"period": "day"})
    assert earliest <= min(dates) <= max(dates) <= "2026-05-01"
    assert loaded.trips.count_documents({"trip_start_time": {"$lt": epoch_ms(f"{earliest}T00:00")}}) == 0
    assert [outcome for outcome in verify_fleet(Store.of(loaded), FLEET) if outcome.differences] == []


@pytest.fixture
def short(db, load):
    """A store in which the fleet's last trip is of 2026-03-18."""
    load(make_trip("2026-03-18T08:00"), fleet=FLEET)
    return Store.of(db)


@pytest.mark.parametrize(("now", "due"), [("2026-03-19", False), ("2026-04-15", False), ("2026-04-16", True)])
def test_it_is_moved_up_once_it_is_older_than_four_weeks(short, now, due):
    issue_key(short, FLEET)
    with time_machine.travel(now, tick=False):
        assert demo.needs_load(short) is due


@time_machine.travel("2026-03-19", tick=False)
def test_one_that_was_not_loaded_to_its_end_is_loaded_again(short):
    assert demo.needs_load(short)


def test_an_empty_store_gets_the_demo_fleet(store):
    assert demo.needs_load(store)


def test_a_store_with_another_fleet_does_not_get_the_demo_fleet(store, load):
    load(drivers=[make_driver()], fleet="mine")
    assert not demo.needs_load(store)


def test_the_command_says_what_to_do_next(command, monkeypatch):
    # The tests above load it.
    monkeypatch.setattr("scripts.demo.commands.load_demo", lambda store: None)
    assert "driver-analytics keys issue --fleet demo" in command("demo").stdout


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"BIND": "0.0.0.0:80"}, "open http://127.0.0.1:80/#key=da_x to look"),
        ({"PUBLIC_BASE_URL": "https://api.example.com"}, "open https://api.example.com/#key=da_x to look"),
        ({"BIND": "unix:/run/socket"}, "Try first: run one of these requests:"),
    ],
)
def test_the_first_step_leads_to_the_explorer_if_a_browser_reaches_it(settings, text):
    assert text in greeting.get_first_step(Config.from_environment(settings), "da_x")
