"""GET /trips. What lists by cursor have in common is in test_events.py."""

import random

import pytest

from app.store import Store
from scripts.materialize.fleet_settings import set_settings
from tests.api.test_events import MIDNIGHTS, ZONE, read_all
from tests.factories import epoch_ms, make_event, make_event_summary, make_trip
from tests.store_contents import load as load_into

FIELDS = ["trip", "tracking_id", "fm_score", "implausible"]
AT = MIDNIGHTS["2026-03-09"]
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def trips(shared_db):
    """All visible trips as elements in detail form, oldest first; a third of them is implausible."""
    rng = random.Random(17)
    set_settings(Store.of(shared_db), "f1", time_zone=ZONE)
    trips = []
    for number in range(60):
        start = rng.choice([*MIDNIGHTS.values(), AT - 7 * DAY_MS]) + rng.choice([-1, 0, 0, 1, 3_600_000])
        trips.append(
            make_trip(
                driver_id=f"d{rng.randint(1, 3)}",
                trip_id=f"t{number}",
                trip_start_time=start,
                trip_end_time=start + rng.choice([0, 1, 3_600_000, 8 * DAY_MS]),
                distance_miles=rng.choice([2, 9.5, 10.5, 500.0]),
                event_summary=make_event_summary(hard_brake_count=rng.randint(0, 2)),
                events=[make_event(start)],
                insurance_period=rng.choice([None, 1, 2, 3]),
            )
        )
    load_into(shared_db, *trips, make_trip("2026-03-18T07:50", "d1", trip_id="hidden"))
    load_into(shared_db, make_trip("2026-03-09T08:00", "theirs", trip_id="t0"), fleet="f2")
    return sorted(trips, key=lambda trip: (trip["trip_start_time"], trip["trip_id"]))


def get_ids(elements):
    return [element["trip"]["trip_id"] for element in elements]


FILTERS = [
    ({}, lambda trip: True),
    ({"driver_id": ["d1", "d3"]}, lambda trip: trip["driver_id"] != "d2"),
    ({"min_distance_miles": 10.5}, lambda trip: trip["distance_miles"] >= 10.5),
    ({"insurance_period": "2"}, lambda trip: trip["insurance_period"] == 2),
    ({"insurance_period": "none"}, lambda trip: trip["insurance_period"] is None),
    ({"implausible": "true"}, lambda trip: trip["distance_miles"] == 500),
    ({"implausible": "false"}, lambda trip: trip["distance_miles"] != 500),
]
WINDOWS = [
    ({"start_date": "2026-03-08"}, lambda trip: trip["trip_start_time"] >= MIDNIGHTS["2026-03-08"]),
    (
        {"start_date": "2026-03-08", "end_date": "2026-03-08"},
        lambda trip: MIDNIGHTS["2026-03-08"] <= trip["trip_start_time"] < MIDNIGHTS["2026-03-09"],
    ),
    ({"at": AT}, lambda trip: AT - 7 * DAY_MS < trip["trip_start_time"] <= AT <= trip["trip_end_time"]),
]


@pytest.mark.parametrize(("query", "matches"), FILTERS, ids=[str(query) for query, _ in FILTERS])
@pytest.mark.parametrize(("window", "is_in_window"), WINDOWS, ids=[str(window) for window, _ in WINDOWS])
def test_pages_have_what_a_filter_leaves_in_each_order(shared_service, trips, window, is_in_window, query, matches):
    expected = [trip["trip_id"] for trip in trips if is_in_window(trip) and matches(trip)]
    oldest = read_all(shared_service, "/trips", "trips", **window, **query, limit=7)
    assert get_ids(oldest) == expected
    newest = read_all(shared_service, "/trips", "trips", **window, **query, limit=1, order="newest")
    assert newest == oldest[::-1]
    worst = read_all(shared_service, "/trips", "trips", **window, **query, limit=7, order="worst")
    order = [(element["fm_score"], -element["trip"]["distance_miles"], element["trip"]["trip_id"]) for element in worst]
    assert (sorted(get_ids(worst)), order) == (sorted(expected), sorted(order))


