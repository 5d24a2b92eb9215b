"""driver-analytics rollups: what follows from drivers and trips, built again or compared."""

import collections
import itertools
import math
import sys

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pymongo import MongoClient

from app.store import READ_MODELS, Store
from schemas.summary import DailySummary, WeeklySummary
from scripts.materialize.rebuild import rebuild_fleet
from scripts.mongodb.connection import prepare_collections
from tests.factories import epoch_ms, make_driver, make_event_summary, make_trip
from tests.fleet_states import differences
from tests.store_contents import DATA, PRESENT, contents, load

DAY_MS = 86_400_000
DATES = ("2026-03-10", "2026-03-11", "2026-03-12")
BYPASS = {"bypass_document_validation": True}
AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")
COUNTS = ("phone_use_count", "rapid_acceleration_count", "hard_brake_count", "overspeeding_count")
TIMES = ("phone_use_time_seconds", "overspeeding_time_seconds")
# Of a score of which the rounding takes a sum that is this close to its edge, either outcome is right.
EDGE = 1e-9


@pytest.fixture(scope="module")
def documents(mongod_uri):
    """By collection: two fleets with trips of three drivers on three days; each also has a driver without any."""
    trips = [
        make_trip(f"2026-03-{day}T{hour}:00", f"d{hour}", trip_id=f"{day} {hour}", distance_miles=hour / 3)
        for day in (10, 11, 12)
        for hour in (13, 14, 15)
    ]
    drivers = [make_driver("idle"), make_driver("d13", first_travel_date="2026-01-01")]
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["loaded"]))
        for fleet in ("f1", "f2"):
            load(client["loaded"], *trips, drivers=drivers, fleet=fleet)
        yield {name: list(client["loaded"][name].find()) for name in DATA}
        client.drop_database("loaded")


@pytest.fixture
def loaded(mongod, documents):
    """A store with these documents."""
    for name in DATA:
        mongod[name].insert_many(documents[name])
    return contents(mongod)


@pytest.fixture(scope="module")
def comparable(mongod_uri, documents):
    """A store with these documents, for the tests that undo what they change."""
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["comparable"]))
        for name in DATA:
            client["comparable"][name].insert_many(documents[name])
        yield client["comparable"]
        client.drop_database("comparable")


@pytest.fixture
def changed(comparable, documents):
    """The same; the changes to the read models are undone afterwards."""
    yield comparable
    for name in READ_MODELS:
        if list(comparable[name].find()) != documents[name]:
            comparable[name].delete_many({})
            comparable[name].insert_many(documents[name])


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


def dates(db, fleet):
    return sorted({day["start_date"] for day in db.driver_periods.find({"fleet": fleet, "period": "day"})})


def lose(db, **match):
    for name in READ_MODELS:
        db[name].delete_many(match)


def test_a_rebuild_makes_all_read_models_from_drivers_and_trips_alone(loaded, rebuild, mongod):
    lose(mongod)
    assert rebuild() == "f1: 9 days rebuilt\nf2: 9 days rebuilt\n"
    assert contents(mongod) == loaded


def test_a_rebuild_of_what_is_right_changes_nothing(loaded, rebuild, mongod):
    rebuild()
    assert contents(mongod) == loaded


def test_a_nullable_field_that_a_stored_driver_lacks_counts_as_null(rebuild, verify, mongod):
    driver = {"_id": "f1/d1", "fleet": "f1", "driver_id": "d1", "first_name": "Ada"}
    mongod.drivers.insert_one(driver, bypass_document_validation=True)
    assert rebuild() == "f1: 0 days rebuilt\n"
    assert verify() == (0, ["f1: 0 days compared: no differences"])
    (profile,) = mongod.driver_periods.find({"driver_id": "d1"})
    assert orjson.loads(profile["json"]) == make_driver("d1", first_name="Ada")


