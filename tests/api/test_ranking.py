"""GET /ranking."""

import pytest

from tests.api.test_aggregates import SUMMARY_FIELDS
from tests.factories import make_driver, make_event_summary, make_trip
from tests.store_contents import load as load_documents

WEEK = {"period": "week", "start_date": "2026-03-09"}
MONTH = {"period": "month", "start_date": "2026-03-01"}


def trip_of(driver_id, brakes=0, miles=100, start="2026-03-10T08:00", **fields):
    """Return a trip with a score of 100 - brakes, if it has 100 miles and at most 20 brakes."""
    events = make_event_summary(hard_brake_count=brakes)
    return make_trip(start, driver_id, distance_miles=miles, event_summary=events, **fields)


def ranked(service, **query):
    """Return the rank and the driver_id of each driver on a page."""
    response = service.get("/ranking", **{**WEEK, **query})
    assert response.status_code == 200, response.text
    return [(row["rank"], row["driver_info"]["driver_id"]) for row in response.json["drivers"]]


def test_a_ranking_has_exactly_the_fields_of_the_contract_in_order(service, load):
    load(trip_of("d1", brakes=5), drivers=[make_driver("d1", alias="Ada")])
    page = service.get("/ranking", **WEEK).json
    head = {"count": 1, "limit": 50, "current_page": 1, "next_page": None, **WEEK, "end_date": "2026-03-15"}
    assert list(page.items())[:-1] == list(head.items())
    (row,) = page["drivers"]
    assert list(row) == ["rank", "driver_info", "driving_summary"]
    assert list(row["driver_info"]) == list(make_driver())
    assert list(row["driving_summary"]) == SUMMARY_FIELDS
    assert (row["rank"], row["driver_info"]["alias"], row["driving_summary"]["fm_score"]) == (1, "Ada", 95)


def test_the_worst_come_first_by_default_and_ties_go_to_the_longer_distance_then_by_code_point(service, load):
    ties = [trip_of(driver_id, miles=miles) for driver_id, miles in [("b", 5), ("é", 9), ("Z", 9.0), ("a", 9)]]
    load(trip_of("bad", brakes=20), *ties)
    assert ranked(service) == ranked(service, order="worst") == [*enumerate(["bad", "Z", "a", "é", "b"], 1)]
    assert ranked(service, order="best") == [*enumerate(["Z", "a", "é", "b", "bad"], 1)]


def test_a_summary_is_that_of_the_aggregates(service, load):
    load(trip_of("d1", brakes=3), trip_of("d1", brakes=9, start="2026-03-12T08:00"))
    row = service.get("/ranking", **WEEK).json["drivers"][0]
    week = service.get("/driver-aggregate/weekly", start_date="2026-03-09", driver_id="d1").json["data"][0]
    assert row["driver_info"] == week["driver_info"]
    assert row["driving_summary"] == {name: week["driving_summary"][name] for name in SUMMARY_FIELDS}


@pytest.fixture(scope="module")
def distances(shared_service):
    """The service with drivers of different distances."""
    trips = [trip_of("a", miles=0), trip_of("b", miles=0.1), trip_of("c", miles=7), trip_of("d", miles=2**63 - 1)]
    load_documents(shared_service.db, *trips, trip_of("b", miles=0.2))
    return shared_service


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "abcd"),
        ("0.30000000000000004", "bcd"),
        ("0.3000000000000001", "cd"),
        ("0.7e1", "cd"),
        ("71E-1", "d"),
        (f"5.{'0' * 398}", "cd"),
    ],
)
def test_who_drove_at_least_the_minimum_a_number_as_in_json_is_ranked(distances, text, expected):
    page = distances.get("/ranking", **WEEK, min_distance_miles=text).json
    assert sorted(row["driver_info"]["driver_id"] for row in page["drivers"]) == list(expected)
    assert page["count"] == len(expected)


DATES = {
    "week": (["2025-09-22", "2026-03-16"], ["2025-09-15", "2026-03-10", "2026-03-23", "2026-3-9", "x"]),
    "month": (["2025-09-01", "2026-03-01"], ["2025-08-01", "2026-03-02", "2026-04-01", "2026-02-29", "2026-03"]),
}


@pytest.mark.parametrize("period", DATES)
def test_a_ranking_is_of_a_whole_week_or_month_of_the_last_six_months(service, period):
    accepted, refused = DATES[period]
    for date in accepted:
        assert service.get("/ranking", period=period, start_date=date).json["count"] == 0
    for date in refused:
        assert list(service.errors("/ranking", period=period, start_date=date)) == ["start_date"]


@pytest.mark.parametrize(
    "text",
    ["-1", "+1", "01", "1.", ".5", "1e", "e3", "1e400", "", " 1", "٣", "NaN", "inf", "9" * 309, "0x1", "1,5", "1\n"]
    + [f"5.{'0' * 399}"],
)
def test_a_minimum_that_is_no_number_from_0_is_refused(distances, text):
    assert list(distances.errors("/ranking", **WEEK, min_distance_miles=text)) == ["min_distance_miles"]


def test_every_wrong_parameter_is_named(service):
    query = "period=year&start_date=x&order=first&min_distance_miles=-1&limit=101&page=0&driver_id=d1"
    names = {part.partition("=")[0] for part in query.split("&")}
    assert service.errors(f"/ranking?{query}").keys() == names
    assert service.errors("/ranking").keys() == {"period", "start_date"}
