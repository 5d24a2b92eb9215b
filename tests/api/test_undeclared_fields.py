"""No response contains a field of a stored document that is not declared."""

import pytest

from app.config import API
from app.store import Store
from app.store.reports import BUCKET
from schemas.introspection import fields_of
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event, make_trip

FIELD, VALUE = "canary_field", "canary-value"
DATE = "2026-03-16"
SPEEDS = {"user_speed_mph": 61.5, "speed_limit_mph": 45, "max_user_speed_mph": 72.25}
SPEEDING = {"event_type": 9, "event_name": "OVERSPEEDING", "event_data": SPEEDS}
DATES = [f"2026-03-{date}" for date in range(10, 16)]
PATHS = {
    "drivers.list_drivers": ["/drivers", "/drivers?limit=1&page=2"],
    "trips.list_driver_trips": ["/driver/d1/trips?start_date=2026-03-01"],
    "trips.list_trips": ["/trip/trip_id/t2026-03-10", "/trip/tracking_id/k", "/trip/tracking_id/k?page=2"],
    "aggregates.get_daily_driver_aggregate": [
        "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1&driver_id=d2"
    ],
    "aggregates.get_weekly_driver_aggregate": ["/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1"],
    "aggregates.get_monthly_driver_aggregate": ["/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1"],
    "scores.get_driver_score": [f"/driver/d1/score?start_date=2026-03-09&interval={name}" for name in ("day", "month")],
    "rankings.get_ranking": [
        "/ranking?period=week&start_date=2026-03-09",
        "/ranking?period=month&start_date=2026-03-01&min_distance_miles=1",
    ],
    "report.get_report_links": [f"/report?report_time={DATE}T00:00:00"],
}
GEO_JSON_ENDPOINT = "trips.list_trips"


def tainted(value):
    """Return a document with the canary in it at every depth."""
    if isinstance(value, list):
        return [tainted(item) for item in value]
    if isinstance(value, dict):
        return {name: tainted(part) for name, part in value.items()} | {FIELD: VALUE}
    return value


def taint(db, *names):
    for name in names:
        for doc in db[name].find():
            db[name].replace_one({"_id": doc["_id"]}, tainted(doc), bypass_document_validation=True)


@pytest.fixture
def db(mongod):
    """A database of a real server."""
    yield mongod
    mongod[f"{BUCKET}.files"].drop()
    mongod[f"{BUCKET}.chunks"].drop()


@pytest.fixture
def tainted_service(db, make_service, load):
    """The service on documents that all contain the canary. The report was built from such documents."""
    trips = [
        make_trip(
            f"{date}T08:00", trip_id=f"t{date}", tracking_id="k", events=[make_event(1), make_event(1, **SPEEDING)]
        )
        for date in DATES
    ]
    load(*trips, drivers=[make_driver("d1"), make_driver("d2")])
    taint(db, "driver_periods")
    build_report(Store.of(db), "f1", DATE)
    service = make_service(secret_key="secret")
    service.key("f1")
    taint(db, *db.list_collection_names())
    return service


def masks(fields, before="", after=""):
    """Yield masks that name the canary beside, below and instead of every field of a response."""
    yield from (f"{before}{inner}{after}" for inner in (FIELD, f"*,{FIELD}", f"{FIELD},*", f"{{{FIELD},*}}"))
    for name, below in (fields or {}).items():
        yield f"{before}{name}{{{FIELD}}}{after}"
        if below is not None:
            yield from masks(below, f"{before}{name}{{", f"}}{after}")


def test_no_response_contains_an_undeclared_field(tainted_service):
    views = tainted_service.app.view_functions
    for endpoint, paths in PATHS.items():
        kinds = ["*/*", "application/geo+json"] if endpoint == GEO_JSON_ENDPOINT else ["*/*"]
        for mask in ["", "*", *masks(fields_of(type(views[endpoint].endpoint.response)))]:
            for path, kind in ((path, kind) for path in paths for kind in kinds):
                response = tainted_service.get(path, headers={"X-Fields": mask, "Accept": kind})
                assert response.status_code == 200 or (mask and response.status_code == 400), (
                    path,
                    mask,
                    response.text,
                )
                assert FIELD not in response.text, (path, mask, response.text)
                assert VALUE not in response.text, (path, mask, response.text)


def test_the_change_feed_contains_no_undeclared_field(tainted_service):
    response = tainted_service.get("/changes")
    assert len(response.json["changes"]) == len(DATES)
    assert (FIELD not in response.text, VALUE not in response.text) == (True, True)


def test_no_report_file_contains_an_undeclared_field(tainted_service):
    links = tainted_service.get(PATHS["report.get_report_links"][0]).json
    for name in ("report_link", "report_page"):
        response = tainted_service.get(links[name].partition(API)[2], fleet=None, buffered=True)
        assert response.status_code == 200
        assert b"canary" not in response.data


def test_every_collection_that_is_read_contains_the_canary(tainted_service, db):
    names = set(db.list_collection_names()) - {"resume_tokens"}
    counts = {name: db[name].count_documents({FIELD: VALUE}) for name in names}
    assert all(counts.values()), counts


def test_every_endpoint_that_returns_documents_is_requested(service):
    views = service.app.view_functions.items()
    with_documents = {
        name for name, view in views if (endpoint := getattr(view, "endpoint", None)) and endpoint.accepts_mask
    }
    assert with_documents == PATHS.keys()
