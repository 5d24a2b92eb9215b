"""Conditional requests: a response whose ETag the client sends is not sent again."""

import pytest

from tests.factories import make_driver, make_trip

SINCE = "start_date=2026-03-01"
PATHS = {
    "drivers": "/drivers",
    "drivers of a search": "/drivers?search=1",
    "trips": f"/driver/d1/trips?{SINCE}",
    "trips between dates": f"/driver/d1/trips?{SINCE}&end_date=2026-03-17",
    "trip": "/trip/trip_id/t1",
    "trips by tracking id": "/trip/tracking_id/k1",
    "daily": "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1",
    "weekly": "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1",
    "monthly": "/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1",
    "window": f"/driver-aggregate/window?{SINCE}",
    "window of drivers": f"/driver-aggregate/window?{SINCE}&driver_id=d1",
    "score": "/driver/d1/score?start_date=2026-03-09",
    "ranking": "/ranking?period=week&start_date=2026-03-09",
}
TRIP = make_trip("2026-03-10T08:00", trip_id="t1", tracking_id="k1")
EVERY = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)


@pytest.fixture
def fleet(load):
    """A driver with one trip."""
    load(TRIP, drivers=[make_driver("d1")])


def get_etag(service, path, **options):
    response = service.get(path, **options)
    assert response.status_code == 200, response.text
    return response.headers["ETag"]


def revalidate(service, path, etag, **options):
    return service.get(path, **{**options, "headers": {**options.get("headers", {}), "If-None-Match": etag}})


@EVERY
def test_a_response_with_a_matching_etag_is_not_sent_again(service, fleet, path):
    whole = service.get(path)
    assert whole.headers["Cache-Control"] == "private, no-cache"
    assert whole.headers["ETag"].startswith('"')
    for method in ("GET", "HEAD"):
        again = revalidate(service, path, whole.headers["ETag"], method=method)
        assert (again.status_code, again.data) == (304, b"")
        assert {again.headers[name] == whole.headers[name] for name in ("ETag", "Cache-Control", "Vary")} == {True}
        assert "Content-Type" not in again.headers


@EVERY
def test_a_response_without_a_matching_etag_is_sent(service, fleet, path):
    whole = service.get(path)
    for etag in ('"another"', 'W/"another", "third"', "", "nonsense"):
        response = revalidate(service, path, etag)
        assert (response.status_code, response.data) == (200, whole.data)


@EVERY
def test_a_changed_trip_changes_the_etag_at_once(service, load, fleet, path):
    etag = get_etag(service, path)
    load({**TRIP, "distance_miles": 11.0})
    if "drivers" in path:
        load(drivers=[make_driver("d1", alias="A")])
    assert revalidate(service, path, etag).status_code == 200


@pytest.mark.parametrize("name", ["drivers", "daily", "weekly", "monthly", "score", "ranking"])
def test_a_new_name_of_a_driver_changes_the_etag_of_each_response_that_has_it(service, load, fleet, name):
    etag = get_etag(service, PATHS[name])
    load(drivers=[make_driver("d1", alias="New")])
    assert revalidate(service, PATHS[name], etag).status_code == 200


@pytest.mark.parametrize("name", ["trips", "trip", "trips by tracking id"])
def test_a_correction_that_leaves_all_totals_changes_the_etag_of_the_trip(service, load, fleet, name):
    etag = get_etag(service, PATHS[name])
    load({**TRIP, "start_latitude": 1.5})
    assert revalidate(service, PATHS[name], etag).status_code == 200


@EVERY
def test_loading_the_same_data_again_keeps_the_etag(service, load, fleet, path):
    etag = get_etag(service, path)
    load(TRIP)
    assert revalidate(service, path, etag).status_code == 304


@EVERY
def test_changes_outside_a_response_keep_its_etag(service, load, fleet, path):
    etag = get_etag(service, path)
    load(make_trip("2026-03-10T08:00", "d1"), drivers=[make_driver("d1")], fleet="f2")
    assert revalidate(service, path, etag).status_code == 304


def test_another_drivers_trip_keeps_the_etags_of_a_driver(service, load, fleet):
    load(drivers=[make_driver("d2")])
    etag = {path: get_etag(service, path) for path in PATHS.values()}
    load(make_trip("2026-03-10T09:00", "d2"))
    statuses = {name: revalidate(service, path, etag[path]).status_code for name, path in PATHS.items()}
    # A search reads the same blocks of drivers as the list.
    assert statuses == dict.fromkeys(PATHS, 304) | dict.fromkeys(
        ["drivers", "drivers of a search", "window", "ranking"], 200
    )


@EVERY
def test_each_fleet_mask_and_request_has_its_own_etag(service, load, fleet, path):
    load(TRIP, drivers=[make_driver("d1")], fleet="f2")
    more = "&" if "?" in path else "?"
    etags = [
        get_etag(service, path),
        get_etag(service, path, fleet="f2"),
        get_etag(service, path, headers={"X-Fields": "count,data,total"}),
    ]
    if "aggregate" not in path and "score" not in path:
        etags.append(get_etag(service, f"{path}{more}page=2"))
    assert len(set(etags)) == len(etags)


@EVERY
def test_an_etag_does_not_depend_on_the_key(service, fleet, path):
    etag = get_etag(service, path)
    service.keys.clear()
    assert get_etag(service, path) == etag


@EVERY
def test_a_masked_response_is_revalidated(service, fleet, path):
    options = {
        "headers": {"X-Fields": "{count,data{driver_info{driver_id}},trips{trip_id},drivers{alias},total{fm_score}}"}
    }
    etag = get_etag(service, path, **options)
    assert revalidate(service, path, etag, **options).status_code == 304


def test_a_trip_that_becomes_visible_changes_the_etag(service, load, clock):
    load(make_trip("2026-03-18T08:00", trip_id="t1", tracking_id="k1"))
    paths = [PATHS[name] for name in ("trips", "trip", "trips by tracking id")]
    etag = [get_etag(service, path) for path in paths]
    clock.move_to("2026-03-18T12:31:00Z")
    assert [revalidate(service, path, of).status_code for path, of in zip(paths, etag, strict=True)] == [200] * 3


def test_errors_have_no_etag(service, fleet):
    response = revalidate(service, "/drivers?nope=1", "*")
    assert (response.status_code, "ETag" in response.headers) == (400, False)
