"""Documents that the validators would have refused, put into the store past them."""

import pytest
from scripts.derive import writing
from scripts.imports import load_trips

from schemas.trip import ImportedTrip
from tests.factories import make_driver, make_trip

DAY = "2026-03-16"
TRIPS = {"start_date": DAY}
DAILY = {"start_date": DAY, "driver_id": ["d1", "d2"]}
AS_IT_WAS = {"$unset": {"text": 1, "version": 1}}


@pytest.fixture
def loaded(service, load):
    """The service, with two drivers and a trip each, of one tracking id."""
    trips = [make_trip(f"{DAY}T08:00", f"d{n}", trip_id=f"t{n}", tracking_id="k") for n in (1, 2)]
    load(*trips, drivers=[make_driver("d1"), make_driver("d2")])
    return service


@pytest.fixture
def put(loaded):
    """Change a document past the validators: `put("trips", {"trip_id": "t1"}, {"$set": ...})`."""

    def put(collection, match, *changes):
        for change in changes:
            loaded.db[collection].update_many(match, change, bypass_document_validation=True)

    return put


@pytest.mark.parametrize("headers", [{}, {"X-Fields": "trips{distance_miles,trail_path{latitude}}"}])
@pytest.mark.parametrize(
    "change",
    [
        {"$unset": {"trail_path": 1}},
        {"$set": {"trail_path": "a line"}},
        {"$set": {"trail_path.0.latitude": "north"}},
        {"$set": {"distance_miles": "ten"}},
        {"$set": {"distance_miles": True}},
        {"$set": {"trip_end_time": "noon"}},
        {"$unset": {"trip_end_time": 1}},
    ],
    ids=str,
)
def test_a_trip_out_of_shape_is_a_defect_and_the_log_names_it(loaded, put, log, change, headers):
    put("trips", {"trip_id": "t1"}, change, AS_IT_WAS)
    log()
    answer = loaded.get("/trip/trip_id/t1", headers=headers)
    told = log()[0]
    assert (answer.status_code, answer.json["error"]) == (500, "InternalError")
    assert told["event"] == "out of shape"
    assert all(part in told["document"] for part in ("trips", "'f1'", "'t1'"))


@pytest.mark.parametrize(
    "path", ["/trip/trip_id/t2", "/drivers", "/driver/d1/trips", "/driver/d2/trips", "/driver-aggregate/daily"]
)
def test_around_a_trip_out_of_shape_all_is_served(loaded, put, path):
    asked = TRIPS if path.endswith("trips") else DAILY if path.endswith("daily") else {}
    before = loaded.get(path, **asked)
    put("trips", {"trip_id": "t1"}, {"$set": {"distance_miles": "ten", "events": 5}}, AS_IT_WAS)
    assert (before.status_code, loaded.get(path, **asked).json) == (200, before.json)


def test_a_list_leaves_out_what_is_out_of_shape_and_the_log_names_it(loaded, put, log):
    put("drivers", {"driver_id": "d1"}, {"$set": {"first_name": 5}})
    log()
    answer = loaded.get("/drivers", headers={"X-Fields": "count,drivers{driver_id,first_name}"})
    assert (answer.json["count"], [driver["driver_id"] for driver in answer.json["drivers"]]) == (2, ["d2"])
    assert "out of shape, and left out: drivers" in log()[0]["event"]


@pytest.mark.parametrize(
    "change",
    [{"$set": {"driver_id": ["d1"]}}, {"$unset": {"driver_id": 1}}, {"$set": {"imported": 1, "first_travel_date": 1}}],
    ids=str,
)
def test_a_list_that_is_being_written_leaves_it_out_too(loaded, put, change):
    listed = loaded.get("/drivers").json["drivers"]
    put("drivers", {"driver_id": "d1"}, change)
    put("served_drivers", {"number": -1}, {"$set": {"stale": True}})
    assert loaded.get("/drivers").json["drivers"] == listed[1:]


def test_a_driver_out_of_shape_is_a_defect_of_aggregates_of_that_driver_alone(loaded, put):
    put("drivers", {"driver_id": "d1"}, {"$set": {"first_name": 5}})
    mask = {"X-Fields": "data{driver_info{first_name}}"}
    asked = [loaded.get("/driver-aggregate/daily", start_date=DAY, driver_id=d, headers=mask) for d in ("d1", "d2")]
    assert [answer.status_code for answer in asked] == [500, 200]


