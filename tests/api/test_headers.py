"""Headers of every response."""

import pytest
import time_machine
from limits import parse
from pymongo.errors import ConfigurationError, ServerSelectionTimeoutError
from werkzeug.test import create_environ, run_wsgi_app

from app.config import API
from app.store import Store
from schemas.report import ReportWindow
from scripts.reports.build import build_report
from tests.conftest import NOW, Service
from tests.factories import make_trip
from tests.store_contents import load

ORIGIN = "https://app.example.com"
DATE = "2026-03-16"
MAP = {"Accept": "application/geo+json"}


def link(service, name):
    """Return a link of the fleet's report, as a path below the API."""
    return service.get(f"/report?report_time={DATE}T00:00:00").json[name].partition(API)[2]


def fail(error):
    """Return a view that fails so."""

    def view(**path):
        raise error

    return view


def get_not_modified(service, path):
    """Send the ETag of the current response again."""
    tag = service.get(path).headers["ETag"]
    return service.get(path, headers={"If-None-Match": tag})


def failing(service, error):
    """Request an endpoint that fails."""
    service.app.view_functions["drivers.list_drivers"] = fail(error)
    return service.get("/drivers")


def refused(service, **options):
    """Send requests until the rate limit refuses one."""
    for _ in range(5):
        service.get("/drivers", **options)
    return service.get("/drivers", **options)


# For each kind of response: its status, how to get it, and its Cache-Control.
RESPONSES = {
    "list": (200, lambda service: service.get("/drivers"), "private, no-cache"),
    "masked": (200, lambda service: service.get("/drivers", headers={"X-Fields": "count"}), "private, no-cache"),
    "map": (200, lambda service: service.get("/trip/trip_id/t1", headers=MAP), "private, no-cache"),
    "links": (200, lambda service: service.get(f"/report?report_time={DATE}T00:00:00"), "no-store"),
    "csv": (200, lambda service: service.get(link(service, "report_link"), buffered=True), "private, no-cache"),
    "page": (200, lambda service: service.get(link(service, "report_page"), buffered=True), "private, no-cache"),
    "changes": (200, lambda service: service.get("/changes"), "no-store"),
    "health": (200, lambda service: service.get("/healthz"), "no-store"),
    "document": (200, lambda service: service.get("/openapi.json"), "public, no-cache"),
    "docs page": (200, lambda service: service.get("/docs"), "public, no-cache"),
    "options": (204, lambda service: service.get("/drivers", method="OPTIONS"), "no-store"),
    "held": (304, lambda service: get_not_modified(service, "/drivers"), "private, no-cache"),
    "held file": (304, lambda service: get_not_modified(service, link(service, "report_link")), "private, no-cache"),
    "invalid": (400, lambda service: service.get("/drivers?limit=0"), "no-store"),
    "mask": (400, lambda service: service.get("/drivers", headers={"X-Fields": "{"}), "no-store"),
    "no key": (401, lambda service: service.get("/drivers", fleet=None), "no-store"),
    "bad link": (403, lambda service: service.get("/report/x"), "no-store"),
    "no path": (404, lambda service: service.get("/nothing"), "no-store"),
    "no driver": (404, lambda service: service.get("/driver/no/trips?start_date=2026-03-01"), "no-store"),
    "method": (405, lambda service: service.get("/drivers", method="POST"), "no-store"),
    "limit": (429, refused, "no-store"),
    "failures": (429, lambda service: refused(service, fleet=None), "no-store"),
    "defect": (500, lambda service: failing(service, ValueError()), "no-store"),
    "store": (503, lambda service: failing(service, ServerSelectionTimeoutError()), "no-store"),
    "member that starts": (503, lambda service: failing(service, ConfigurationError()), "no-store"),
}


