"""Documents that violate their schema, put into the store past the validators."""

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from app.store import Store
from schemas.fields import MIN_EPOCH_MS
from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event, make_trip
from tests.following import Following, make_source
from tests.operations import OF_DATA, make_target
from tests.store_contents import load

DATE = "2026-03-16"
BYPASS = {"bypass_document_validation": True}


@pytest.fixture
def loaded(mongod):
    """A fleet with a driver and a trip, and another fleet."""
    load(mongod, make_trip(f"{DATE}T08:00", trip_id="t1"), drivers=[make_driver("d1", alias="A")])
    load(mongod, make_trip(f"{DATE}T08:00", trip_id="t2"), fleet="f2")
    mongod.driver_groups.insert_one(make_source({"driver_id": "d1", "groups": ["North"]}))
    return mongod


@pytest.fixture
def following(loaded, short_batches):
    """A follower that has compared everything."""
    following = Following(loaded)
    following.catch_up()
    return following


TRIP, DRIVER, GROUPS = ("trips", "f1/t1"), ("drivers", "f1/d1"), ("driver_groups", "f1/d1")
# What is changed of which source, and the reason that is given.
INVALID = {
    "missing": (TRIP, {"$unset": {"trail_path": 1}}, "trail_path: Missing data for required field."),
    "negative": (TRIP, {"$set": {"distance_miles": -3}}, "distance_miles: Must be greater than or equal to 0."),
    "undeclared": (TRIP, {"$set": {"canary": 1}}, "canary: Unknown field."),
    "end before start": (TRIP, {"$set": {"trip_end_time": 0}}, "trip_end_time: Must not be before trip_start_time."),
    "another id": (TRIP, {"$set": {"trip_id": "t2"}}, "_id: Must be 'f1/t2': the fleet, a slash, and the trip_id."),
    "wrong type": (DRIVER, {"$set": {"alias": 5}}, "alias: Must be a string."),
    "a group twice": (GROUPS, {"$set": {"groups": ["a", "b", "a"]}}, "groups: Has 'a' twice."),
}


@pytest.mark.parametrize(("source", "change", "reason"), INVALID.values(), ids=INVALID)
def test_an_invalid_source_counts_as_absent_and_every_command_names_it(
    command, loaded, following, tmp_path, log, source, change, reason
):
    collection, _id = source
    loaded[collection].update_one({"_id": _id}, change, **BYPASS)
    following.catch_up()
    (logged,) = [line for line in log() if line["level"] == "error"]
    assert (logged["collection"], logged["source_id"], logged["reason"]) == (collection, _id, reason)
    assert loaded.trip_details.count_documents({"fleet": "f1"}) == int(collection != "trips")
    profile = loaded.driver_periods.find_one({"fleet": "f1", "period": "profile"})
    assert ('"alias":"A"' in profile["json"]) == (collection != "drivers")
    line = f"f1: {collection} {_id} is invalid and left out: {reason}\n"
    out = str(tmp_path / "out")
    for words in (("rollups", "rebuild"), ("rollups", "verify"), ("export", "--out", out)):
        result = command(*words, "--fleet", "f1")
        assert (result.exit_code, result.stderr) == (int("rebuild" not in words), line)
        assert "differences; " not in result.stdout


def test_a_source_that_claims_another_fleet_is_named_for_both(command, loaded):
    loaded.trips.update_one({"_id": "f1/t1"}, {"$set": {"fleet": "f2"}}, **BYPASS)
    for fleet in ("f1", "f2"):
        assert command("rollups", "verify", "--fleet", fleet).exit_code == 1


@pytest.mark.parametrize("_id", ["t1", 5, bson.ObjectId(bytes(12))], ids=repr)
def test_a_source_whose_id_belongs_to_no_fleet_is_named(command, loaded, following, log, _id):
    loaded.trips.insert_one({**make_source(make_trip()), "_id": _id}, **BYPASS)
    following.catch_up()
    # The next one compares everything.
    loaded.resume_tokens.delete_many({})
    following.catch_up()
    reason = "_id: Must be the fleet, a slash, and the trip_id."
    assert [line["reason"] for line in log() if line["level"] == "error"] == [reason, reason]
    for words, status in (([], 1), (["--fleet", "f1"], 1), (["--fleet", "f2"], 0)):
        result = command("rollups", "verify", *words)
        assert result.exit_code == status
        assert (f"trips {_id} is invalid and left out: {reason}\n" in result.stderr) == bool(status)