@pytest.mark.parametrize(
    ("collection", "change"),
    [
        ("served_drivers", {"$unset": {"rows": 1}}),
        ("served_drivers", {"$set": {"count": "two", "version": "x"}}),
        ("served_spans", {"$set": {"text": "x"}}),
        ("served_spans", {"$unset": {"version": 1}}),
        ("served_spans", {"$set": {"rows": 5, "buckets": "x"}}),
        ("served_spans", {"$set": {"buckets.keys": b"1234567"}}),
        ("served_spans", {"$set": {"buckets.counts": b""}}),
        ("daily_summaries", {"$set": {"summary": "x"}}),
    ],
    ids=str,
)
def test_what_is_derived_and_out_of_shape_is_made_from_what_was_imported(loaded, put, collection, change, log):
    asked = [("/drivers", {}), ("/driver/d1/trips", TRIPS), ("/driver-aggregate/daily", DAILY)]
    before = [loaded.get(path, **query).json for path, query in asked]
    masked = loaded.get("/driver-aggregate/daily", **DAILY, headers={"X-Fields": "{*}"}).json
    put(collection, {}, change)
    log()
    assert [loaded.get(path, **query).json for path, query in asked] == before
    assert loaded.get("/driver-aggregate/daily", **DAILY, headers={"X-Fields": "{*}"}).json == masked
    assert any("out of shape" in line["event"] for line in log()) == (collection != "daily_summaries")


@pytest.mark.parametrize(
    ("collection", "path", "asked"),
    [("served_drivers", "/drivers", {"limit": 1, "page": 2}), ("served_spans", "/driver/d1/trips", TRIPS)],
)
def test_a_list_that_lacks_rows_is_made_from_what_was_imported(loaded, put, collection, path, asked):
    before = loaded.get(path, **asked).json
    put(collection, {"rows": {"$exists": True}}, {"$set": {"rows": []}})
    assert loaded.get(path, **asked).json == before


@pytest.mark.parametrize("words", ["rollups rebuild", "rollups verify", "reports build --report-date 2026-03-17"])
def test_a_command_that_meets_a_document_out_of_shape_names_it(command, mongod, clock, words):
    with writing(mongod, "f1"):
        load_trips(mongod, "f1", [ImportedTrip().load(make_trip(f"{DAY}T08:00", trip_id="t1"))])
    changes = [("trips", {"$unset": {"trail_path": 1}}), ("drivers", {"$set": {"first_name": 5}})]
    for collection, change in changes:
        mongod[collection].update_many({}, change, bypass_document_validation=True)
    result = command(*words.split(), "--fleet", "f1")
    assert result.exit_code == 1
    assert "Documents of the fleet f1 are out of shape; correct or delete them: drivers {" in result.output
    assert "'trip_id': 't1'" in result.output


def test_of_trips_that_share_a_tracking_id_the_others_are_served(loaded, put, log):
    put("trips", {"trip_id": "t1"}, {"$set": {"distance_miles": "ten"}}, AS_IT_WAS)
    log()
    answer = loaded.get("/trip/tracking_id/k")
    assert (answer.status_code, [trip["trip_id"] for trip in answer.json["trips"]]) == (200, ["t2"])
    assert "out of shape, and left out: trips" in log()[0]["event"]


@pytest.mark.parametrize("change", [{"$unset": {"revoked_at": 1}}, {"$set": {"expires_at": "soon"}}], ids=str)
def test_a_key_out_of_shape_lets_nobody_in_and_the_log_names_it(service, log, change):
    service.key("f1")
    service.db["keys"].update_one({}, change, bypass_document_validation=True)
    log()
    assert service.get("/drivers").status_code == 500
    assert service.db["keys"].find_one()["key_id"] in log()[0]["document"]


def test_a_report_out_of_shape_is_a_defect_and_the_log_names_it(loaded, log):
    broken = {"fleet": "f1", "report_date": "2026-03-16", "csv": 5}
    loaded.db.reports.insert_one(broken, bypass_document_validation=True)
    log()
    assert loaded.get("/report", report_time="2026-03-16T00:00:00").status_code == 500
    assert "2026-03-16" in log()[0]["document"]