def test_a_rebuild_removes_what_follows_from_trips_that_are_gone(loaded, rebuild, mongod):
    mongod.trips.delete_many({"fleet": "f1", "trip_id": {"$regex": "^11 "}})
    assert rebuild("--fleet", "f1") == "f1: 6 days rebuilt\n"
    assert mongod.trip_details.count_documents({"fleet": "f1"}) == 6
    assert (dates(mongod, "f1"), dates(mongod, "f2")) == (["2026-03-10", "2026-03-12"], [*DATES])


def test_of_drivers_whose_trips_are_gone_only_those_imported_stay(loaded, rebuild, mongod):
    mongod.trips.delete_many({"driver_id": {"$in": ["d13", "d14"]}})
    rebuild()
    profiles = [orjson.loads(row) for row in mongod.fleet_drivers.find_one({"fleet": "f1", "offset": 0})["drivers"]]
    result = [(profile["driver_id"], profile["first_travel_date"], profile["last_travel_date"]) for profile in profiles]
    assert result == [("d13", "2026-01-01", None), ("d15", "2026-03-10", "2026-03-12"), ("idle", None, None)]


def test_a_fleet_that_lost_all_its_sources_has_no_read_model_left(loaded, rebuild, verify, mongod):
    for name in ("drivers", "trips"):
        mongod[name].delete_many({"fleet": "f1"})
    assert verify("--fleet", "f1")[0] == 1
    rebuild("--fleet", "f1")
    match = {"fleet": "f1", **PRESENT}
    left = {name: mongod[name].count_documents(match) for name in DATA}
    assert left == dict.fromkeys(DATA, 0)
    assert verify("--fleet", "f1")[0] == 0


def test_one_fleet_is_rebuilt_alone(loaded, rebuild, mongod):
    lose(mongod)
    assert rebuild("--fleet", "f2") == "f2: 9 days rebuilt\n"
    assert (dates(mongod, "f1"), dates(mongod, "f2")) == ([], [*DATES])


@pytest.mark.parametrize(("since", "count"), [("2026-03-11", 6), ("2026-03-13", 0)])
def test_days_are_rebuilt_from_a_date_on(loaded, rebuild, mongod, since, count):
    lose(mongod)
    assert rebuild("--fleet", "f1", "--since", since) == f"f1: {count} days rebuilt\n"
    assert dates(mongod, "f1") == [date for date in DATES if date >= since]


def test_days_before_the_date_stay_as_they_are(loaded, rebuild, mongod):
    mongod.driver_periods.delete_many({"start_date": "2026-03-12"})
    rebuild("--since", "2026-03-12")
    assert contents(mongod) == loaded


def test_a_driver_imported_before_a_field_existed_gets_null_for_it(loaded, rebuild, verify, mongod):
    idle = {"fleet": "f1", "driver_id": "idle"}
    profile = {**idle, "period": "profile"}
    mongod.drivers.update_one(idle, {"$unset": {"alias": 1}}, **BYPASS)
    mongod.driver_periods.update_one(profile, {"$set": {"json": '{"driver_id":"idle"}'}}, **BYPASS)
    assert verify("--fleet", "f1")[0] == 1
    rebuild("--fleet", "f1")
    assert orjson.loads(mongod.driver_periods.find_one(profile)["json"])["alias"] is None
    assert verify("--fleet", "f1")[0] == 0


def test_a_rebuild_since_a_date_builds_the_day_that_a_trip_has_left(loaded, rebuild, verify, mongod):
    moved = {"trip_start_time": epoch_ms("2026-03-12T08:00"), "trip_end_time": epoch_ms("2026-03-12T09:00")}
    mongod.trips.update_one({"_id": "f1/10 13"}, {"$set": moved})
    rebuild("--fleet", "f1", "--since", "2026-03-12")
    assert verify("--fleet", "f1")[0] == 0


def test_days_are_right_after_a_rebuild_that_ended_after_its_first_transaction(loaded, mongod):
    mongod.trips.update_many({"fleet": "f1"}, {"$set": {"distance_miles": 7}})
    next(rebuild_fleet(Store.of(mongod), "f1"))
    assert differences(mongod) == []


def test_an_empty_store_has_nothing_to_rebuild(mongod, rebuild):
    assert rebuild() == ""


