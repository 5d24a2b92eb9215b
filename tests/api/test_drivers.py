"""GET /drivers."""

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


def test_travel_dates_are_the_widest_of_file_and_trips(service, load):
    load(
        make_trip("2026-01-05T23:59", "d1"),
        make_trip("2026-03-02T00:00", "d1"),
        drivers=[make_driver("d1", first_travel_date="2026-02-01", last_travel_date="2026-04-01")],
    )
    driver = service.get("/drivers").json["drivers"][0]
    assert (driver["first_travel_date"], driver["last_travel_date"]) == ("2026-01-05", "2026-04-01")
