"""The store refuses invalid documents, whoever writes them."""

import copy

import pytest
from pymongo import MongoClient
from pymongo.errors import WriteError

from app.store import Store
from app.store.indexes import VALIDATORS
from schemas.trip import TripFocusArea
from scripts.admin.keys import issue_key
from scripts.mongodb.connection import prepare
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event, make_trip
from tests.store_contents import load


@pytest.fixture(scope="module")
def stored(mongod_uri):
    """A database with a document in every collection."""
    with MongoClient(mongod_uri) as client:
        prepare(Store.of(client["valid"]))
        fill(client["valid"])
        yield client["valid"]
        client.drop_database("valid")


def fill(db):
    focus_area = dict.fromkeys(TripFocusArea().fields, False)
    trip = make_trip(focus_area=focus_area, events=[make_event(1_773_100_000_000)])
    load(db, {**trip, "distance_miles": 1})
    load(db, trip, drivers=[make_driver("d1")])
    issue_key(Store.of(db), "f1")
    build_report(Store.of(db), "f1", "2026-03-16")


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


INVALID = [
    ("trips", "distance_miles", "10"),
    ("trips", "distance_miles", -1),
    ("trips", "trip_start_time", 1.5),
    ("trips", "trip_id", ""),
    ("trips", "trip_id", ...),
    ("trips", "fleet", ...),
    ("trips", "insurance_period", 4),
    ("trips", "canary", 1),
    ("trips", "focus_area.is_phone_use", 1),
    ("trips", "event_summary.hard_brake_count", -1),
    ("trips", "trail_path.0.latitude", 91),
    ("trips", "trail_path.1.canary", 1),
    ("trips", "trail_path.1.course", ...),
    ("trips", "events.0.event_name", "HARD_BREAK"),
    ("trips", "events.0.event_data.canary", 1),
    ("trips", "version", "0123456789abcdef"),
    ("drivers", "email", 5),
    ("drivers", "first_travel_date", "soon"),
    ("drivers", "alias", ...),
    ("drivers", "version", "0123456789abcdef"),
    ("fleet_drivers", "position", "first"),
    ("fleet_drivers", "driver_count", ...),
    ("fleet_drivers", "drivers", [1]),
    ("driver_periods", "period", "year"),
    ("driver_periods", "driver_id", "x" * 129),
    ("driver_periods", "start_date", 20260309),
    ("driver_periods", "json", {}),
    ("driver_periods", "version", ...),
    ("ranking_counts", "period", "day"),
    ("ranking_counts", "counts", [-1]),
    ("ranking_counts", "bounds", [{}]),
    ("ranking_counts", "driver_count", ...),
    ("driver_periods", "summary.fm_score", 101),
    ("driver_periods", "summary.fm_grade", None),
    ("driver_periods", "summary.canary", 1),
    ("driver_periods", "trips", [{}]),
    ("trip_details", "totals.event_summary.hard_brake_count", -1),
    ("trip_details", "trail_path", []),
    ("trip_details", "canary", 1),
    ("trip_changes", "change", -1),
    ("trip_changes", "json", {}),
    ("trip_changes", "replaced.0.trip_end_time", ...),
    ("trip_changes", "deleted_at", "yesterday"),
    ("reports", "drivers", -1),
    ("reports", "csv.digest", ...),
    ("keys", "digest", ...),
    ("keys", "key", "da_secret"),
]


def test_every_collection_has_a_document_that_is_made_invalid():
    assert {collection for collection, _, _ in INVALID} == VALIDATORS.keys()


@pytest.mark.parametrize(("collection", "path", "value"), INVALID)
def test_an_invalid_document_is_refused(stored, collection, path, value):
    # Of the periods, a day has the most fields.
    document = stored[collection].find_one({"period": "day"} if collection == "driver_periods" else {})
    with pytest.raises(WriteError, match="Document failed validation"):
        stored[collection].replace_one({"_id": document["_id"]}, put(document, path, value))
    assert stored[collection].find_one({"_id": document["_id"]}) == document


@pytest.mark.parametrize("value", [0, 2**40, 0.5])
def test_a_number_may_be_of_any_of_its_types(stored, value):
    document = stored.trips.find_one()
    stored.trips.replace_one({"_id": document["_id"]}, put(document, "distance_miles", value))
    assert stored.trips.find_one()["distance_miles"] == value