@pytest.mark.parametrize("name", ["rebuild", "verify"])
def test_an_unknown_fleet_is_an_error_in_one_line(loaded, command, name):
    result = command("rollups", name, "--fleet", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: Nothing is stored for the fleet nope. The fleets are: f1, f2.\n"


@pytest.mark.parametrize(
    "since", ["yesterday", "20260310", "2026-02-30", "2026-03-10T00:00", "", "2026-13-01", "2026-3-1", "٢٠٢٦-03-01"]
)
def test_a_date_that_is_none_is_a_usage_error(command, since):
    result = command("rollups", "rebuild", "--since", since)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--since" in result.stderr


@pytest.fixture
def small_steps(monkeypatch):
    """Read and write a few trips and days at a time."""
    for name in ("TRIPS_PER_TRANSACTION", "DAYS_PER_TRANSACTION"):
        monkeypatch.setattr(f"scripts.materialize.rebuild.{name}", 2)


def test_a_rebuild_goes_on_step_by_step(loaded, rebuild, small_steps, mongod):
    lose(mongod, fleet="f1")
    assert rebuild() == "f1: 9 days rebuilt\nf2: 9 days rebuilt\n"
    assert contents(mongod) == loaded


# Compared with what they follow from.

F1_RIGHT, F2_RIGHT = "f1: 9 days compared: no differences", "f2: 9 days compared: no differences"
REPAIRS = "'driver-analytics rollups rebuild' repairs them"
TRIP, DRIVER = {"trip_id": "10 13"}, {"driver_id": "d13"}
DAY = {**DRIVER, "period": "day", "start_date": "2026-03-10"}
WEEK = {**DRIVER, "period": "week", "start_date": "2026-03-09"}
MONTH = {**DRIVER, "period": "month", "start_date": "2026-03-01"}
PROFILE = {**DRIVER, "period": "profile"}
LIST, HEAD = {"offset": 0}, {"offset": -1}
OF_TRIP, OF_CHANGE = "trip_details f1/10 13: ", "trip_changes f1/10 13: "
OF_DAY = "driver_periods d13 day 2026-03-10: "
OF_WEEK, OF_MONTH = "driver_periods d13 week 2026-03-09: ", "driver_periods d13 month 2026-03-01: "
OF_PROFILE = "driver_periods d13 profile : "
OF_LIST, OF_HEAD = "fleet_drivers 0: ", "fleet_drivers -1: "
# What differs: the collection, the document, and a change of it with the differences that are named.
CHANGES = [
    ("trip_details", TRIP, {"summary": "{}"}, [OF_TRIP]),
    ("trip_details", TRIP, {"focus_area": "{}"}, [OF_TRIP]),
    ("trip_details", TRIP, {"trail_path": "[]"}, [OF_TRIP]),
    ("trip_details", TRIP, {"events": "[{}]"}, [OF_TRIP]),
    ("trip_details", TRIP, {"tracking_id": "other"}, [OF_TRIP]),
    ("trip_details", TRIP, {"trip_end_time": 1}, [OF_TRIP]),
    ("trip_details", TRIP, {"version": "0"}, [OF_TRIP]),
    ("trip_changes", TRIP, {"json": "{}"}, [OF_CHANGE]),
    ("trip_changes", TRIP, {"driver_id": "d14"}, [OF_CHANGE]),
    ("trip_changes", TRIP, {"trip_end_time": 1}, [OF_CHANGE]),
    ("trip_changes", TRIP, {"version": "0"}, [OF_CHANGE]),
    ("driver_periods", DAY, {"json": "{}"}, [OF_DAY]),
    ("driver_periods", DAY, {"summary.trip_count": 2}, [OF_DAY]),
    ("driver_periods", DAY, {"trip_count": 2}, [OF_DAY]),
    ("driver_periods", DAY, {"trips": ["{}"]}, [OF_DAY]),
    ("driver_periods", DAY, {"trip_ends": [1]}, [OF_DAY]),
    ("driver_periods", DAY, {"last_trip_end": 1}, [OF_DAY]),
    ("driver_periods", DAY, {"version": "0"}, [OF_DAY]),
    ("driver_periods", WEEK, {"driving_summary": "{}"}, [OF_WEEK]),
    ("driver_periods", WEEK, {"breakdown": "{}"}, [OF_WEEK]),
    ("driver_periods", WEEK, {"fm_score": 1.0}, [OF_WEEK]),
    ("driver_periods", WEEK, {"distance_miles": 1.0}, [OF_WEEK]),
    ("driver_periods", WEEK, {"version": "0"}, [OF_WEEK]),
    ("driver_periods", MONTH, {"driving_summary": "{}"}, [OF_MONTH]),
    ("driver_periods", MONTH, {"fm_score": 1.0}, [OF_MONTH]),
    ("driver_periods", MONTH, {"calendar.trip_counts": [7]}, [OF_MONTH]),
    ("driver_periods", MONTH, {"version": "0"}, [OF_MONTH]),
    ("driver_periods", PROFILE, {"json": "{}"}, [OF_PROFILE, OF_LIST]),
    ("driver_periods", PROFILE, {"version": "0"}, [OF_PROFILE]),
    ("fleet_drivers", LIST, {"drivers": ["{}"]}, [OF_LIST]),
    ("fleet_drivers", LIST, {"driver_ids": ["d1"]}, [OF_LIST]),
    ("fleet_drivers", LIST, {"version": "0"}, [OF_LIST]),
    ("fleet_drivers", LIST, {"first_driver_id": "a"}, [OF_LIST]),
    ("fleet_drivers", HEAD, {"driver_count": 3}, [OF_HEAD]),
]
MISSING = [
    ("trip_details", TRIP, [OF_TRIP]),
    ("trip_changes", TRIP, [OF_CHANGE]),
    ("driver_periods", DAY, [OF_DAY]),
    ("driver_periods", WEEK, [OF_WEEK]),
    ("driver_periods", MONTH, [OF_MONTH]),
    ("driver_periods", PROFILE, [OF_PROFILE]),
    ("fleet_drivers", LIST, [OF_LIST]),
    ("fleet_drivers", HEAD, [OF_HEAD]),
]
# A copy of a document, changed so that there should be none.
SUPERFLUOUS = [
    ("trip_details", TRIP, {"_id": "f1/x", "trip_id": "x"}, ["trip_details f1/x: "]),
    ("trip_changes", TRIP, {"_id": "f1/z", "trip_id": "z"}, ["trip_changes f1/z: "]),
    ("trip_details", TRIP, {"_id": "f1/y", "trip_id": "y", "driver_id": "new"}, ["trip_details f1/y: "]),
    ("driver_periods", DAY, {"start_date": "2026-03-13"}, ["driver_periods d13 day 2026-03-13: "]),
    ("driver_periods", DAY, {"driver_id": "new"}, ["driver_periods new day 2026-03-10: "]),
    ("driver_periods", WEEK, {"start_date": "2026-03-16"}, ["driver_periods d13 week 2026-03-16: "]),
    ("driver_periods", WEEK, {"driver_id": "new"}, ["driver_periods new week 2026-03-09: "]),
    ("driver_periods", MONTH, {"start_date": "2026-04-01"}, ["driver_periods d13 month 2026-04-01: "]),
    ("driver_periods", MONTH, {"driver_id": "new"}, ["driver_periods new month 2026-03-01: "]),
    ("driver_periods", PROFILE, {"driver_id": "new"}, ["driver_periods new profile : "]),
    ("fleet_drivers", LIST, {"offset": 100}, ["fleet_drivers 100: "]),
]


def test_what_was_imported_is_right(loaded, verify):
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])


