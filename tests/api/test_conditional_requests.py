"""Conditional requests: a response whose ETag the client sends is not sent again."""

import pytest

from tests.factories import make_driver, make_event, make_trip
from tests.operations import OF_DATA, make_target
from tests.store_contents import load as load_documents

REQUIRED = {"driver_id": "d1", "filter_value": "t1"}
OF_TRACKING_ID = "/trip/tracking_id/k1"
OF_A_SEARCH = "/drivers?search=d"
WINDOW_OF_A_DRIVER = "/driver-aggregate/window?start_date=2026-03-09&driver_id=d1"
PATHS = [*(make_target(path, REQUIRED) for path in OF_DATA), OF_TRACKING_ID, OF_A_SEARCH, WINDOW_OF_A_DRIVER]
TRIP = make_trip("2026-03-10T08:00", trip_id="t1", tracking_id="k1")
# What is loaded one after the other: changes of a driver, then of nothing and of others.
CHANGES = [
    {"trips": [{**TRIP, "start_latitude": 1.5}]},
    {"trips": [{**TRIP, "distance_miles": 11.0}]},
    {"trips": [{**TRIP, "events": [make_event(TRIP["trip_start_time"])]}]},
    {"drivers": [make_driver("d1", alias="New", groups=["North"])]},
    {"trips": [make_trip("2026-03-11T08:00", "d1")]},
]
CHANGES_OF_OTHERS = [
    {"trips": [TRIP]},
    {"drivers": [make_driver("d2")], "trips": [make_trip("2026-03-10T09:00", "d2")]},
    {"drivers": [make_driver("d1")], "trips": [TRIP], "fleet": "f2"},
]
EVERY = pytest.mark.parametrize("path", PATHS)


@pytest.fixture
def fleet(load):
    """A driver with one trip."""
    load(TRIP, drivers=[make_driver("d1")])


@pytest.fixture(scope="module")
def loaded(shared_service):
    """The service with that driver, and the same one in another fleet."""
    for fleet in ("f1", "f2"):
        load_documents(shared_service.db, TRIP, drivers=[make_driver("d1")], fleet=fleet)
    return shared_service


def get_etag(service, path, **options):
    response = service.get(path, **options)
    assert response.status_code == 200, response.text
    return response.headers["ETag"]


def revalidate(service, path, etag, **options):
    return service.get(path, **{**options, "headers": {**options.get("headers", {}), "If-None-Match": etag}})


@EVERY
def test_a_response_with_a_matching_etag_is_not_sent_again(loaded, path):
    whole = loaded.get(path)
    assert whole.headers["Cache-Control"] == "private, no-cache"
    assert whole.headers["ETag"].startswith('"')
    for method in ("GET", "HEAD"):
        again = revalidate(loaded, path, whole.headers["ETag"], method=method)
        assert (again.status_code, again.data) == (304, b"")
        assert {again.headers[name] == whole.headers[name] for name in ("ETag", "Cache-Control", "Vary")} == {True}
        assert "Content-Type" not in again.headers


@EVERY
def test_a_response_without_a_matching_etag_is_sent(loaded, path):
    whole = loaded.get(path)
    for etag in ('"another"', 'W/"another", "third"', "", "nonsense"):
        response = revalidate(loaded, path, etag)
        assert (response.status_code, response.data) == (200, whole.data)


def apply(service, load, change):
    """Load a change. Return whether it changes the response of each path, and the status for who has the old one."""
    before = {path: service.get(path) for path in PATHS}
    load(*change.get("trips", ()), drivers=change.get("drivers", ()), fleet=change.get("fleet", "f1"))
    return {
        path: (service.get(path).data != old.data, revalidate(service, path, old.headers["ETag"]).status_code)
        for path, old in before.items()
    }


def test_the_etag_changes_whenever_the_response_does(service, load, fleet):
    changes = [apply(service, load, change) for change in CHANGES + CHANGES_OF_OTHERS]
    outcomes = {path: {change[path] for change in changes} for path in PATHS}
    assert [path for path in PATHS if (True, 200) not in outcomes[path]] == []
    assert [path for path in PATHS if (True, 304) in outcomes[path]] == []


def test_changes_outside_a_response_keep_its_etag(service, load, fleet):
    for change in CHANGES_OF_OTHERS:
        assert [path for path, of in apply(service, load, change).items() if of == (False, 200)] == [], change


@EVERY
def test_each_fleet_mask_and_request_has_its_own_etag(loaded, path):
    etags = [
        get_etag(loaded, path),
        get_etag(loaded, path, fleet="f2"),
        get_etag(loaded, path, headers={"X-Fields": "count,data,total"}),
    ]
    if "current_page" in loaded.get(path).json and path != WINDOW_OF_A_DRIVER:
        etags.append(get_etag(loaded, f"{path}{'&' if '?' in path else '?'}page=2"))
    assert len(set(etags)) == len(etags)


def test_a_trip_that_becomes_visible_changes_the_etag(service, load, clock):
    load(make_trip("2026-03-18T08:00", trip_id="t1", tracking_id="k1"))
    paths = ["/driver/d1/trips?start_date=2026-03-09", "/trip/trip_id/t1", OF_TRACKING_ID]
    etag = [get_etag(service, path) for path in paths]
    clock.move_to("2026-03-18T12:31:00Z")
    assert [revalidate(service, path, of).status_code for path, of in zip(paths, etag, strict=True)] == [200] * 3


WINDOWS = pytest.mark.parametrize(
    "path", ["/driver/d1/score?", *(f"/driver-aggregate/window?{more}" for more in ("", "driver_id=d2&driver_id=d1&"))]
)


@WINDOWS
def test_an_etag_changes_with_the_default_end_of_a_window(service, load, clock, path):
    load(make_trip("2026-03-10T08:00", "d1"), make_trip("2026-03-10T08:00", "d2"))
    etag = get_etag(service, f"{path}start_date=2026-03-09")
    clock.move_to("2026-03-19T00:00:00Z")
    response = revalidate(service, f"{path}start_date=2026-03-09", etag)
    assert (response.status_code, response.json["end_date"]) == (200, "2026-03-18")


@WINDOWS
@pytest.mark.parametrize(
    ("date", "status"), [("2026-03-08", 304), ("2026-03-09", 200), ("2026-03-16", 200), ("2026-03-17", 304)]
)
def test_only_trips_in_a_window_change_its_etag(service, load, path, date, status):
    load(*(make_trip(f"2026-03-{day}T08:00", "d1") for day in ("01", "10", "31")), make_trip("2026-03-10T08:00", "d2"))
    path += "start_date=2026-03-09&end_date=2026-03-16"
    etag = get_etag(service, path)
    load(make_trip(f"{date}T08:00", "d1"))
    assert revalidate(service, path, etag).status_code == status


def test_errors_have_no_etag(service, fleet):
    response = revalidate(service, "/drivers?nope=1", "*")
    assert (response.status_code, "ETag" in response.headers) == (400, False)


@EVERY
def test_a_masked_response_is_revalidated(loaded, path):
    options = {
        "headers": {"X-Fields": "{count,data{driver_info{driver_id}},trips{trip_id},drivers{alias},total{fm_score}}"}
    }
    etag = get_etag(loaded, path, **options)
    assert revalidate(loaded, path, etag, **options).status_code == 304
