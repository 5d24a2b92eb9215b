"""Documents that violate their schema, put into the store past the validators."""

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from app.store import Store
from scripts.reports.build import build_report
from tests.factories import make_driver, make_trip
from tests.following import make_source
from tests.store_contents import load

DATE = "2026-03-16"
BYPASS = {"bypass_document_validation": True}


@pytest.fixture
def loaded(mongod):
    """A fleet with a driver and a trip, and another fleet."""
    load(mongod, make_trip(f"{DATE}T08:00", trip_id="t1"), drivers=[make_driver("d1")])
    load(mongod, make_trip(f"{DATE}T08:00", trip_id="t2"), fleet="f2")
    return mongod


@pytest.mark.parametrize(
    ("collection", "change", "reason"),
    [
        ("trips", {"$unset": {"trail_path": 1}}, "trail_path: Missing data for required field."),
        ("trips", {"$set": {"distance_miles": -300}}, "distance_miles: Must be greater than or equal to 0."),
        ("trips", {"$set": {"fleet": "f2"}}, "_id: Must be 'f2/t1': the fleet, a slash, and the trip_id."),
        ("drivers", {"$set": {"last_travel_date": 5}}, "last_travel_date: Must be a string."),
    ],
    ids=str,
)
def test_an_invalid_source_counts_as_absent_and_every_command_names_it(
    command, loaded, tmp_path, collection, change, reason
):
    _id = "f1/t1" if collection == "trips" else "f1/d1"
    loaded[collection].update_one({"_id": _id}, change, **BYPASS)
    line = f"f1: {collection} {_id} is invalid and left out: {reason}\n"
    for words in ("rebuild", "verify"):
        result = command("rollups", words, "--fleet", "f1")
        assert (result.exit_code, result.stderr) == (int(words == "verify"), line)
        assert "differences; " not in result.stdout
    assert loaded.trip_details.count_documents({"fleet": "f1"}) == int(collection == "drivers")
    assert loaded.driver_periods.count_documents({"fleet": "f1", "period": "profile"}) == 1
    exported = command("export", "--fleet", "f1", "--out", str(tmp_path / "out"))
    claims_another_fleet = change == {"$set": {"fleet": "f2"}}
    assert (exported.exit_code, exported.stderr) == ((0, "") if claims_another_fleet else (1, line))
    assert command("rollups", "verify", "--fleet", "f2").exit_code == int(claims_another_fleet)


def test_sources_of_no_fleet_are_named_when_all_fleets_are_verified(command, loaded):
    loaded.trips.insert_one({"_id": 5, "fleet": "f1"}, **BYPASS)
    result = command("rollups", "verify")
    reason = "trips 5 is invalid and left out: _id: Must be the fleet, a slash, and the trip_id.\n"
    assert (result.exit_code, result.stderr) == (1, reason)
    assert command("rollups", "verify", "--fleet", "f1").stderr == reason
    assert command("rollups", "verify", "--fleet", "f2").exit_code == 0


def test_text_that_is_not_utf8_makes_a_source_invalid(command, loaded, tmp_path):
    sources = [make_source(make_trip(trip_id="tXX")), make_source(make_trip(trip_id="t3", tracking_id="kXX"))]
    documents = [RawBSONDocument(bson.encode(source).replace(b"XX", b"\xff\xfe")) for source in sources]
    loaded.command({"insert": "trips", "documents": documents, "bypassDocumentValidation": True})
    for words, status in (("rebuild", 0), ("verify", 1)):
        result = command("rollups", words)
        assert result.exit_code == status
        assert "trips f1/t3 is invalid and left out: tracking_id: Must be UTF-8: it contains" in result.stderr
        assert (
            "trips f1/t?? is invalid and left out: _id: Must be the fleet, a slash, and the trip_id." in result.stderr
        )
    assert loaded.trip_details.count_documents({"fleet": "f1"}) == 1
    assert command("backup", str(tmp_path / "saved")).exit_code == 1
    assert "removed 3 trips" in command("prune", "--before", "2026-04-01", "--fleet", "f1").stdout
    assert loaded.trips.count_documents({"fleet": "f1"}) == 0


def test_a_trip_too_large_for_its_read_model_is_not_exported(command, mongod, tmp_path):
    point = {"timestamp": 0, "latitude": 0.12345678901234567, "longitude": 1e-300, "course": 1.2345678901234567e-300}
    mongod.trips.insert_one(make_source(make_trip(trip_id="t1", trail_path=[point] * 180_000)))
    result = command("export", "--fleet", "f1", "--out", str(tmp_path / "out"))
    assert (result.exit_code, "0 drivers, 0 trips" in result.stdout) == (1, True)
    assert "trips f1/t1 is invalid and left out: Larger than MongoDB's limit" in result.stderr


def test_an_invalid_source_changes_no_response(service, load):
    load(make_trip(f"{DATE}T08:00", trip_id="t1"), drivers=[make_driver("d1")])
    paths = ["/drivers", f"/driver/d1/trips?start_date={DATE}", "/trip/trip_id/t1"]
    paths += [f"/driver-aggregate/{kind}?start_date={DATE}&driver_id=d1" for kind in ("daily", "weekly")]
    paths += ["/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1", f"/driver/d1/score?start_date={DATE}"]
    before = [service.get(path).data for path in paths]
    service.db.trips.update_one({}, {"$unset": {"trail_path": 1}, "$set": {"distance_miles": "ten"}}, **BYPASS)
    service.db.drivers.update_one({}, {"$set": {"first_name": 5}}, **BYPASS)
    assert [service.get(path).data for path in paths] == before


def test_an_import_builds_nothing_of_an_invalid_driver(service, loaded, load):
    loaded.drivers.update_one({}, {"$set": {"first_name": 5, "first_travel_date": "2026-01-01"}}, **BYPASS)
    load(make_trip(f"{DATE}T09:00"))
    assert service.get("/drivers").json["drivers"] == [make_driver("d1", first_travel_date=DATE, last_travel_date=DATE)]


def test_a_source_that_is_corrected_is_served_after_a_rebuild(command, loaded):
    loaded.trips.update_one({"fleet": "f1"}, {"$set": {"distance_miles": "ten"}}, **BYPASS)
    assert [command("rollups", words).exit_code for words in ("rebuild", "verify")] == [0, 1]
    loaded.trips.update_one({"fleet": "f1"}, {"$set": {"distance_miles": 12.5}})
    assert [command("rollups", words).exit_code for words in ("rebuild", "verify")] == [0, 0]
    assert loaded.trip_details.count_documents({"fleet": "f1"}) == 1


@pytest.mark.parametrize("change", [{"$unset": {"revoked_at": 1}}, {"$set": {"expires_at": "soon"}}], ids=str)
def test_an_invalid_key_document_is_refused_and_logged(service, log, change):
    service.key("f1")
    service.db["keys"].update_one({}, change, **BYPASS)
    log()
    assert service.get("/drivers").status_code == 500
    assert service.db["keys"].find_one()["key_id"] in log()[0]["document"]


@pytest.mark.parametrize(
    "change", [{"$unset": {"page": 1}}, {"$set": {"csv": 5}}, {"$set": {"csv.bytes": "x"}}], ids=str
)
def test_an_invalid_report_is_a_defect_and_the_log_names_it(service, load, log, change):
    load(make_trip("2026-03-10T08:00"))
    build_report(Store.of(service.db), "f1", DATE)
    service.db.reports.update_one({}, change, **BYPASS)
    log()
    assert service.get("/report", report_time=f"{DATE}T00:00:00").status_code == 500
    assert DATE in log()[0]["document"]
