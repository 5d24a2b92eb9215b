"""driver-analytics rollups: what follows from drivers and trips, built again or compared."""

import pytest
from pymongo import MongoClient

from app.store import READ_MODELS, SOURCES, Store
from schemas.identity import make_event_id
from scripts.materialize.rebuild_and_verify import rebuild_fleet
from scripts.mongodb.collections import prepare_collections
from tests import store_contents
from tests.factories import epoch_ms, make_driver, make_event, make_trip
from tests.fleet_states import differences
from tests.store_contents import DATA, PRESENT, contents

DATES = ["2026-03-10", "2026-03-11", "2026-03-12"]


@pytest.fixture(scope="module")
def documents(mongod_uri):
    """By collection: two fleets with trips of three drivers on three days; each also has a driver without any."""
    trips = [
        make_trip(
            start := f"2026-03-{day}T{hour}:00",
            f"d{hour}",
            trip_id=f"{day} {hour}",
            distance_miles=hour / 3,
            events=[make_event(epoch_ms(start))],
        )
        for day in (10, 11, 12)
        for hour in (13, 14, 15)
    ]
    drivers = [make_driver("idle"), make_driver("d13", first_travel_date="2026-01-01", groups=["North", "Vans"])]
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["loaded"]))
        for fleet in ("f1", "f2"):
            store_contents.load(client["loaded"], *trips, drivers=drivers, fleet=fleet)
        yield {name: list(client["loaded"][name].find()) for name in DATA}
        client.drop_database("loaded")


@pytest.fixture
def loaded(mongod, documents):
    """The contents of a store with these documents."""
    for name in DATA:
        mongod[name].insert_many(documents[name])
    return contents(mongod)


@pytest.fixture
def rebuild(command):
    """Rebuild, and return what was printed."""

    def rebuild(*options):
        result = command("rollups", "rebuild", *options)
        assert result.exit_code == 0, result.output
        return result.stdout

    return rebuild


@pytest.fixture
def verify(command):
    """Compare, and return the exit status and what was printed."""

    def verify(*options):
        result = command("rollups", "verify", *options)
        return result.exit_code, result.stdout.splitlines()

    return verify


@pytest.fixture
def small_steps(monkeypatch):
    """Read and write a few trips, days and drivers at a time."""
    for name in ("TRIPS_PER_PART", "DAYS_PER_PART", "DRIVERS_PER_PART"):
        monkeypatch.setattr(f"scripts.materialize.rebuild_and_verify.{name}", 2)


def dates(db, fleet):
    return sorted({day["start_date"] for day in db.driver_periods.find({"fleet": fleet, "period": "day"})})


def lose(db, **match):
    for name in READ_MODELS:
        db[name].delete_many(match)


def test_a_rebuild_makes_all_read_models_from_drivers_and_trips_alone(loaded, rebuild, small_steps, mongod):
    lose(mongod)
    assert rebuild() == "f1: 9 days rebuilt\nf2: 9 days rebuilt\n"
    assert contents(mongod) == loaded


def test_a_rebuild_removes_what_follows_from_trips_that_are_gone(loaded, rebuild, verify, mongod):
    mongod.trips.delete_many({"fleet": "f1", "trip_id": {"$regex": "^11 "}})
    assert rebuild("--fleet", "f1") == "f1: 6 days rebuilt\n"
    assert (dates(mongod, "f1"), dates(mongod, "f2")) == (["2026-03-10", "2026-03-12"], DATES)
    assert verify("--fleet", "f1") == (0, ["f1: 6 days compared: no differences"])
    # Those who read the change feed learn of it.
    assert mongod.trip_changes.count_documents({"fleet": "f1", "deleted_at": {"$exists": True}}) == 3


def test_a_fleet_that_lost_all_its_sources_has_no_read_model_left(loaded, rebuild, verify, mongod):
    for name in SOURCES:
        mongod[name].delete_many({"fleet": "f1"})
    assert verify("--fleet", "f1")[0] == 1
    rebuild("--fleet", "f1")
    left = {name: mongod[name].count_documents({"fleet": "f1", **PRESENT}) for name in DATA}
    assert left == dict.fromkeys(DATA, 0)
    assert verify("--fleet", "f1")[0] == 0


def test_one_fleet_is_rebuilt_and_compared_alone(loaded, rebuild, verify, mongod):
    lose(mongod)
    assert rebuild("--fleet", "f2") == "f2: 9 days rebuilt\n"
    assert (dates(mongod, "f1"), dates(mongod, "f2")) == ([], DATES)
    assert verify("--fleet", "f2") == (0, ["f2: 9 days compared: no differences"])


def test_days_are_rebuilt_from_a_date_on_and_those_before_stay_as_they_are(loaded, rebuild, mongod):
    mongod.driver_periods.delete_many({"start_date": "2026-03-12"})
    assert rebuild("--since", "2026-03-12") == "f1: 3 days rebuilt\nf2: 3 days rebuilt\n"
    assert contents(mongod) == loaded


