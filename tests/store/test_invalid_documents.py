"""Documents that violate their schema, put into the store past the validators."""

import pytest

from app.store import Store
from scripts.reports.build import build_report
from tests.factories import make_driver, make_trip
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
    ("collection", "change"),
    [
        ("trips", {"$unset": {"trail_path": 1}}),
        ("trips", {"$set": {"trip_start_time": "noon"}}),
        ("trips", {"$set": {"distance_miles": "ten", "events": 5}}),
        ("drivers", {"$set": {"last_travel_date": 5}}),
        ("drivers", {"$set": {"first_travel_date": 5}}),
    ],
    ids=str,
)
@pytest.mark.parametrize("words", ["rebuild", "verify"])
def test_a_command_that_fails_at_an_invalid_source_names_it(command, loaded, collection, change, words):
    loaded[collection].update_one({"fleet": "f1"}, change, **BYPASS)
    result = command("rollups", words, "--fleet", "f1")
    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert f"Documents of the fleet f1 violate their schema; correct or delete them: {collection} {{" in result.output
    assert ("'trip_id': 't1'" if collection == "trips" else "'driver_id': 'd1'") in result.output
    assert command("rollups", words, "--fleet", "f2").exit_code == 0


def test_an_invalid_source_changes_no_response(service, load):
    load(make_trip(f"{DATE}T08:00", trip_id="t1"), drivers=[make_driver("d1")])
    paths = ["/drivers", f"/driver/d1/trips?start_date={DATE}", "/trip/trip_id/t1"]
    paths += [f"/driver-aggregate/{kind}?start_date={DATE}&driver_id=d1" for kind in ("daily", "weekly")]
    paths += ["/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1", f"/driver/d1/score?start_date={DATE}"]
    before = [service.get(path).data for path in paths]
    service.db.trips.update_one({}, {"$unset": {"trail_path": 1}, "$set": {"distance_miles": "ten"}}, **BYPASS)
    service.db.drivers.update_one({}, {"$set": {"first_name": 5}}, **BYPASS)
    assert [service.get(path).data for path in paths] == before


def test_an_import_that_meets_an_invalid_driver_names_it(command, loaded, write_lines):
    loaded.drivers.update_one({}, {"$set": {"first_travel_date": 5}}, **BYPASS)
    result = command("import", "--fleet", "f1", "--trips", str(write_lines("t.ndjson", make_trip(f"{DATE}T09:00"))))
    assert result.exit_code == 1
    assert "violate their schema; correct or delete them: drivers {" in result.output
    assert loaded.trips.count_documents({"fleet": "f1"}) == 1


def test_once_it_is_corrected_the_command_goes_through(command, loaded):
    loaded.trips.update_one({"fleet": "f1"}, {"$set": {"distance_miles": "ten"}}, **BYPASS)
    assert command("rollups", "rebuild").exit_code == 1
    loaded.trips.update_one({"fleet": "f1"}, {"$set": {"distance_miles": 12.5}})
    assert [command("rollups", words).exit_code for words in ("rebuild", "verify")] == [0, 0]


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