def test_one_fleet_is_compared_alone(loaded, verify, mongod):
    lose(mongod, fleet="f1")
    assert verify("--fleet", "f2") == (0, [F2_RIGHT])


def names(result, named, problem):
    """Return whether differences that were found include those that are named."""
    return {f"{name}{problem}" for name in named} <= {*result}


@pytest.mark.parametrize(("collection", "match", "change", "named"), CHANGES, ids=str)
def test_what_differs_is_named(changed, collection, match, change, named):
    changed[collection].update_one({"fleet": "f1", **match}, {"$set": change}, **BYPASS)
    assert names(differences(changed), named, "differs")


@pytest.mark.parametrize(("collection", "match", "named"), MISSING, ids=str)
def test_what_is_missing_is_named(changed, collection, match, named):
    assert changed[collection].delete_one({"fleet": "f1", **match}).deleted_count == 1
    assert names(differences(changed), named, "is missing")


@pytest.mark.parametrize(("collection", "match", "change", "named"), SUPERFLUOUS, ids=str)
def test_what_should_not_be_there_is_named(changed, collection, match, change, named):
    copy = changed[collection].find_one({"fleet": "f1", **match}, {"_id": 0})
    changed[collection].insert_one({**copy, **change})
    assert names(differences(changed), named, "should not be there")


