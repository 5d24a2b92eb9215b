"""GET /drivers."""

import pytest

from tests.factories import make_driver, make_trip


def ids(response):
    return [driver["driver_id"] for driver in response.json["drivers"]]


def test_a_driver_is_served_with_exactly_the_fields_of_the_contract_in_order(service, load):
    driver = make_driver("d1", first_name="Ada", email="ada@example.com", first_travel_date="2026-01-02")
    load(drivers=[driver])
    response = service.get("/drivers")
    assert response.status_code == 200
    assert list(response.json) == ["count", "limit", "current_page", "next_page", "drivers"]
    assert response.json["drivers"] == [driver]
    # The list is written out, because the factory of drivers changes with the schema.
    names = ["driver_id", "first_name", "last_name", "email", "alias", "first_travel_date", "last_travel_date"]
    assert list(response.json["drivers"][0]) == names


def test_drivers_come_in_code_point_order(service, load):
    names = ["b", "B", "a", "10", "9", "é", "z", "𝄞", "\uffee", "a/b", "a b"]
    load(drivers=[make_driver(name) for name in names])
    assert ids(service.get("/drivers")) == sorted(names)


def test_pages_follow_each_other_to_the_last(service, load):
    load(drivers=[make_driver(f"d{number}") for number in range(5)])
    pages = [service.get("/drivers", limit=2, page=page).json for page in (1, 2, 3)]
    assert [page["next_page"] for page in pages] == [2, 3, None]
    assert [len(page["drivers"]) for page in pages] == [2, 2, 1]
    assert {(page["count"], page["limit"]) for page in pages} == {(5, 2)}


def test_a_full_last_page_has_no_next(service, load):
    load(drivers=[make_driver("d1"), make_driver("d2")])
    assert service.get("/drivers", limit=2).json["next_page"] is None


@pytest.mark.parametrize("page", [2, 1_000_000_000])
def test_a_page_past_the_end_is_empty(service, load, page):
    load(drivers=[make_driver("d1")])
    response = service.get("/drivers", page=page)
    expected = {"count": 1, "limit": 50, "current_page": page, "next_page": None, "drivers": []}
    assert (response.status_code, response.json) == (200, expected)


def test_a_fleet_without_drivers_has_an_empty_page(service):
    assert service.get("/drivers").json["drivers"] == []


def test_limit_defaults_to_50(service, load):
    load(drivers=[make_driver(f"d{number:02}") for number in range(51)])
    response = service.get("/drivers").json
    assert (response["limit"], len(response["drivers"]), response["next_page"]) == (50, 50, 2)


@pytest.mark.parametrize("limit", ["0", "101", "-1", "+1", "01", "1.0", "1e1", "", " 1", "٣", "9" * 5000, "ten", "1\n"])
def test_a_limit_that_is_not_1_to_100_is_refused(service, limit):
    assert list(service.errors("/drivers", limit=limit)) == ["limit"]


@pytest.mark.parametrize("page", ["0", "1000000001", "-1", "01", "x", "", "9" * 5000])
def test_a_page_that_is_not_1_to_a_billion_is_refused(service, page):
    assert list(service.errors("/drivers", page=page)) == ["page"]


def test_a_parameter_given_twice_is_refused(service):
    assert service.errors("/drivers", limit=["1", "1"]) == {"limit": ["Must be given once; it is given 2 times."]}


def test_unknown_parameters_are_refused_by_name(service):
    errors = service.errors("/drivers", Limit="1", x=["", ""])
    assert errors == {"Limit": ["Unknown parameter; did you mean limit?"], "x": ["Unknown parameter."]}


def test_unknown_parameters_are_ignored_if_the_setting_says_so(make_service, load):
    load(drivers=[make_driver("a"), make_driver("b")])
    service = make_service(unknown_parameters="ignore")
    assert ids(service.get("/drivers", limit="1", Limit="2", x=["1", "2"])) == ["a"]
    assert list(service.errors("/drivers", limit=["1", "1"], x="1")) == ["limit"]


def test_the_same_query_is_refused_and_ignored_by_services_of_either_setting(service, make_service):
    path = "/drivers?cache_buster=1"
    assert make_service(unknown_parameters="ignore").get(path).status_code == 200
    assert list(service.errors(path)) == ["cache_buster"]


def test_a_parameter_named_in_no_utf_8_is_refused(service):
    assert list(service.errors("/drivers?%ff=1")) == ["?"]


def test_another_fleets_drivers_are_not_listed(service, load):
    load(drivers=[make_driver("mine")])
    load(drivers=[make_driver("theirs")], fleet="f2")
    assert ids(service.get("/drivers")) == ["mine"]
    assert ids(service.get("/drivers", fleet="f2")) == ["theirs"]


def test_travel_dates_are_the_widest_of_file_and_trips(service, load):
    load(
        make_trip("2026-01-05T23:59", "d1"),
        make_trip("2026-03-02T00:00", "d1"),
        drivers=[make_driver("d1", first_travel_date="2026-02-01", last_travel_date="2026-04-01")],
    )
    driver = service.get("/drivers").json["drivers"][0]
    assert (driver["first_travel_date"], driver["last_travel_date"]) == ("2026-01-05", "2026-04-01")
