"""What requests and commands cost MongoDB, by its profiler: the documents, the index keys, the bytes and the shards."""

import json
import re

import pytest
import time_machine
from pymongo import MongoClient

from app.store import Store
from scripts.admin.backup import FILE_INDEXES
from scripts.materialize.fleet_settings import set_settings
from scripts.materialize.rebuild_and_verify import rebuild_fleet, verify_fleet
from scripts.materialize.write_sources import delete_trips
from scripts.mongodb.collections import INDEXES, prepare_collections
from tests.conftest import NO_LIMITS, NOW, Service
from tests.factories import epoch_ms, make_driver, make_event, make_point, make_trip
from tests.feed_client import Client
from tests.operations import OF_DATA, make_target
from tests.service_process import ROOT
from tests.store_contents import load

FLEETS, DRIVERS, DATES = ("f1", "f2"), 12, 17
PROFILE_BYTES = 2**26
TRIPS = "/driver/d1/trips?start_date=2026-03-01"
TRIP, TRACKING = "/trip/trip_id/d1-1", "/trip/tracking_id/k1"
THREE = "driver_id=d1&driver_id=d2&driver_id=d3"
DAILY = f"/driver-aggregate/daily?start_date=2026-03-02&{THREE}"
WEEKLY = f"/driver-aggregate/weekly?start_date=2026-03-02&{THREE}"
MONTHLY = f"/driver-aggregate/monthly?start_date=2026-03-01&{THREE}"
SCORE = "/driver/d1/score?start_date=2026-03-02&end_date=2026-03-08"
SEARCH = "/drivers?search=d+1&limit=3"
WINDOW = "/driver-aggregate/window?start_date=2026-02-20&end_date=2026-03-08"
RANKING = "/ranking?period=week&start_date=2026-03-02&limit=3"
BEST = "/ranking?period=month&start_date=2026-03-01&limit=3&order=best&min_distance_miles=1"
EVENTS = "/events?start_date=2026-03-17&limit=3"
FLEET_TRIPS = "/trips?start_date=2026-03-16&limit=3"
# Every second driver of f2.
GROUP = "group=even&limit=3"
# Whole responses: a path, and the most documents and index keys that MongoDB examines.
WHOLE = [
    ("/drivers", 2, 2),
    ("/drivers?limit=3&page=2", 2, 2),
    (TRIPS, 18, 18),
    (SEARCH, 2, 2),
    (f"{TRIPS}&limit=3&page=2", 4, 4),
    # What comes after the end is not read.
    (f"{TRIPS}&end_date=2026-03-04", 5, 5),
    # Trips of the last day are not visible yet.
    ("/driver/d0/trips?start_date=2026-03-16", 5, 5),
    ("/driver/nobody/trips?start_date=2026-03-01", 0, 0),
    (TRIP, 1, 1),
    # Trips that share a tracking id are counted in the index.
    (TRACKING, 5, 110),
    (f"{TRACKING}?page=2", 5, 115),
    (DAILY, 6, 18),
    (WEEKLY, 6, 18),
    (MONTHLY, 6, 18),
    # The head and a block of the list, then a profile and a month of each driver.
    (f"{WINDOW}&limit=2", 6, 20),
    (f"{WINDOW}&{THREE}", 6, 20),
    (SCORE, 9, 12),
    (RANKING, 6, 25),
    (f"{RANKING}&page=2", 6, 25),
    (BEST, 6, 25),
    ("/changes?limit=3", 102, 102),
    (EVENTS, 8, 5),
    (f"{EVENTS}&event_type=9", 31, 5),
    # Filters and orders are in the indexes.
    (FLEET_TRIPS, 6, 6),
    (f"{FLEET_TRIPS}&min_distance_miles=99&order=newest", 2, 53),
    (f"{FLEET_TRIPS}&insurance_period=3", 2, 53),
    (f"{FLEET_TRIPS}&order=worst&min_distance_miles=1", 7, 50),
    # Whether there are trips before the date of a report that is not built.
    ("/report?report_time=2026-03-16T00:00:00", 0, 1),
]
# The drivers of a group are found in its index, and only those on the page are read.
OF_GROUP = [
    ("/groups", 0, 3),
    ("/fleet-aggregate?start_date=2026-03-02&group=even", 4, 5),
    (f"{RANKING}&group=even", 7, 18),
    (f"{RANKING}&group=even&page=2", 7, 20),
    (f"{BEST}&group=even", 7, 18),
    (f"/drivers?{GROUP}", 4, 10),
    (f"/drivers?{GROUP}&page=2", 4, 13),
    (f"/drivers?{GROUP}&search=d", 4, 13),
    (f"{WINDOW}&{GROUP}", 7, 16),
    (f"/trips?start_date=2026-03-16&{GROUP}", 6, 66),
    (f"/events?start_date=2026-03-17&{GROUP}", 38, 9),
]
REQUIRED = {"driver_id": "d1", "filter_value": "d1-1"}
PATHS = [*(path for path, _, _ in WHOLE), *(make_target(path, REQUIRED, limit=3) for path in OF_DATA)]
# The same with a key of d1.
OF_DRIVER = [
    ("/drivers", 1, 1),
    (f"{TRIPS}&limit=3&page=2", 4, 4),
    (TRIP, 1, 1),
    ("/trip/trip_id/d2-1", 1, 1),
    # Trips of other drivers are skipped in the index.
    (TRACKING, 5, 140),
    (f"{TRACKING}?page=9", 0, 210),
    (DAILY, 2, 7),
    (WEEKLY, 2, 7),
    (SCORE, 9, 12),
    (RANKING, 0, 0),
    # What is of other drivers is not read.
    (FLEET_TRIPS, 3, 3),
    (f"{FLEET_TRIPS}&min_distance_miles=99&order=newest", 1, 6),
    (EVENTS, 2, 3),
    (f"{EVENTS}&event_type=9", 2, 6),
]
# In f3, trips that are left out and trips that are not visible yet have most of the events.
OF_STORM = [
    (EVENTS, 6, 4),
    (f"{EVENTS}&order=newest", 6, 4),
    (f"{EVENTS}&event_type=9", 18, 4),
    (f"{FLEET_TRIPS}&order=newest", 6, 6),
]
SOME_FIELDS = "trips{trip_id,events},drivers{rank,alias},data{driver_info,driving_summary},total{fm_score}"