def test_an_element_has_the_trip_in_either_form_its_own_score_and_its_kinds(shared_service, trips):
    query = {"start_date": "2026-03-07", "implausible": "true", "order": "worst", "limit": 1}
    page = shared_service.get("/trips", **query).json
    assert list(page) == ["limit", "start_date", "end_date", "trips", "next_cursor"]
    (element,) = page["trips"]
    assert list(element) == FIELDS
    assert element["implausible"] == ["mean_speed"]
    detail = shared_service.get(f"/trip/trip_id/{element['trip']['trip_id']}").json["trips"][0]
    assert shared_service.get("/trips", **query, form="detail").json["trips"] == [{**element, "trip": detail}]
    assert {name: detail[name] for name in element["trip"]} == element["trip"]


def test_the_score_is_that_of_a_day_with_this_trip_alone(service, load):
    load(make_trip("2026-03-10T08:00", event_summary=make_event_summary(hard_brake_count=1)))
    (element,) = service.get("/trips?start_date=2026-03-10").json["trips"]
    day = service.get("/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1").json["data"][0]
    assert element["fm_score"] == day["driving_summary"]["fm_score"] < 100


@pytest.mark.parametrize(("form", "names"), [("detail", ["trip_id", "events"]), ("summary", ["trip_id"])])
def test_a_mask_selects_fields_of_the_form(shared_service, trips, form, names):
    headers = {"X-Fields": "trips{trip{trip_id,events}}"}
    (element,) = shared_service.get(f"/trips?start_date=2026-03-07&limit=1&form={form}", headers=headers).json["trips"]
    assert {name: list(value) for name, value in element.items()} == {"trip": names}


def test_a_page_in_detail_form_ends_before_8_mb(shared_service, trips, monkeypatch):
    query = {"start_date": "2026-03-07", "form": "detail", "limit": 50}
    whole = read_all(shared_service, "/trips", "trips", **query)
    monkeypatch.setattr("app.store.fleet_trips.MAX_PAGE_BYTES", 3_000)
    assert len(shared_service.get("/trips", **query).json["trips"]) == 2
    monkeypatch.setattr("app.store.fleet_trips.MAX_PAGE_BYTES", 1)
    assert read_all(shared_service, "/trips", "trips", **query) == whole


def test_geojson_has_the_detail_form_whatever_the_form(shared_service, trips):
    query = "start_date=2026-03-08&limit=1"
    page = shared_service.get(f"/trips?{query}", headers={"Accept": "application/geo+json"}).json
    assert list(page) == ["type", "limit", "start_date", "end_date", "next_cursor", "features"]
    assert [feature["properties"]["kind"] for feature in page["features"]] == ["trip", "event"]
    trip_id = shared_service.get(f"/trips?{query}").json["trips"][0]["trip"]["trip_id"]
    assert page["features"][0]["id"] == trip_id


INVALID = [
    ("", "start_date"),
    (f"at={AT}&start_date=2026-03-08", "at"),
    (f"at={AT}&end_date=2026-03-08", "at"),
    (f"at={epoch_ms('2026-03-18T12:01')}", "at"),
    (f"at={epoch_ms('2025-09-17T12:00')}", "at"),
    ("at=-1", "at"),
    ("start_date=2026-02-15&order=worst", "order"),
    ("start_date=2026-02-01&end_date=2026-03-04&order=worst", "order"),
    ("start_date=soon&cursor=x&implausible=1&form=x&order=best", "cursor form implausible order start_date"),
]


@pytest.mark.parametrize(("query", "names"), INVALID)
def test_an_invalid_parameter_is_named(shared_service, query, names):
    assert sorted(shared_service.errors(f"/trips?{query}")) == names.split()


def test_worst_takes_31_days(shared_service, trips):
    assert shared_service.get("/trips?start_date=2026-02-16&order=worst").status_code == 200


def test_a_list_without_an_end_stays_the_same_over_midnight(service, load, clock):
    load(*(make_trip("2026-03-17T08:00", trip_id=trip_id) for trip_id in "ab"))
    query = {"start_date": "2026-02-16", "order": "worst", "limit": 1}
    cursor = service.get("/trips", **query).json["next_cursor"]
    clock.shift(DAY_MS / 1000)
    load(make_trip("2026-03-19T01:00", trip_id="c"))
    rest = service.get("/trips", **query, cursor=cursor).json
    assert (get_ids(rest["trips"]), rest["next_cursor"]) == (["b"], None)
