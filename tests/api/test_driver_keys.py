"""Keys of one driver: a response is that of a fleet that has this driver alone.

The requests are made of the OpenAPI document, so that a new endpoint gets its share.
"""

import itertools
from urllib.parse import quote, urlencode

import pytest
from limits import parse

from app.errors import FLEET_KEY_REQUIRED
from app.services import get_services
from schemas.report_window import ReportWindow
from scripts.materialize.write_sources import delete_trips
from scripts.reports.build import build_report
from tests import operations
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.store_contents import load as load_documents

# All that take a key, and those of them that take a key of the fleet.
OPERATIONS = {path: operation for path, operation in operations.OPERATIONS.items() if operation.get("security") != []}
OF_FLEET = [path for path, operation in OPERATIONS.items() if "403" in operation["responses"]]
RANKING = "/ranking?period=week&start_date=2026-03-02"
MINE, THEIRS, SHARED = "mine", "theirs-1", "shared"
# The values of a parameter in the requests. Several are a list in the query, and one unknown text in the path.
VALUES = {
    "driver_id": [[MINE], [THEIRS], [THEIRS, MINE, "nobody"], []],
    "filter_param": [["trip_id"], ["tracking_id"]],
    "filter_value": [["t-mine"], ["t-theirs-1-1"], [SHARED], ["k-theirs"]],
    "start_date": [["2026-03-02"], ["2026-03-01"]],
    "period": [["week"]],
    "report_time": [["2026-03-16T00:00:00"]],
    "search": [[], ["name"]],
    "group": [[], ["North"]],
    "page": [[], ["2"]],
}
MASK = "*,trips{*},data{driver_info{driver_id},driving_summary},drivers{driver_id},total{fm_score}"
HEADERS = [{}, {"X-Fields": MASK}, {"Accept": "application/geo+json, application/problem+json"}]


@pytest.fixture(scope="module")
def fleets(shared_service):
    """The service of fleet f1 with three drivers, and fleet `alone` with the first of them."""
    mine = make_driver(MINE, first_name="My name", groups=["North"])
    trips = [
        make_trip("2026-03-02T08:00", MINE, trip_id="t-mine", tracking_id=SHARED),
        *(make_trip(f"2026-03-0{day}T09:00", MINE, tracking_id=SHARED) for day in range(1, 9)),
    ]
    others = [make_driver(f"theirs-{n}", first_name="Their name") for n in (1, 2)]
    theirs = [
        make_trip(f"2026-03-0{n}T08:30", driver["driver_id"], trip_id=f"t-{driver['driver_id']}-{n}", tracking_id=name)
        for driver in others
        for n, name in enumerate(("k-theirs", SHARED, SHARED), 1)
    ]
    load_documents(shared_service.db, *trips, *theirs, drivers=[mine, *others])
    load_documents(shared_service.db, *trips, drivers=[{**mine, "groups": []}], fleet="alone")
    build_report(shared_service.store, "f1", ReportWindow("2026-03-16"))
    return shared_service


def make_requests(path):
    """Yield requests to an endpoint: path and query."""
    parameters = {item["name"]: item for item in OPERATIONS[path]["parameters"] if "name" in item}
    used = {
        name: VALUES.get(name) or [[item["example"]]]
        for name, item in parameters.items()
        if name in VALUES or item["required"]
    }
    for values in itertools.product(*used.values()):
        filled, query = path.removeprefix("/api/v1"), {}
        for name, texts in zip(used, values, strict=True):
            if parameters[name]["in"] == "path":
                filled = filled.replace(f"{{{name}}}", quote("".join(texts), safe=""))
            else:
                query[name] = texts
        yield f"{filled}?{urlencode(query, doseq=True)}"


def get(service, target, headers=None, **options):
    """Return the response; what differs between requests is the same."""
    return service.get(target, headers={"X-Request-ID": "same", **(headers or {})}, **options)


def comparable(response):
    """Return status, headers and body without what names the scope."""
    names = {name for name in response.headers.keys() if "ratelimit" in name.lower()} | {"ETag", "Content-Length"}
    headers = {name: "" if name in names else value for name, value in response.headers.items()}
    return response.status_code, headers, response.data.replace(b'"alone"', b'"f1"')