@pytest.fixture(scope="module")
def service(mongod_uri):
    """The service on two fleets, for tests that leave them as they are; d0 has a trip that is not visible yet."""
    with time_machine.travel(NOW, tick=False), MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["cost"]))
        drivers = [f"d{n}" for n in range(DRIVERS)]
        for fleet in FLEETS:
            trips = [
                make_trip(
                    f"2026-03-{date:02}T08:{n:02}",
                    driver_id,
                    trip_id=f"{driver_id}-{date}",
                    tracking_id=f"k{n % 2}",
                    trail_path=[make_point(0)] * 20,
                    events=[make_event(epoch_ms(f"2026-03-{date:02}T08:{n:02}"))],
                )
                for n, driver_id in enumerate(drivers)
                for date in range(1, DATES + 1)
            ]
            trips.append(make_trip("2026-03-18T09:00", "d0", trip_id="late"))
            groups = {"f2": {name: ["even"] for name in drivers[::2]}}.get(fleet, {})
            rows = [make_driver(name, groups=groups.get(name, [])) for name in drivers]
            load(client["cost"], *trips, drivers=rows, fleet=fleet)
        _load_storm(client["cost"])
        yield Service(client["cost"], **NO_LIMITS, log_level="ERROR")
        client.drop_database("cost")


def _load_storm(db):
    set_settings(Store.of(db), "f3", implausible_trips="left_out")
    for moment, name, fields in (
        ("2026-03-17T08:00", "storm", {"duration_seconds": 0}),
        ("2026-03-18T09:00", "hidden", {}),
        ("2026-03-17T07:00", "good", {}),
    ):
        events = [make_event(epoch_ms(moment) + n) for n in range(2 if name == "good" else 500)]
        load(db, *(make_trip(moment, trip_id=f"{name}{n}", events=events, **fields) for n in range(3)), fleet="f3")


@pytest.fixture
def profile(service, clock):
    """Return the profiler's entries of what a function does: `profile(function)`."""
    db = service.db

    def profile(function):
        db.drop_collection("system.profile")
        db.create_collection("system.profile", capped=True, size=PROFILE_BYTES)
        db.command("profile", 2)
        function()
        db.command("profile", 0)
        return list(db["system.profile"].find({"ns": {"$ne": db["system.profile"].full_name}}))

    return profile


@pytest.fixture
def request_profile(service, profile):
    """Return those of a request, made with a mask or the key of a driver: `request_profile(path, mask, driver)`."""

    def request_profile(path, mask="*", **scope):
        # The service looks the key up once in three seconds.
        service.get("/drivers", **scope)
        return profile(lambda: service.get(path, **scope, headers={"X-Fields": mask}))

    return request_profile


def add_up(entries, name):
    return sum(entry.get(name, 0) for entry in entries)


