"""`driver-analytics demo`, loaded."""

import pytest

from app.config import Config
from app.store import Store
from scripts.admin.keys import issue_key
from scripts.demo import greeting
from scripts.demo import load as demo
from scripts.demo.fleet import FLEET
from scripts.materialize.rebuild_and_verify import verify_fleet
from tests.factories import epoch_ms, make_driver, make_trip


# Loading it takes seconds.
@pytest.mark.large
def test_loading_it_on_another_day_moves_it_there_without_leftovers(mongod, clock):
    for now in ("2026-03-18T12:00Z", "2026-05-01T12:00Z"):
        clock.move_to(now)
        demo.load_demo(Store.of(mongod))
    dates = mongod.driver_periods.distinct("start_date", {"period": "day"})
    assert "2026-03-07" <= min(dates) <= max(dates) <= "2026-05-01"
    # The example of the OpenAPI document.
    assert mongod.trips.count_documents({"_id": "demo/demo-01-54-1"}) == 1
    assert mongod.trips.count_documents({"trip_start_time": {"$lt": epoch_ms("2026-03-07T00:00")}}) == 0
    assert [outcome for outcome in verify_fleet(Store.of(mongod), FLEET) if outcome.differences] == []


@pytest.fixture
def short(db, load):
    """A store in which the fleet's last trip is of 2026-03-18."""
    load(make_trip("2026-03-18T08:00"), fleet=FLEET)
    return Store.of(db)


@pytest.mark.parametrize(("now", "due"), [("2026-03-19", False), ("2026-04-15", False), ("2026-04-16", True)])
def test_it_is_moved_up_once_it_is_older_than_four_weeks(short, clock, now, due):
    issue_key(short, FLEET)
    clock.move_to(now)
    assert demo.needs_load(short) is due


def test_one_that_was_not_loaded_to_its_end_is_loaded_again(short, clock):
    assert demo.needs_load(short)


def test_an_empty_store_gets_the_demo_fleet(store):
    assert demo.needs_load(store)


def test_a_store_with_another_fleet_does_not_get_the_demo_fleet(store, load):
    load(drivers=[make_driver()], fleet="mine")
    assert not demo.needs_load(store)


def test_the_command_says_what_to_do_next(command, monkeypatch):
    # The tests above load it.
    monkeypatch.setattr("scripts.demo.load.load_demo", lambda store: None)
    assert "driver-analytics keys issue --fleet demo" in command("demo").stdout


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"BIND": "0.0.0.0:80"}, "open http://127.0.0.1:80/#key=da_x to look"),
        ({"PUBLIC_BASE_URL": "https://api.example.com"}, "open https://api.example.com/#key=da_x to look"),
    ],
)
def test_the_first_step_leads_to_the_explorer(settings, text):
    assert text in greeting.get_first_step(Config.from_environment(settings), "da_x")
