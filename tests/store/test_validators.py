"""The store refuses invalid documents, whoever writes them."""

import copy
import math
from concurrent.futures import ThreadPoolExecutor

import bson
import pytest
from pymongo import MongoClient
from pymongo.errors import WriteError

from app.store import READ_MODELS, SOURCES, Store
from schemas.identity import make_id
from schemas.report import ReportWindow
from schemas.trip import TripFocusArea
from scripts.admin.keys import issue_key
from scripts.mongodb.collections import prepare_collections
from scripts.mongodb.validators import VALIDATORS
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event, make_trip
from tests.following import make_source
from tests.store_contents import load


@pytest.fixture(scope="module")
def stored(mongod_uri):
    """A database with a document in every collection."""
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["valid"]))
        fill(client["valid"])
        yield client["valid"]
        client.drop_database("valid")


def fill(db):
    focus_area = dict.fromkeys(TripFocusArea().fields, False)
    trip = make_trip(focus_area=focus_area, events=[make_event(1_773_100_000_000)])
    load(db, {**trip, "distance_miles": 1})
    load(db, trip, drivers=[make_driver("d1")])
    db.driver_groups.insert_one(make_source({"driver_id": "d1", "groups": ["North"]}))
    issue_key(Store.of(db), "f1")
    build_report(Store.of(db), "f1", ReportWindow("2026-03-16"))
    db.resume_tokens.insert_one({"token": b"", "applied_until": 0})


def put(document, path, value):
    """Return a copy of the document with the value at the path, or without it where the value is `...`."""
    changed = copy.deepcopy(document)
    *way, last = path.split(".")
    inner = changed
    for step in way:
        inner = inner[int(step) if step.isdigit() else step]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return changed


# By collection and path, the values that are not valid there.
INVALID = {
    ("keys", "driver_id"): [""],
    ("keys", "key"): ["da_secret"],
    ("trips", "distance_miles"): ["10", -1, math.nan, math.inf, bson.Decimal128("1")],
    ("trips", "trip_start_time"): [1.5, 2**62],
    ("trips", "trip_end_time"): [0],
    ("trips", "trip_id"): ["", ..., "t1\n", "a\0"],
    ("trips", "driver_id"): ["ü" * 65],
    ("trips", "tracking_id"): ["a\nb"],
    ("trips", "fleet"): [...],
    ("trips", "insurance_period"): [4],
    ("trips", "canary"): [1],
    ("trips", "version"): ["0123456789abcdef"],
    ("trips", "focus_area.is_phone_use"): [1],
    ("trips", "event_summary.hard_brake_count"): [-1],
    ("trips", "trail_path.0.latitude"): [91],
    ("trips", "trail_path.0.course"): [-math.inf, ...],
    ("trips", "events"): [[make_event(0)] * 5_001],
    ("trips", "events.0.event_name"): ["HARD_BREAK", "PHONE_USE"],
    ("trips", "events.0.event_data"): [{"canary": 1}, {"user_speed_mph": 1.0}],
    ("trips", "events.0.event_end_timestamp"): [0],
    ("drivers", "email"): [5],
    ("drivers", "alias"): [...],
    ("drivers", "first_travel_date"): ["soon", "2026-02-30", "0000-01-01", "2026-01-05\n"],
    ("driver_groups", "groups"): [..., None, [5], ["a\nb"], ["ü" * 65], ["a", "b", "a"], [str(n) for n in range(11)]],
    ("reports", "csv.digest"): [...],
}


@pytest.mark.parametrize(
    ("collection", "path", "value"), [(*where, value) for where, values in INVALID.items() for value in values]
)
def test_an_invalid_document_is_refused(stored, collection, path, value):
    document = stored[collection].find_one()
    with pytest.raises(WriteError, match="Document failed validation"):
        stored[collection].replace_one({"_id": document["_id"]}, put(document, path, value))
    assert stored[collection].find_one({"_id": document["_id"]}) == document


@pytest.mark.parametrize("_id", ["f1", "f1/", "t1", "f1/other", "f2/t1", "F1/t1", " f1/t1", 5, None, {}], ids=repr)
@pytest.mark.parametrize("collection", SOURCES)
def test_a_source_is_refused_unless_its_id_is_its_identity(stored, collection, _id):
    with pytest.raises(WriteError, match="Document failed validation"):
        stored[collection].insert_one({**stored[collection].find_one(), "_id": _id})


@pytest.mark.parametrize("fleet", ["a/b", "/", "..", ""])
def test_a_source_of_a_fleet_whose_name_is_invalid_is_refused(stored, fleet):
    document = stored.trips.find_one()
    with pytest.raises(WriteError, match="Document failed validation"):
        stored.trips.insert_one({**document, "fleet": fleet, "_id": make_id(fleet, document["trip_id"])})


@pytest.mark.parametrize(
    ("collection", "path", "value"),
    [
        ("trips", "trip_id", "ü" * 64),
        ("trips", "trip_id", "a/b ...😀"),
        ("trips", "focus_area", ...),
        ("trips", "events", []),
        ("trips", "trail_path", []),
        ("drivers", "first_travel_date", "2028-02-29"),
        ("drivers", "first_travel_date", "0001-01-01"),
        ("drivers", "first_travel_date", "9999-12-31"),
        ("driver_groups", "groups", []),
        ("driver_groups", "groups", ["ü" * 64, "a, b/c", "אב", *map(str, range(7))]),
    ],
)
def test_a_valid_source_may_be_written_by_another_program(stored, mongod, collection, path, value):
    document = put(stored[collection].find_one(), path, value)
    document["_id"] = make_id(document["fleet"], document["trip_id" if collection == "trips" else "driver_id"])
    mongod[collection].insert_one(document)
    assert mongod[collection].count_documents(document) == 1


@pytest.mark.parametrize(("name", "validator"), [("trips", VALIDATORS["trips"]), *((name, {}) for name in READ_MODELS)])
def test_a_validator_of_an_earlier_version_is_replaced_and_one_of_a_read_model_removed(mongod, name, validator):
    mongod.command("collMod", name, validator={"fleet": {"$type": "string"}})
    prepare_collections(Store.of(mongod))
    assert mongod[name].options().get("validator", {}) == validator


def test_several_commands_may_make_a_new_store_at_once(mongod_uri):
    with MongoClient(mongod_uri) as client, ThreadPoolExecutor(4) as pool:
        for name in ("race1", "race2", "race3"):
            list(pool.map(prepare_collections, [Store.of(client[name])] * 4))
            client.drop_database(name)


def test_every_collection_has_a_document_that_is_made_invalid():
    assert {collection for collection, _ in INVALID} == VALIDATORS.keys()