def test_a_rebuild_since_a_date_builds_the_day_that_a_trip_has_left(loaded, rebuild, verify, mongod):
    moved = {"trip_start_time": epoch_ms("2026-03-12T08:00"), "trip_end_time": epoch_ms("2026-03-12T09:00")}
    mongod.trips.update_one({"_id": "f1/10 13"}, {"$set": moved})
    rebuild("--fleet", "f1", "--since", "2026-03-12")
    assert verify("--fleet", "f1")[0] == 0


# Compared with what they follow from. tests/store/test_any_writes.py changes each field of each read model.

REPAIRS = "'driver-analytics rollups rebuild' repairs them. What is built from these documents was not compared."
TRIP = {"trip_id": "10 13"}
DAY = {"driver_id": "d13", "period": "day", "start_date": "2026-03-10"}
PROFILE = {"driver_id": "d13", "period": "profile"}
LIST = {"offset": 0}
EVENT_ID = make_event_id("f1", epoch_ms("2026-03-10T13:00"), "10 13")


# Where a document is, its name, and what makes another one of it, with another name.
DIFFERENCES = [
    ("trip_details", TRIP, "f1/10 13", {"_id": "f1/x", "trip_id": "x", "driver_id": "new"}, "f1/x"),
    ("trip_events", TRIP, f"10 13 {EVENT_ID}", {"_id": f"{EVENT_ID}x"}, f"10 13 {EVENT_ID}x"),
    ("trip_changes", TRIP, "f1/10 13", {"_id": "f1/x", "trip_id": "x"}, "f1/x"),
    ("driver_periods", DAY, "d13 day 2026-03-10", {"start_date": "2026-03-13"}, "d13 day 2026-03-13"),
    ("driver_periods", DAY, "d13 day 2026-03-10", {"driver_id": "new"}, "new day 2026-03-10"),
    ("driver_periods", PROFILE, "d13 profile", {"driver_id": "new"}, "new profile"),
    ("fleet_drivers", LIST, "0", {"offset": 100}, "100"),
]


@pytest.mark.parametrize(("collection", "match", "name", "change", "other_name"), DIFFERENCES)
def test_what_is_missing_or_should_not_be_there_is_named_and_repaired(
    loaded, mongod, collection, match, name, change, other_name
):
    document = mongod[collection].find_one_and_delete({"fleet": "f1", **match})
    del document["_id"]
    mongod[collection].insert_one({**document, **change})
    expected = {f"{collection} {name}: is missing", f"{collection} {other_name}: should not be there"}
    assert expected <= {*differences(mongod)}
    list(rebuild_fleet(Store.of(mongod), "f1"))
    assert contents(mongod) == loaded


def test_the_command_prints_each_difference_with_its_fleet(loaded, verify, small_steps, mongod):
    mongod.trip_details.update_one({"fleet": "f1", **TRIP}, {"$set": {"version": "0"}})
    mongod.trip_details.delete_one({"fleet": "f2", "trip_id": "12 15"})
    status, lines = verify()
    assert (status, lines[0]) == (1, "f1: trip_details f1/10 13: differs")
    assert lines[1] == f"f1: 1 differences; {REPAIRS}"
    assert "f2: trip_details f2/12 15: is missing" in lines


def test_many_differences_are_summed_up(loaded, verify, mongod):
    for collection in (mongod.trip_details, mongod.trip_events, mongod.trip_changes, mongod.driver_periods):
        collection.update_many({"fleet": "f1"}, {"$set": {"added": 0}})
    status, lines = verify("--fleet", "f1")
    assert (status, len(lines)) == (1, 22)
    # Those of nine trips, of the event of each, and of their entries in the feed.
    assert lines[20:] == ["f1: and 7 more", f"f1: 27 differences; {REPAIRS}"]


def test_a_list_of_several_blocks_is_compared_and_built_again(verify, rebuild, load, mongod):
    load(drivers=[make_driver(f"d{number:03}") for number in range(250)])
    mongod.fleet_drivers.delete_one({"offset": {"$gt": 0}})
    assert verify()[1][0] == "f1: fleet_drivers 100: is missing"
    rebuild()
    assert verify() == (0, ["f1: 0 days compared: no differences"])
    assert mongod.fleet_drivers.find_one({"fleet": "f1", "offset": -1})["driver_count"] == 250


def test_days_are_right_after_a_rebuild_that_ended_after_its_first_transaction(loaded, mongod):
    mongod.trips.update_many({"fleet": "f1"}, {"$set": {"distance_miles": 7}})
    next(rebuild_fleet(Store.of(mongod), "f1"))
    assert differences(mongod) == []
