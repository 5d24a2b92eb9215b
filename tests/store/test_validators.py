"""The store refuses documents out of shape, whoever writes them."""

import copy

import pytest
from pymongo.errors import WriteError
from scripts.imports import load_drivers, load_trips

from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.keys import issue_key
from tests.factories import make_driver, make_event, make_trip


@pytest.fixture
def stored(mongod):
    load_drivers(mongod, "f1", [Driver().load(make_driver("d1"))])
    load_trips(mongod, "f1", [ImportedTrip().load(make_trip(events=[make_event(1_773_100_000_000)]))])
    issue_key(mongod, "f1")
    return mongod


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


OUT_OF_SHAPE = [
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
    ("trips", "day.date", "2026-3-10"),
    ("drivers", "email", 5),
    ("drivers", "first_travel_date", "soon"),
    ("drivers", "alias", ...),
    ("daily_summaries", "summary.fm_score", 101),
    ("daily_summaries", "summary.fm_grade", None),
    ("daily_summaries", "summary.canary", 1),
    ("keys", "digest", ...),
    ("keys", "key", "da_secret"),
]


@pytest.mark.parametrize(("collection", "path", "value"), OUT_OF_SHAPE)
def test_a_document_out_of_shape_is_refused(stored, collection, path, value):
    document = stored[collection].find_one()
    with pytest.raises(WriteError, match="Document failed validation"):
        stored[collection].replace_one({"_id": document["_id"]}, put(document, path, value))
    assert stored[collection].find_one() == document


@pytest.mark.parametrize("value", [0, 2**40, 0.5])
def test_a_number_may_be_of_any_of_its_types(stored, value):
    document = stored.trips.find_one()
    stored.trips.replace_one({"_id": document["_id"]}, put(document, "distance_miles", value))
    assert stored.trips.find_one()["distance_miles"] == value
