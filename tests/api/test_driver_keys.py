"""Keys of one driver. That no response depends on other drivers is in tests/store/test_two_fleets.py."""

import itertools

import pytest
from limits import parse

from app.config import API
from app.errors import FLEET_KEY_REQUIRED
from app.services import get_services
from scripts.materialize.write_sources import delete_trips
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.operations import OF_DATA, OPERATIONS, REPORT_FILE, make_target
from tests.store_contents import load as load_documents

# The endpoints that take a key of the fleet.
OF_FLEET = [f"{API}/{name}" for name in ("ranking", "report", "reports", "changes", "fleet-aggregate", "groups")]
RANKING = "/ranking?period=week&start_date=2026-03-02"
MINE, THEIRS, SHARED = "mine", "theirs-1", "shared"


@pytest.fixture(scope="module")
def fleets(shared_service):
    """The service of fleet f1 with three drivers, and fleet `alone` with the first of them."""
    mine = make_driver(MINE, first_name="My name", groups=["North"])
    trips = [
        make_trip("2026-03-02T08:00", MINE, trip_id="t-mine", tracking_id=SHARED),
        *(make_trip(f"2026-03-0{day}T09:00", MINE, tracking_id=SHARED) for day in range(1, 9)),
    ]
    theirs = [make_trip("2026-03-02T08:30", THEIRS, trip_id="t-theirs", tracking_id=SHARED)]
    load_documents(shared_service.db, *trips, *theirs, drivers=[mine, make_driver("theirs-2")])
    load_documents(shared_service.db, *trips, drivers=[{**mine, "groups": []}], fleet="alone")
    return shared_service


@pytest.mark.parametrize("path", [path for path in OF_DATA if path not in OF_FLEET])
def test_a_response_is_that_of_a_fleet_that_has_the_driver_alone(fleets, path):
    required = {"driver_id": MINE, "filter_value": SHARED}
    target = make_target(path, required, filter_param="tracking_id", monday="2026-03-02")
    assert fleets.get(target, driver=MINE).json == fleets.get(target, fleet="alone").json


def test_what_is_about_the_whole_fleet_takes_a_key_of_the_fleet(fleets):
    documented = {path for path, operation in OPERATIONS.items() if "403" in operation["responses"]}
    assert documented - {REPORT_FILE} == set(OF_FLEET)
    service = Service(fleets.db, driver_rate_limit=parse("20 per minute"))
    for path, method in itertools.product(OF_FLEET, ("GET", "HEAD")):
        response = service.open(path, unknown=1, limit="x", driver=MINE, method=method)
        assert (response.status_code, response.headers["X-RateLimit-Limit"]) == (403, "20")
        assert service.open(path, fleet=None).status_code == 401


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
    second, refused = (service.get("/drivers", driver=MINE) for _ in range(2))
    assert (second.status_code, refused.status_code) == (200, 429)
    assert "The driver's limit of 2 requests per minute" in refused.json["message"]
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