def check(entries, max_documents, max_keys):
    """Check that all is found on indexes and in their order, and how much is examined for it."""
    plans = {entry["planSummary"] for entry in entries if "planSummary" in entry}
    assert not [plan for plan in plans if "COLLSCAN" in plan], plans
    assert not add_up(entries, "hasSortStage")
    assert add_up(entries, "docsExamined") <= max_documents
    assert add_up(entries, "keysExamined") <= max_keys


@pytest.mark.parametrize(
    ("scope", "path", "max_documents", "max_keys"),
    [
        *(({}, *row) for row in WHOLE),
        *(({"driver": "d1"}, *row) for row in OF_DRIVER),
        *(({"fleet": "f2"}, *row) for row in OF_GROUP),
        *(({"fleet": "f3"}, *row) for row in OF_STORM),
    ],
)
def test_a_response_is_found_on_indexes(request_profile, scope, path, max_documents, max_keys):
    check(request_profile(path, **scope), max_documents, max_keys)


def test_the_feed_reads_what_is_new_alone(service, profile, clock):
    client = Client(service, limit=1000)
    client.sync()
    (entry,) = profile(client.get_page)
    assert (entry["planSummary"], entry["docsExamined"]) == ("IDHACK", 1)
    clock.shift(2 * 3600)
    service.get("/drivers")
    # The trip became visible.
    check(profile(client.sync), 4, 4)
    assert "late" in client.copy


# Of a trip of one driver that moves to another one, and of all that is stored.
WRITES = {
    "import": (lambda store: load(store.db, make_trip("2026-03-05T09:00", "d5", trip_id="moves")), 50, 55),
    "move": (lambda store: load(store.db, make_trip("2026-03-06T09:00", "d6", trip_id="moves")), 90, 105),
    "import of a driver": (lambda store: load(store.db, drivers=[make_driver("d5", alias="A")]), 25, 30),
    "deletion": (lambda store: delete_trips(store, "f1", ["moves"]), 52, 60),
    # They count and enumerate the documents of each layer in indexes alone.
    "rebuild": (lambda store: list(rebuild_fleet(store, "f1")), 4_800, 7_200),
    "rebuild since a date": (lambda store: list(rebuild_fleet(store, "f1", "2026-03-16")), 4_800, 5_000),
    "verify": (lambda store: list(verify_fleet(store, "f1")), 4_800, 7_200),
}


@pytest.mark.parametrize(("write", "max_documents", "max_keys"), WRITES.values(), ids=WRITES)
def test_a_write_costs_as_much_as_it_changes(service, profile, write, max_documents, max_keys):
    check(profile(lambda: write(service.store)), max_documents, max_keys)


# The shard keys of deploy/sharding.js.

SCRIPT = (ROOT / "deploy" / "sharding.js").read_text()
SHARD_KEYS = json.loads(re.search(r"SHARD_KEYS = (\{.*?\n\});", SCRIPT, re.DOTALL)[1])
# Keys and reports are few.
UNSHARDED = {"keys", "reports"}


def is_pinned(value):
    """Return whether a filter names the values that a field may have."""
    return value is not None and (not isinstance(value, dict) or list(value) in (["$eq"], ["$in"]))


OF_ALL_SHARDS = ("/trip/tracking_id", "/ranking", "/events", "/trips", "/groups")


@pytest.mark.parametrize("mask", ["*", SOME_FIELDS])
def test_only_rankings_groups_and_tracking_ids_are_looked_for_on_all_shards_of_a_fleet(request_profile, mask):
    for path in PATHS:
        for entry in request_profile(path, mask):
            assert "COLLSCAN" not in entry.get("planSummary", ""), path
            name, command = entry["ns"].partition(".")[2], entry["command"]
            if name not in UNSHARDED:
                match = command.get("filter") or command["pipeline"][0]["$match"]
                # A list by cursor reads documents between two values of `_id`.
                _id = match.get("_id")
                assert match.get("fleet") == "f1" or (_id["$gt"] if isinstance(_id, dict) else _id).startswith("f1")
                branches = [match | branch for branch in match.get("$or", [{}])]
                has_key = all(is_pinned(branch.get(field)) for branch in branches for field in SHARD_KEYS[name])
                assert has_key or path.startswith(OF_ALL_SHARDS)


def test_a_shard_key_begins_an_index_and_every_unique_one():
    for name, key in SHARD_KEYS.items():
        indexes = [index.document for index in INDEXES.get(name, ())]
        fields = [(["_id"], False), *((list(index["key"]), index.get("unique", False)) for index in indexes)]
        if name in FILE_INDEXES:
            keys, is_unique = FILE_INDEXES[name]
            fields.append(([field for field, _ in keys], is_unique))
        assert [*key] in [names[: len(key)] for names, _ in fields]
        assert all(names[: len(key)] == [*key] for names, is_unique in fields if is_unique)