@pytest.fixture(scope="module")
def responses(shared_db):
    """A response of each kind, by kind and whether some origins are allowed."""
    limits = dict.fromkeys(("rate_limit", "auth_failure_limit"), parse("5 per minute"))
    result = {}
    with time_machine.travel(NOW, tick=False):
        load(shared_db, make_trip(trip_id="t1"))
        build_report(Store.of(shared_db), "f1", ReportWindow(DATE))
        for origins in ((), (ORIGIN,)):
            for kind, (_, get, _) in RESPONSES.items():
                service = Service(shared_db, secret_key="secret", cors_origins=origins, **limits)
                result[kind, bool(origins)] = get(service)
        return result


@pytest.fixture(params=RESPONSES)
def kind(request):
    """The kind of response."""
    return request.param


def test_a_response_has_a_content_type_if_it_may_have_content(responses, kind):
    response = responses[kind, False]
    assert ("Content-Type" in response.headers) == (response.status_code not in (204, 304))


@pytest.mark.parametrize(("protocol", "status"), [("HTTP/1.1", 400), ("HTTP/1.0", 200)])
def test_a_request_without_host_is_invalid_unless_its_protocol_has_none(shared_service, protocol, status):
    environ = create_environ("/api/v1/livez")
    del environ["HTTP_HOST"]
    body, code, _ = run_wsgi_app(shared_service.app, {**environ, "SERVER_PROTOCOL": protocol})
    assert int(code[:3]) == status
    assert ("Invalid parameters: Host: Must be given." in b"".join(body).decode()) == (status == 400)


def varies(response):
    return set(response.headers.get("Vary", "").split(", "))


def test_every_response_has_its_status_and_cache_control(responses, kind):
    response, headers = responses[kind, False], responses[kind, False].headers
    assert response.status_code == RESPONSES[kind][0], response.text
    assert headers["Cache-Control"] == RESPONSES[kind][2]
    assert headers.getlist("X-Content-Type-Options") == ["nosniff"]
    assert len(headers.getlist("X-Request-ID")) == 1


def test_every_response_has_a_complete_vary_header(responses, kind):
    response = responses[kind, False]
    depends = {"Accept-Encoding"} if response.status_code != 204 else {""}
    depends |= {"Accept"} if response.status_code >= 400 else set()
    depends |= {"Accept", "X-Fields"} if kind in ("list", "masked", "map", "held") else set()
    assert varies(response) == depends


def test_every_response_varies_by_origin_if_some_are_allowed_and_allows_none_by_default(responses, kind):
    assert "Origin" in varies(responses[kind, True])
    assert not [name for name in responses[kind, False].headers.keys() if name.startswith("Access-Control")]


def test_an_origin_on_the_list_is_allowed_and_another_is_not(make_service):
    service = make_service(cors_origins=(ORIGIN,))
    mine = service.get("/drivers", headers={"Origin": ORIGIN}).headers
    theirs = [service.get("/drivers", headers={"Origin": text}).headers for text in (ORIGIN + ".evil", "null", "*")]
    assert mine["Access-Control-Allow-Origin"] == ORIGIN
    assert not any("Access-Control-Allow-Origin" in headers for headers in theirs)
    assert "Access-Control-Allow-Credentials" not in mine
    assert {headers["Vary"] for headers in (mine, *theirs)} == {"Accept, X-Fields, Accept-Encoding, Origin"}


def test_scripts_may_read_every_response_header(make_service):
    headers = make_service(cors_origins=(ORIGIN,)).get("/drivers", headers={"Origin": ORIGIN}).headers
    exposed = headers["Access-Control-Expose-Headers"].split(", ")
    assert {"X-Request-ID", "Link", "ETag", "X-RateLimit-Remaining", "RateLimit", "Retry-After"} <= set(exposed)
    assert "WWW-Authenticate" not in exposed


def test_a_preflight_request_is_allowed(make_service):
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    headers = {"Origin": ORIGIN, **asked}
    response = make_service(cors_origins=(ORIGIN,)).get("/drivers", method="OPTIONS", fleet=None, headers=headers)
    assert response.status_code == 204
    assert response.headers["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert response.headers["Access-Control-Max-Age"] == "7200"
    assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
