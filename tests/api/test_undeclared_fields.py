"""No response contains a field of a stored document that is not declared, with any mask."""

import pytest

from app.config import API
from schemas.mask import fields_of
from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests.factories import make_driver, make_event, make_speeding, make_trip
from tests.operations import MASKED, REPORT, find_endpoints, make_target
from tests.store_contents import put_canaries

# What put_canaries puts into every object.
FIELD, VALUE = "canary", "tweet"
DATE = "2026-03-16"


@pytest.fixture
def tainted(db, store, make_service, load):
    """The service on documents that all contain the canary, as did those that its report was built from."""
    load(make_trip(trip_id="t1", tracking_id="k", events=[make_event(1), make_speeding(1)]))
    load(drivers=[make_driver("d1", alias="A"), make_driver("d2")])
    put_canaries(db)
    # The build of a report writes into the fleets, so their validator holds, and adds up the sums.
    for name in ("fleets", "fleet_periods"):
        db[name].update_many({}, {"$unset": {FIELD: 1, f"sums.{FIELD}": 1}})
    build_report(store, "f1", ReportWindow(DATE))
    put_canaries(db)
    return make_service(secret_key="secret")


def masks(fields, before="", after=""):
    """Yield masks that name the canary beside, below and instead of every field of a response."""
    yield from (f"{before}{inner}{after}" for inner in (FIELD, f"*,{FIELD}", f"{FIELD},*", f"{{{FIELD},*}}"))
    for name, below in (fields or {}).items():
        yield f"{before}{name}{{{FIELD}}}{after}"
        if below is not None:
            yield from masks(below, f"{before}{name}{{", f"}}{after}")


def test_no_response_contains_an_undeclared_field(tainted):
    endpoints = find_endpoints(tainted.app)
    for path in MASKED:
        target = make_target(path, {"driver_id": "d1", "filter_value": "t1"})
        for mask in ["", "*", *masks(fields_of(type(endpoints[path].response)))]:
            response = tainted.get(target, headers={"X-Fields": mask})
            assert response.status_code == 200 or (mask and response.status_code == 400), (path, mask)
            assert FIELD not in response.text, (path, mask)
            assert VALUE not in response.text, (path, mask)


def test_no_feed_map_or_report_contains_an_undeclared_field(tainted):
    links = tainted.get(make_target(REPORT)).json
    files = [links[name].partition(API)[2] for name in ("report_link", "report_page")]
    for path in ("/changes", "/trip/tracking_id/k", *files):
        response = tainted.get(path, headers={"Accept": "application/geo+json, */*;q=0.1"}, buffered=True)
        assert (response.status_code, b"t1" in response.data or b"d1" in response.data) == (200, True)
        assert not any(text.encode() in response.data for text in (FIELD, VALUE))
