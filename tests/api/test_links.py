"""The header Link (RFC 8288): the pages of a list, and the description of the service."""

import re

import pytest

from app.config import API
from tests.conftest import NO_LIMITS, Service
from tests.factories import epoch_ms, make_driver, make_event, make_trip
from tests.operations import CHANGES, MONDAY, OF_DATA, OPERATIONS, make_target, parameters_of
from tests.store_contents import load

DESCRIPTION = '<http://localhost/api/v1/openapi.json>; rel="service-desc"'
REQUIRED = {"driver_id": "a/b", "filter_value": "round"}
LISTS = [
    make_target(path, REQUIRED, filter_param="tracking_id", limit=1)
    for path in OF_DATA
    if "page" in parameters_of(path)
]
LISTS.append("/drivers?limit=1&search=%E2%85%B0%2C+%C3%B6")
CURSOR_LISTS = [f"{path}?start_date={MONDAY}&limit=1" for path in ("/trips", "/events")]
MAX_LINK_BYTES = 4_000


@pytest.fixture(scope="module")
def fleet(shared_service):
    """Two drivers, the first of whom drove six trips on two days under one tracking_id: two records of every list."""
    starts = ["2026-03-10T06:00", *(f"{MONDAY}T{hour:02}:00" for hour in range(7, 12))]
    events = [make_event(epoch_ms(f"{MONDAY}T08:00"))]
    trips = [make_trip(start, "a/b", tracking_id="round", events=events) for start in starts]
    drivers = [make_driver(name, alias="I, Ö", groups=[name]) for name in ("a/b", "c")]
    load(shared_service.db, *trips, make_trip(f"{MONDAY}T08:00", "c"), drivers=drivers)
    return shared_service


def links(response):
    """Return the targets by relation."""
    (header,) = response.headers.getlist("Link")
    return {relation: url for url, relation in re.findall(r'<([^<>]*)>; rel="([a-z-]+)"(?:, |$)', header)}


def follow(service, url):
    assert url.startswith("http://localhost/api/v1/")
    return service.open(url.removeprefix("http://localhost"))


def records_of(response):
    """Return the records on a page."""
    (records,) = (value for value in response.json.values() if isinstance(value, list))
    return records


@pytest.mark.parametrize("path", LISTS)
def test_the_next_links_of_a_list_lead_through_all_its_pages_with_any_mask(fleet, path):
    response, records, next_page = fleet.get(path), [], 1
    assert links(fleet.get(path, headers={"X-Fields": "{}"})) == links(response)
    whole = response.json
    while response:
        page, records = response.json, records + records_of(response)
        assert (page["current_page"], page["count"], page["limit"]) == (next_page, whole["count"], whole["limit"])
        next_page, url = page["next_page"], links(response).get("next")
        assert (next_page is None) == (url is None)
        response = follow(fleet, url) if url else None
    assert len(records) == len(set(map(str, records))) == whole["count"] > 1


@pytest.mark.parametrize(
    "query",
    [
        {"start_date": MONDAY, "driver_id": ["a/b", "c"], "min_distance_miles": 1, "order": "newest"},
        {"at": epoch_ms(f"{MONDAY}T08:00")},
    ],
)
def test_the_next_page_of_the_openapi_document_is_that_of_the_header(fleet, query):
    response, query = fleet.get("/trips", **query, limit=1), {**query, "limit": 1}
    link = OPERATIONS[f"{API}/trips"]["responses"]["200"]["links"]["listFleetTrips"]
    values = {f"$request.query.{name}": value for name, value in query.items()}
    values["$response.body#/next_cursor"] = response.json["next_cursor"]
    passed = {name: values[value] for name, value in link["parameters"].items() if value in values}
    assert passed == {**query, "cursor": response.json["next_cursor"]}
    assert records_of(fleet.get("/trips", **passed)) == records_of(follow(fleet, links(response)["next"])) != []


def test_the_next_links_of_changes_lead_through_all_of_them(fleet):
    response, sizes = fleet.get("/changes?limit=3"), []
    while response:
        sizes.append(len(response.json["changes"]))
        url = links(response).get("next")
        assert (url is not None) == response.json["has_more"]
        response = follow(fleet, url) if url else None
    assert sizes == [3, 3, 1]


