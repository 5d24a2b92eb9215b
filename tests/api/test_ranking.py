"""GET /ranking."""

import random

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
def fleet(shared_service):
    """The service; in fleet f2, drivers with few scores and distances in a week, and in its month."""
    rng, days = (
        random.Random(58),
        ["01-31T23:59", "02-01T00:00", "02-02T00:00", "02-08T23:59", "02-28T23:59", "03-01T00:00"],
    )
    events = {
        "hard_brake_count": [0, 0, 9],
        "phone_use_time_seconds": [0, 0, 75],
        "overspeeding_time_seconds": [0, 10.5],
    }
    trips = [
        make_trip(
            f"2026-{day}",
            name,
            distance_miles=rng.choice([0, 40, 100, 100.0]),
            event_summary=make_event_summary(**{field: rng.choice(values) for field, values in events.items()}),
        )
        for name in (*(f"d{n}" for n in range(12)), "é", "Z", "\U0001f697")
        for day in rng.sample(days, 3)
    ]
    load_documents(shared_service.db, *trips, fleet="f2")
    return shared_service


def rank(service, aggregate, start_date, order, behaviour):
    """Return the driver_id and the miles of each driver in order, from the responses about each driver."""
    query, direction, rows = {"start_date": start_date, "fleet": "f2"}, 1 if order == "worst" else -1, []
    for driver in service.get("/drivers", fleet="f2").json["drivers"]:
        driver_id = driver["driver_id"]
        (row,) = service.get(f"/driver-aggregate/{aggregate}", **query, driver_id=driver_id).json["data"]
        if summary := row.get("driving_summary"):
            score = service.get(f"/driver/{driver_id}/score", **query, end_date=summary["end_date"]).json["total"]
            points = {one["behaviour"]: one["points_lost"] for one in score["behaviours"]}.get(behaviour, 0)
            miles = summary["distance_miles"]
            rows.append((-direction * points, direction * summary["fm_score"], -miles, driver_id.encode(), miles))
    return [(driver_id.decode(), miles) for *_, driver_id, miles in sorted(rows)]


@pytest.mark.parametrize("behaviour", [None, "hard_brake", "overspeeding"])
@pytest.mark.parametrize("order", ["worst", "best"])
@pytest.mark.parametrize(
    ("period", "aggregate", "start_date"), [("week", "weekly", "2026-02-02"), ("month", "monthly", "2026-02-01")]
)
def test_pages_have_who_drove_enough_in_order(fleet, period, aggregate, start_date, order, behaviour):
    expected = rank(fleet, aggregate, start_date, order, behaviour)
    query = {"period": period, "start_date": start_date, "order": order, "fleet": "f2", "limit": 4}
    query |= {"behaviour": behaviour} if behaviour else {}
    for minimum in (0, 100):
        pages = [fleet.get("/ranking", **query, min_distance_miles=minimum, page=page).json for page in (1, 2, 3, 4)]
        rows = [row for page in pages for row in page["drivers"]]
        found = [(row["driver_info"]["driver_id"], row["driving_summary"]["distance_miles"]) for row in rows]
        assert found == [row for row in expected if row[1] >= minimum]
        assert [row["rank"] for row in rows] == [*range(1, len(found) + 1)]
        assert {page["count"] for page in pages} == {len(found)}


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


@pytest.mark.parametrize(
    "text",
    ["-1", "+1", "01", "1.", ".5", "1e", "e3", "1e400", "", " 1", "٣", "NaN", "inf", "9" * 309, "0x1", "1,5", "1\n"]
    + [f"5.{'0' * 399}"],
)
def test_a_minimum_that_is_no_number_from_0_is_refused(distances, text):
    assert list(distances.errors("/ranking", **WEEK, min_distance_miles=text)) == ["min_distance_miles"]


def test_a_period_in_progress_counts_every_stored_trip(service, load):
    load(trip_of("d1", start="2026-03-18T11:59"))
    assert ranked(service, start_date="2026-03-16") == ranked(service, **MONTH) == [(1, "d1")]


def test_an_etag_changes_when_another_driver_takes_a_place(service, load):
    load(trip_of("a"), trip_of("b", brakes=1))
    first = service.get("/ranking", **WEEK, limit=1)
    headers = {"If-None-Match": first.headers["ETag"]}
    assert service.get("/ranking", **WEEK, limit=1, headers=headers).status_code == 304
    load(trip_of("c", brakes=2))
    assert service.get("/ranking", **WEEK, limit=1, headers=headers).status_code == 200
