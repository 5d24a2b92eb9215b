"""A fleet with a time zone of its own: its dates, and which day it is there."""

import pytest

from app.middleware.auth import CACHE_TTL_SECONDS
from app.store import Store
from scripts.materialize.fleet_settings import set_settings
from tests.factories import make_trip
from tests.store_contents import load as load_documents

# In Denver, Friday evening the 13th, and the last minute before and the first of Saturday.
TRIPS = [
    make_trip("2026-03-14T02:00", trip_id="evening", distance_miles=1),
    make_trip("2026-03-14T05:59", trip_id="before midnight", distance_miles=2),
    make_trip("2026-03-14T06:00", trip_id="after midnight", distance_miles=4),
]


@pytest.fixture
def denver(service, clock):
    """The service at 21:00 in Denver on Tuesday the 17th: f1 is there, and f2 is in UTC, with the same trips."""
    set_settings(Store.of(service.db), "f1", time_zone="America/Denver")
    for fleet in ("f1", "f2"):
        load_documents(service.db, *TRIPS, fleet=fleet)
    clock.move_to("2026-03-18T03:00Z")
    return service


def miles(response):
    (element,) = response.json["data"]
    return element.get("driving_summary", {}).get("distance_miles")


@pytest.mark.parametrize(("fleet", "friday", "saturday"), [("f1", 3, 4), ("f2", None, 7)])
def test_days_are_local(denver, fleet, friday, saturday):
    def get(path, **query):
        response = denver.get(path, fleet=fleet, **query)
        assert response.status_code == 200, response.text
        return response

    for date, expected in (("2026-03-13", friday), ("2026-03-14", saturday)):
        query = {"start_date": date, "driver_id": "d1"}
        assert miles(get("/driver-aggregate/daily", **query)) == expected
        assert miles(get("/driver-aggregate/window", end_date=date, **query)) == expected
        trips = get("/driver/d1/trips", start_date=date, end_date=date).json["trips"]
        assert sum(trip["distance_miles"] for trip in trips) == (expected or 0)
        score = get("/driver/d1/score", start_date=date, end_date=date, interval="day").json["total"]
        assert (score or {}).get("distance_miles") == expected
    series = get("/fleet-aggregate", start_date="2026-03-13", interval="day").json["series"]
    assert [one["fleet_summary"]["distance_miles"] for one in series] == list(filter(None, [friday, saturday]))


def test_today_is_local_with_each_rule_on_dates(denver):
    for fleet, yesterday, today in (("f1", "2026-03-16", "2026-03-17"), ("f2", "2026-03-17", "2026-03-18")):
        first = f"2025-09-{today[-2:]}"
        assert denver.get("/fleet", fleet=fleet).json["today"] == today
        # Each fleet has its own answer to the same query.
        for start, allowed in (("2025-09-17", first == "2025-09-17"), ("2026-03-17", yesterday == "2026-03-17")):
            response = denver.get("/driver-aggregate/daily", fleet=fleet, start_date=start, driver_id="d1")
            assert response.status_code == (200 if allowed else 400)
            assert allowed or f"Must be from {first} to {yesterday}." in response.text
        errors = denver.errors("/driver/d1/trips", fleet=fleet, start_date=yesterday, end_date="2026-03-19")
        assert errors == {"end_date": [f"Must be from start_date to {today}."]}
        query = {"start_date": "2026-03-01", "driver_id": "d1"}
        assert denver.get("/driver-aggregate/window", fleet=fleet, **query).json["end_date"] == yesterday
        assert denver.get("/fleet-aggregate", fleet=fleet, start_date="2026-03-09").json["end_date"] == today
        message = denver.get("/report", fleet=fleet, report_time="2026-03-18T00:00:00").json["message"]
        assert message.startswith("There is no report") is (today == "2026-03-17")


def test_a_new_time_zone_takes_hold_with_the_cache_of_keys(denver, clock):
    tag = denver.get("/fleet").headers["ETag"]
    set_settings(Store.of(denver.db), "f1", time_zone="Asia/Kolkata")
    clock.shift(CACHE_TTL_SECONDS)
    response = denver.get("/fleet", headers={"If-None-Match": tag})
    assert (response.status_code, response.json["time_zone"], response.json["today"]) == (
        200,
        "Asia/Kolkata",
        "2026-03-18",
    )


def test_a_time_zone_that_the_host_does_not_know_fails_only_its_fleet(denver, clock):
    denver.db.fleets.update_one({"_id": "f1"}, {"$set": {"time_zone": "Mars/Base"}})
    clock.shift(CACHE_TTL_SECONDS)
    assert (denver.get("/fleet").status_code, denver.get("/fleet", fleet="f2").status_code) == (500, 200)