def test_the_command_prints_each_difference_with_its_fleet(loaded, verify, mongod):
    mongod.trip_details.update_one({"fleet": "f1", **TRIP}, {"$set": {"version": "0"}})
    mongod.fleet_drivers.update_one({"fleet": "f1", **LIST}, {"$set": {"version": "0"}})
    ending = f"f1: 9 days compared: 2 differences; {REPAIRS}"
    assert verify() == (1, [f"f1: {OF_TRIP}differs", f"f1: {OF_LIST}differs", ending, F2_RIGHT])


def change_all(db, name):
    for collection, match, change, _ in CHANGES:
        if collection == name:
            db[name].update_one({"fleet": "f1", **match}, {"$set": change}, **BYPASS)


def remove_all(db, name):
    for collection, match, _ in MISSING:
        if collection == name:
            db[name].delete_one({"fleet": "f1", **match})


def add_all(db, name):
    copies = [
        {**db[name].find_one({"fleet": "f1", **match}, {"_id": 0}), **change}
        for collection, match, change, _ in SUPERFLUOUS
        if collection == name
    ]
    if copies:
        db[name].insert_many(copies)


# `make test` damages all collections at once.
@pytest.mark.parametrize(
    "collections",
    [
        pytest.param(READ_MODELS, id="all"),
        *(pytest.param([name], id=name, marks=pytest.mark.large) for name in READ_MODELS),
    ],
)
@pytest.mark.parametrize("damage", [change_all, remove_all, add_all])
def test_a_rebuild_repairs_whatever_differs(loaded, verify, rebuild, mongod, damage, collections):
    for name in collections:
        damage(mongod, name)
    assert verify("--fleet", "f1")[0] == 1
    rebuild()
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])
    assert contents(mongod) == loaded


def test_verify_prints_the_number_of_differences_and_the_remedy(loaded, verify, mongod):
    mongod.driver_periods.update_many({"fleet": "f1", **DRIVER, "period": "day"}, {"$set": {"trips": []}})
    assert verify("--fleet", "f1")[1][3:] == [f"f1: 9 days compared: 3 differences; {REPAIRS}"]


def test_many_differences_are_summed_up(loaded, verify, mongod):
    mongod.driver_periods.update_many({"fleet": "f1"}, {"$set": {"version": "0"}})
    mongod.trip_details.update_many({"fleet": "f1"}, {"$set": {"version": "0"}})
    status, lines = verify("--fleet", "f1")
    assert (status, len(lines)) == (1, 22)
    assert lines[20:] == ["f1: and 8 more", f"f1: 9 days compared: 28 differences; {REPAIRS}"]


def test_days_are_compared_step_by_step(loaded, verify, small_steps, mongod):
    assert verify() == (0, [F1_RIGHT, F2_RIGHT])
    mongod.driver_periods.delete_one({"fleet": "f2", **DAY})
    assert f"f2: {OF_DAY}is missing" in verify()[1]


def test_an_empty_store_has_nothing_to_compare(mongod, verify):
    assert verify() == (0, [])