@pytest.mark.parametrize("path", [path for path in OPERATIONS if path not in (*OF_FLEET, "/api/v1/fleet")])
def test_a_response_is_that_of_a_fleet_that_has_the_driver_alone(fleets, path):
    differs = []
    for target, headers in itertools.product(make_requests(path), HEADERS):
        own = get(fleets, target, driver=MINE, headers=headers)
        assert comparable(own) == comparable(get(fleets, target, fleet="alone", headers=headers)), target
        differs.append(get(fleets, target, headers=headers).data != own.data)
    # Otherwise VALUES lacks what makes a request to the endpoint find something of others.
    assert any(differs)


def test_what_is_about_the_whole_fleet_takes_a_key_of_the_fleet(fleets):
    names = ("ranking", "report", "reports", "changes", "fleet-aggregate", "groups")
    assert [f"/api/v1/{name}" for name in names] == OF_FLEET
    service = Service(fleets.db, driver_rate_limit=parse("12 per minute"))
    example = OPERATIONS[OF_FLEET[0]]["responses"]["403"]["$ref"].rpartition("/")[2]
    for path in OF_FLEET:
        for method in ("GET", "HEAD"):
            response = service.open(path, unknown=1, limit="x", driver=MINE, method=method)
            assert (response.status_code, response.headers["X-RateLimit-Limit"], example) == (403, "12", "Forbidden")
        assert service.open(path, fleet=None).status_code == 401
    refused = service.open(path, driver=MINE)
    assert "The driver's limit of 12 requests per minute" in refused.json["message"]
    assert refused.status_code == 429


def test_the_message_of_a_403_says_that_it_takes_a_key_of_the_fleet(fleets):
    body = fleets.get(RANKING, driver=MINE).json
    assert (body["error"], body["message"]) == ("Forbidden", FLEET_KEY_REQUIRED)
    assert fleets.get("/nothing", driver=MINE).json["error"] == "NotFound"


def test_an_etag_matches_for_every_key_of_its_scope_and_for_no_other(fleets):
    scopes = {"driver": MINE}, {"driver": THEIRS}, {}, {"fleet": "alone"}, {"fleet": "alone", "driver": MINE}
    for path in ("/drivers", "/trip/trip_id/t-mine", "/trip/trip_id/nothing"):
        tags = [fleets.get(path, **scope).headers["ETag"] for scope in scopes]
        # From here on, other keys.
        fleets.keys.clear()
        for tag, scope in zip(tags, scopes, strict=True):
            sent = {"If-None-Match": tag}
            statuses = [fleets.get(path, **other, headers=sent).status_code for other in scopes]
            assert statuses == [304 if other == scope else 200 for other in scopes], (path, scope)


def test_the_keys_of_a_driver_share_a_limit_that_is_not_the_fleets(fleets):
    service = Service(fleets.db, driver_rate_limit=parse("2 per minute"), metrics_bind="127.0.0.1:9100")
    first = service.get("/drivers", driver=MINE)
    service.keys.clear()
    statuses = [service.get("/drivers", driver=MINE).status_code for _ in range(2)]
    assert statuses == [200, 429]
    headers = {name: first.headers[name] for name in ("X-RateLimit-Remaining", "RateLimit-Policy", "RateLimit")}
    assert list(headers.values()) == ["1", '"driver";q=2;w=60', '"driver";r=1;t=60']
    others = [service.get("/drivers", **scope).headers["X-RateLimit-Remaining"] for scope in ({}, {"driver": THEIRS})]
    assert others == ["4999", "1"]
    registry = get_services(service.app).metrics.registry
    refusals = [
        registry.get_sample_value("driver_analytics_rate_limit_refusals_total", {"limit": limit})
        for limit in ("fleet", "driver", "address")
    ]
    assert refusals == [0, 1, 0]


def test_a_driver_who_disappears_and_comes_back_is_served_again(service, load, store):
    trip, responses = make_trip(driver_id=MINE, trip_id="only"), []
    load(trip)
    for change in (lambda: None, lambda: delete_trips(store, "f1", ["only"]), lambda: load(trip)):
        service.key("f1", MINE)
        change()
        paths = ("/drivers", "/driver/mine/score?start_date=2026-03-02", "/trip/trip_id/only")
        responses.append([service.get(path, driver=MINE) for path in paths])
    assert [drivers.json["count"] for drivers, _, _ in responses] == [1, 0, 1]
    assert [score.status_code for _, score, _ in responses] == [200, 404, 200]
    assert [trips.json["count"] for _, _, trips in responses] == [1, 0, 1]


def test_a_line_of_the_log_has_the_scope_and_no_driver_id(fleets, log):
    fleets.get("/drivers", driver=THEIRS)
    line = log()[-1]
    assert (line["fleet"], line["scope"], THEIRS in str(line)) == ("f1", "driver", False)