@pytest.mark.parametrize("path", LISTS)
def test_the_previous_and_the_first_link_lead_back(fleet, path):
    first = fleet.get(path)
    second = follow(fleet, links(first)["next"])
    assert "prev" not in links(first)
    assert follow(fleet, links(second)["prev"]).json == follow(fleet, links(second)["first"]).json == first.json


@pytest.mark.parametrize("path", LISTS)
def test_after_a_page_past_the_end_the_previous_one_is_the_last(fleet, path):
    past = fleet.get(f"{path}{'&' if '?' in path else '?'}page=1000000000")
    last = follow(fleet, links(past)["prev"])
    assert links(past).keys() == {"prev", "first", "service-desc"}
    assert "next" not in links(last)
    assert (records_of(past), past.json["count"], past.json["next_page"]) == ([], last.json["count"], None)
    assert records_of(last)


@pytest.mark.parametrize(
    "path", ["/drivers", f"/driver-aggregate/window?start_date={MONDAY}", f"/ranking?period=week&start_date={MONDAY}"]
)
def test_an_empty_list_has_one_page(service, path):
    response = service.get(path)
    assert links(response).keys() == {"first", "service-desc"}
    names = ("count", "current_page", "next_page")
    assert (records_of(response), *map(response.json.get, names)) == ([], 0, 1, None)


def test_the_page_is_replaced_however_its_name_is_encoded(fleet):
    assert links(fleet.get("/drivers?p%61ge=2&limit=1"))["prev"].endswith("/drivers?limit=1&page=1")


def test_no_parameter_can_add_a_link(make_service):
    service = make_service(unknown_parameters="ignore")
    response = service.open('/api/v1/drivers?x=>;rel="next",<http://evil.example')
    assert links(response).keys() == {"first", "service-desc"}
    assert "evil" not in re.sub("<.*?>", "", response.headers["Link"])


def test_no_host_can_add_a_link(service):
    response = service.get("/livez", headers={"Host": 'evil.example>; rel="next"'})
    assert response.headers["Link"] == '</api/v1/openapi.json>; rel="service-desc"'


@pytest.mark.parametrize("path", ["/livez", "/openapi.json", "/drivers?limit=0", "/nothing", "/docs"])
def test_every_other_response_has_the_link_to_the_description_alone(fleet, path):
    assert fleet.get(path).headers.getlist("Link") == [DESCRIPTION]


@pytest.mark.parametrize("path", LISTS)
def test_a_304_has_the_links_of_the_response_that_a_cache_has_stored(fleet, path):
    stored = fleet.get(path)
    fresh = fleet.get(path, headers={"If-None-Match": stored.headers["ETag"]})
    assert (fresh.status_code, links(fresh)) == (304, links(stored))
    assert "next" in links(fresh)


@pytest.fixture(scope="module")
def lenient(fleet):
    """The service that ignores unknown parameters, so that a query can have any length."""
    return Service(fleet.db, unknown_parameters="ignore", **NO_LIMITS)


@pytest.mark.parametrize("path", [*LISTS, *CURSOR_LISTS, "/changes?limit=1"])
def test_of_links_with_more_than_4000_bytes_the_next_is_sent_alone_and_none_if_that_has_more(lenient, path):
    def find_relations(more):
        response = lenient.get(re.sub("[?]|$", f"?x={'x' * more}&", path, count=1))
        assert response.status_code == 200
        own = response.headers["Link"].removesuffix(DESCRIPTION).removesuffix(", ")
        return own, links(response).keys() - {"service-desc"}

    # Each link has the whole query.
    own, relations = find_relations(0)
    of_all = (MAX_LINK_BYTES - len(own)) // len(relations)
    of_next = MAX_LINK_BYTES - len(own.partition(", ")[0])
    found = {more: find_relations(more)[1] for more in (of_all, of_all + 1, of_next, of_next + 1)}
    assert found == {of_all: relations, of_all + 1: {"next"}, of_next: {"next"}, of_next + 1: set()}


def find_linked(path):
    return {*OPERATIONS[path]["responses"]["200"].get("links", ())}


def test_the_openapi_document_links_to_all_operations_with_the_identifiers_of_a_response():
    of_drivers = {OPERATIONS[path]["operationId"] for path in OPERATIONS if "driver_id" in parameters_of(path)}
    assert len(of_drivers) > 4
    assert find_linked("/api/v1/drivers") == find_linked("/api/v1/ranking") == of_drivers
    assert find_linked(CHANGES) == {"listChanges", "listTrips"}