def test_a_list_of_several_blocks_is_compared_and_built_again(command, write_lines, verify, rebuild, mongod):
    drivers = write_lines("drivers.ndjson", *(make_driver(f"d{number:03}") for number in range(250)))
    command("import", "--fleet", "f1", "--drivers", str(drivers))
    mongod.fleet_drivers.delete_one({"offset": {"$gt": 0}})
    assert verify()[1][0] == "f1: fleet_drivers 100: is missing"
    rebuild()
    assert verify() == (0, ["f1: 0 days compared: no differences"])
    assert mongod.fleet_drivers.find_one({"fleet": "f1", "offset": -1})["driver_count"] == 250


# Whatever the trips.


def score(totals):
    """Return the contract's score before it is rounded, and the shares of the caps, in its order."""
    miles, seconds, events = totals["distance_miles"], totals["duration_seconds"], totals["events_summary"]
    shares = [
        (events["phone_use_time_seconds"] / seconds if seconds else 0) / 0.15,
        (events["overspeeding_time_seconds"] / seconds if seconds else 0) / 0.20,
        (100 * events["hard_brake_count"] / miles if miles else 0) / 20,
        (100 * events["rapid_acceleration_count"] / miles if miles else 0) / 20,
    ]
    lost = zip((35, 30, 20, 15), shares, strict=True)
    return 100 - sum(weight * min(1, share) for weight, share in lost), shares


def total(trips):
    """Return what the summary of these trips of one day holds beside score and flags."""
    return {
        "trip_count": len(trips),
        **{name: math.fsum(trip[name] for trip in trips) for name in AMOUNTS},
        "events_summary": {
            **{name: sum(trip["event_summary"][name] for trip in trips) for name in COUNTS},
            **{name: math.fsum(trip["event_summary"][name] for trip in trips) for name in TIMES},
        },
    }


def assert_follows(summary, trips):
    """Check a stored summary against the contract, worked out in plain Python."""
    expected = total(trips)
    for name in ("trip_count", *AMOUNTS):
        assert summary[name] == pytest.approx(expected[name], rel=1e-12, abs=0)
    assert summary["events_summary"] == pytest.approx(expected["events_summary"], rel=1e-12, abs=0)
    assert {name: summary["events_summary"][name] for name in COUNTS} == {
        name: expected["events_summary"][name] for name in COUNTS
    }
    exact, shares = score(expected)
    near = {math.floor((exact + step) * 10 + 0.5) / 10 for step in (-EDGE, 0, EDGE)}
    assert summary["fm_score"] in near
    grades = [name for name, lowest in (("excellent", 85), ("good", 70), ("fair", 50)) if summary["fm_score"] >= lowest]
    assert summary["fm_grade"] == (grades or ["poor"])[0]
    flags = ("is_phone_use", "is_overspeeding", "is_hard_brake", "is_acceleration")
    assert list(summary["focus_area"]) == list(flags)
    for flag, share in zip(flags, shares, strict=True):
        assert summary["focus_area"][flag] is (share >= 0.5) or abs(share - 0.5) < EDGE


def test_the_contracts_own_arithmetic():
    events = {"phone_use_time_seconds": 54, "overspeeding_time_seconds": 72, "hard_brake_count": 1}
    trip = make_trip(duration_seconds=720, event_summary=make_event_summary(**events))
    assert score(total([trip])) == (pytest.approx(100 - 17.5 - 15 - 10), [pytest.approx(0.5)] * 3 + [0])


def test_totals_past_what_a_document_may_hold_stay_at_its_bounds(command, mongod, write_lines):
    most = make_event_summary(**dict.fromkeys(COUNTS, 2**63 - 1), **dict.fromkeys(TIMES, 1.7e308))
    trips = [make_trip(**dict.fromkeys(AMOUNTS, 1.7e308), event_summary=most) for _ in range(3)]
    result = command("import", "--fleet", "f1", "--trips", str(write_lines("trips.ndjson", *trips)))
    assert result.exit_code == 0
    summary = mongod.driver_periods.find_one({"period": "day"})["summary"]
    assert [summary[name] for name in AMOUNTS] == [sys.float_info.max] * 4
    assert [summary["events_summary"][name] for name in COUNTS] == [2**63 - 1] * 4
    assert [summary["events_summary"][name] for name in TIMES] == [sys.float_info.max] * 2


