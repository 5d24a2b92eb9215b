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
    load(drivers=[make_driver(f"d{number}") for number in range(4)])
    pages = [service.get("/drivers", limit=2, page=page).json for page in (1, 2, 3)]
    assert [page["next_page"] for page in pages] == [2, None, None]
    assert [len(page["drivers"]) for page in pages] == [2, 2, 0]
    assert {(page["count"], page["limit"]) for page in pages} == {(4, 2)}


@pytest.mark.parametrize(("count", "page"), [(1, 2), (1, 1_000_000_000), (0, 1)])
def test_a_page_past_the_end_and_that_of_an_empty_fleet_have_no_drivers(service, load, count, page):
    load(drivers=[make_driver(f"d{number}") for number in range(count)])
    response = service.get("/drivers", page=page)
    expected = {"count": count, "limit": 50, "current_page": page, "next_page": None, "drivers": []}
    assert (response.status_code, response.json) == (200, expected)


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