def test_text_that_is_not_utf8_makes_a_source_invalid(command, loaded):
    sources = [make_source(make_trip(trip_id="tXX")), make_source(make_trip(trip_id="t3", tracking_id="kXX"))]
    documents = [RawBSONDocument(bson.encode(source).replace(b"XX", b"\xff\xfe")) for source in sources]
    loaded.command({"insert": "trips", "documents": documents, "bypassDocumentValidation": True})
    for words, status in (("rebuild", 0), ("verify", 1)):
        result = command("rollups", words)
        assert result.exit_code == status
        assert "trips f1/t3 is invalid and left out: tracking_id: Must be UTF-8: it contains" in result.stderr
        assert "trips f1/t\\udcff\\udcfe is invalid and left out: _id: Must be the fleet, a slash" in result.stderr
    assert loaded.trip_details.count_documents({"fleet": "f1"}) == 1
    assert "removed 3 trips" in command("prune", "--before", "2026-04-01", "--fleet", "f1").stdout
    assert loaded.trips.count_documents({"fleet": "f1"}) == 0


def test_the_read_model_of_the_longest_trip_fits_into_a_document(loaded, following):
    number = -1.2345678901234567e-300
    place = {"latitude": number, "longitude": number, "course": number}
    data = dict.fromkeys(("user_speed_mph", "speed_limit_mph", "max_user_speed_mph"), number)
    event = make_event(MIN_EPOCH_MS, event_type=9, event_name="OVERSPEEDING", event_data=data)
    event |= {name: number for name in event if name.endswith("tude")}
    rows = {"trail_path": [{"timestamp": MIN_EPOCH_MS, **place}] * 100_000, "events": [event] * 5_000}
    loaded.trips.update_one({"_id": "f1/t1"}, {"$set": rows})
    following.catch_up()
    assert len(loaded.trip_details.find_one({"_id": "f1/t1"})["trail_path"]) > 13_000_000


def test_an_invalid_source_changes_no_response(service, load):
    load(make_trip(trip_id="t1"), drivers=[make_driver("d1")])
    paths = [make_target(path, {"driver_id": "d1", "filter_value": "t1"}) for path in OF_DATA]
    before = [service.get(path).data for path in paths]
    service.db.trips.update_one({}, {"$unset": {"trail_path": 1}, "$set": {"distance_miles": "ten"}}, **BYPASS)
    service.db.drivers.update_one({}, {"$set": {"first_name": 5}}, **BYPASS)
    assert [service.get(path).data for path in paths] == before


def test_an_import_builds_nothing_of_an_invalid_driver(service, loaded, load):
    loaded.drivers.update_one({}, {"$set": {"first_name": 5, "first_travel_date": "2026-01-01"}}, **BYPASS)
    load(make_trip(f"{DATE}T09:00"))
    assert service.get("/drivers").json["drivers"] == [make_driver("d1", first_travel_date=DATE, last_travel_date=DATE)]


@pytest.mark.parametrize("change", [{"$unset": {"revoked_at": 1}}, {"$set": {"expires_at": "soon"}}], ids=str)
def test_an_invalid_key_is_refused_and_logged_without_its_driver(service, load, log, change):
    load(drivers=[make_driver("d-17")])
    service.key("f1", "d-17")
    service.db["keys"].update_one({}, change, **BYPASS)
    log()
    assert service.get("/drivers", driver="d-17").status_code == 500
    lines = log()
    assert service.db["keys"].find_one()["key_id"] in lines[0]["document"]
    assert "d-17" not in str(lines)


@pytest.mark.parametrize("change", [{"$unset": {"page": 1}}, {"$set": {"csv.bytes": "x"}}], ids=str)
def test_an_invalid_report_is_a_defect_and_the_log_names_it(service, load, log, change):
    load(make_trip("2026-03-10T08:00"))
    build_report(Store.of(service.db), "f1", ReportWindow(DATE))
    service.db.reports.update_one({}, change, **BYPASS)
    log()
    assert service.get("/report", report_time=f"{DATE}T00:00:00").status_code == 500
    assert DATE in log()[0]["document"]