amounts = st.one_of(
    st.integers(0, 5000), st.floats(0, 5000), st.sampled_from([0, 0.0, 0.1, 5e-324, 1e-9, 1e15, 2**53 + 1])
)
seconds = st.one_of(st.integers(0, 600), st.floats(0, 600), st.sampled_from([0, 90, 180, 135.0, 270]))
counts = st.one_of(st.integers(0, 5), st.sampled_from([2**53 + 1, 2**40]))
trips = st.builds(
    make_trip,
    trip_id=st.sampled_from([f"t{n}" for n in range(9)]),
    driver_id=st.sampled_from(["d1", "d2", "$d", "d.3", "é"]),
    trip_start_time=st.integers(0, 3 * DAY_MS).map(lambda ms: epoch_ms("2026-03-10T00:00") + ms)
    | st.sampled_from([epoch_ms("2026-03-11T00:00"), epoch_ms("2026-03-11T00:00") - 1]),
    trip_end_time=st.just(epoch_ms("2026-03-14T00:00")),
    **dict.fromkeys(AMOUNTS, amounts),
    event_summary=st.builds(make_event_summary, **dict.fromkeys(COUNTS, counts), **dict.fromkeys(TIMES, seconds)),
)


def same_day(*more):
    return [make_trip(trip_id=f"t{n}", **fields) for n, fields in enumerate(more)]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trips=st.lists(trips, min_size=1, max_size=25), cuts=st.lists(st.integers(0, 25), max_size=5))
@example(same_day({"distance_miles": 0, "duration_seconds": 0}, {"distance_miles": 0.0}), [])
@example(same_day(*({"distance_miles": miles} for miles in (0.1, 0.2, 0.3, 1e16, -0.0, 1))), [1, 3])
@example(
    [make_trip(trip_id="t1"), make_trip(trip_id="t1", driver_id="d2"), make_trip("2026-03-12T00:00", "d3")], [1, 2]
)
def test_summaries_equal_an_aggregation_over_the_trips_and_the_contract_in_plain_python(mongod, trips, cuts):
    for name in DATA:
        mongod[name].delete_many({})
    edges = sorted({0, *cuts, len(trips)})
    for first, last in itertools.pairwise(edges):
        if batch := trips[first:last]:
            load(mongod, *batch)
    by_day = collections.defaultdict(list)
    for trip in {trip["trip_id"]: trip for trip in trips}.values():
        by_day[trip["driver_id"], trip["trip_start_time"] // DAY_MS].append(trip)
    assert_stored(mongod, by_day)


def assert_stored(db, by_day):
    """Check that the store holds exactly these days, all in one week, each as its trips and the contract ask for."""
    days = {
        (day["driver_id"], epoch_ms(f"{day['start_date']}T00:00") // DAY_MS): day
        for day in db.driver_periods.find({"period": "day"})
    }
    assert days.keys() == by_day.keys()
    for key, day in days.items():
        assert list(day["summary"]) == list(DailySummary().fields)
        assert day["json"] == orjson.dumps(day["summary"]).decode()
        assert day["summary"]["date"] == day["start_date"]
        assert_follows(day["summary"], by_day[key])
    driven = {driver_id: [key for key in sorted(by_day) if key[0] == driver_id] for driver_id, _ in by_day}
    for name in ("week", "month"):
        result = {
            period["driver_id"]: orjson.loads(period["driving_summary"]) | orjson.loads(period["breakdown"])
            for period in db.driver_periods.find({"period": name})
        }
        assert result.keys() == driven.keys()
        for driver_id, summary in result.items():
            assert list(summary) == list(WeeklySummary().fields)
            assert summary["daily_summary_breakdown"] == [orjson.loads(days[key]["json"]) for key in driven[driver_id]]
            assert_follows(summary, [trip for key in driven[driver_id] for trip in by_day[key]])
