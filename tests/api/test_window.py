"""GET /driver-aggregate/window. The figures are in test_figures.py."""

from tests.api.test_aggregates import SUMMARY_FIELDS
from tests.factories import make_driver, make_trip

PATH = "/driver-aggregate/window"
WEEK = {"start_date": "2026-03-09", "end_date": "2026-03-15"}


def find_ids(response):
    return [element["driver_info"]["driver_id"] for element in response.json["data"]]


def find_pages(service, **query):
    """Return the elements of all pages."""
    data, page = [], 1
    while page:
        response = service.get(PATH, **query, page=page).json
        data, page = data + response["data"], response["next_page"]
    return data


def test_a_response_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(make_trip("2026-03-10T08:00"), drivers=[make_driver("d1", alias="Ada")])
    body = service.get(PATH, **WEEK, driver_id="d1").json
    names = ["count", "limit", "current_page", "next_page", "start_date", "end_date", "data"]
    assert list(body.items())[:-1] == list(zip(names, [1, 50, 1, None, *WEEK.values()], strict=False))
    (element,) = body["data"]
    assert list(element) == ["driver_info", "driving_summary"]
    assert element["driver_info"] == service.get("/drivers").json["drivers"][0]
    assert list(element["driving_summary"]) == SUMMARY_FIELDS


def test_the_drivers_named_come_once_in_the_order_first_named_in_pages(service, load):
    load(make_trip("2026-03-10T08:00", "d2"), drivers=[make_driver(f"d{n}") for n in range(1, 6)])
    named = {"driver_id": ["d3", "d2", "d3", "d5"]}
    whole = service.get(PATH, **WEEK, **named)
    assert find_ids(whole) == ["d3", "d2", "d5"]
    assert ["driving_summary" in element for element in whole.json["data"]] == [False, True, False]
    assert find_pages(service, **WEEK, **named, limit=2) == whole.json["data"]
    response = service.get(PATH, **WEEK, **named, limit=2, page=2)
    page = {"count": 3, "limit": 2, "current_page": 2, "next_page": None}
    assert {name: response.json[name] for name in page} == page
    assert 'driver_id=d3&driver_id=d5&limit=2&page=1>; rel="prev"' in response.headers["Link"]
    assert service.get(PATH, **WEEK, **named, page=9).json["data"] == []


def test_at_most_twenty_drivers_may_be_named(shared_service):
    assert list(shared_service.errors(f"{PATH}?start_date=2026-03-09{'&driver_id=d1' * 21}")) == ["driver_id"]


def test_unknown_drivers_are_named_and_another_fleets_are_unknown(service, load):
    load(make_trip(driver_id="known"))
    load(make_trip(driver_id="theirs"), fleet="f2")
    ids = ["nobody", "known", "theirs"]
    for page in ({}, {"limit": 1, "page": 2}, {"page": 9}):
        response = service.get(PATH, **WEEK, **page, driver_id=ids, headers={"X-Fields": "count"})
        assert (response.status_code, response.json["message"]) == (404, "Not in this fleet: nobody, theirs")
    assert find_ids(service.get(PATH, **WEEK)) == ["known"]
