"""Entity tags: a client that holds an answer is told so, and is not sent it again."""

import pytest

from tests.factories import make_driver, make_trip

SINCE = "start_date=2026-03-01"
PATHS = {
    "drivers": "/drivers",
    "trips": f"/driver/d1/trips?{SINCE}",
    "trip": "/trip/trip_id/t1",
    "trips by tracking id": "/trip/tracking_id/k1",
    "daily": "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1",
    "weekly": "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1",
}
TRIP = make_trip("2026-03-10T08:00", trip_id="t1", tracking_id="k1")
EVERY = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)


@pytest.fixture
def fleet(load):
    """A driver with one trip."""
    load(TRIP, drivers=[make_driver("d1")])


def tag(service, path, **options):
    answer = service.get(path, **options)
    assert answer.status_code == 200, answer.text
    return answer.headers["ETag"]


def ask_again(service, path, held, **options):
    return service.get(path, **{**options, "headers": {**options.get("headers", {}), "If-None-Match": held}})


@EVERY
def test_an_answer_that_the_client_holds_is_not_sent_again(service, fleet, path):
    whole = service.get(path)
    again = ask_again(service, path, whole.headers["ETag"])
    assert (again.status_code, again.data) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary"):
        assert again.headers[name] == whole.headers[name]
    assert "Content-Type" not in again.headers


@EVERY
def test_an_answer_may_be_kept_by_the_client_alone_and_is_asked_for_again(service, fleet, path):
    assert service.get(path).headers["Cache-Control"] == "private, no-cache"


@EVERY
def test_a_tag_is_a_strong_one(service, fleet, path):
    assert tag(service, path).startswith('"')


@EVERY
def test_an_answer_that_the_client_does_not_hold_is_sent(service, fleet, path):
    whole = service.get(path)
    for held in ('"another"', 'W/"another", "third"', "", "nonsense"):
        answer = ask_again(service, path, held)
        assert (answer.status_code, answer.data) == (200, whole.data)


@EVERY
@pytest.mark.parametrize("form", ["{}", "W/{}", '"another", {}', '"another" , W/{}', "*"])
def test_a_tag_is_known_in_every_form(service, fleet, path, form):
    assert ask_again(service, path, form.format(tag(service, path))).status_code == 304


@EVERY
def test_a_trip_that_changed_changes_the_tag_at_once(service, load, fleet, path):
    held = tag(service, path)
    load({**TRIP, "distance_miles": 11.0})
    if "drivers" in path:
        load(drivers=[make_driver("d1", alias="A")])
    assert ask_again(service, path, held).status_code == 200


@EVERY
def test_loading_the_same_again_keeps_the_tag(service, load, fleet, path):
    held = tag(service, path)
    load(TRIP)
    assert ask_again(service, path, held).status_code == 304


@EVERY
def test_what_changes_elsewhere_keeps_the_tag(service, load, fleet, path):
    held = tag(service, path)
    load(make_trip("2026-03-10T08:00", "d1"), drivers=[make_driver("d1")], fleet="f2")
    assert ask_again(service, path, held).status_code == 304


def test_another_drivers_trip_keeps_the_tags_of_a_driver(service, load, fleet):
    load(drivers=[make_driver("d2")])
    held = {path: tag(service, path) for path in PATHS.values()}
    load(make_trip("2026-03-10T09:00", "d2"))
    found = {name: ask_again(service, path, held[path]).status_code for name, path in PATHS.items()}
    assert found == dict.fromkeys(PATHS, 304) | {"drivers": 200}


@EVERY
def test_fleet_and_mask_and_request_have_tags_of_their_own(service, load, fleet, path):
    load(TRIP, drivers=[make_driver("d1")], fleet="f2")
    more = "&" if "?" in path else "?"
    tags = [tag(service, path), tag(service, path, fleet="f2"), tag(service, path, headers={"X-Fields": "count,data"})]
    if "aggregate" not in path:
        tags.append(tag(service, f"{path}{more}page=2"))
    assert len(set(tags)) == len(tags)


@EVERY
def test_a_tag_does_not_depend_on_the_key(service, fleet, path):
    held = tag(service, path)
    service.keys.clear()
    assert tag(service, path) == held


@EVERY
def test_a_mask_is_revalidated_too(service, fleet, path):
    options = {"headers": {"X-Fields": "{count,data{driver_info{driver_id}},trips{trip_id},drivers{alias}}"}}
    held = tag(service, path, **options)
    assert ask_again(service, path, held, **options).status_code == 304


@EVERY
def test_head_tells_what_get_tells(service, fleet, path):
    held = tag(service, path)
    assert tag(service, path, method="HEAD") == held
    assert ask_again(service, path, held, method="HEAD").status_code == 304


def test_a_trip_that_becomes_visible_changes_the_tag(service, load, clock):
    load(make_trip("2026-03-18T08:00", trip_id="t1", tracking_id="k1"))
    paths = [PATHS[name] for name in ("trips", "trip", "trips by tracking id")]
    held = [tag(service, path) for path in paths]
    clock.move_to("2026-03-18T12:31:00Z")
    assert [ask_again(service, path, of).status_code for path, of in zip(paths, held, strict=True)] == [200] * 3


def test_what_is_not_modified_counts_against_the_limit(make_service, fleet):
    service = make_service()
    held = service.get("/drivers")
    again = ask_again(service, "/drivers", held.headers["ETag"])
    remaining = [int(answer.headers["X-RateLimit-Remaining"]) for answer in (held, again)]
    assert remaining[1] == remaining[0] - 1


@EVERY
def test_errors_have_no_tag(service, fleet, path):
    more = "&" if "?" in path else "?"
    answer = ask_again(service, f"{path}{more}nope=1", "*")
    assert (answer.status_code, answer.headers["Cache-Control"], answer.headers.get("ETag")) == (400, "private", None)
