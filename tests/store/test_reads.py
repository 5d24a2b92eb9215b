"""What the store hands out is what the schemas declare, and in their order."""

import json

import pytest

from schemas.page import (
    DailyAggregates,
    DriverPage,
    Health,
    MonthlyAggregates,
    RankingPage,
    TripDetailPage,
    TripSummaryPage,
    WeeklyAggregates,
)
from schemas.score import DriverScore
from tests.factories import make_driver, make_event, make_trip
from tests.store_contents import put_canaries


@pytest.fixture
def canaries(db, service, load):
    """A store whose documents all contain undeclared fields, written past the validators."""
    load(
        make_trip("2026-03-09T08:00", trip_id="t1", tracking_id="k", events=[make_event(1_773_100_000_000)]),
        drivers=[make_driver("d1", email="a@example.com")],
    )
    put_canaries(db)
    return service


READS = {
    "/drivers": DriverPage,
    "/driver/d1/trips?start_date=2026-03-01": TripSummaryPage,
    "/trip/trip_id/t1": TripDetailPage,
    "/trip/tracking_id/k": TripDetailPage,
    "/driver-aggregate/daily?start_date=2026-03-09&driver_id=d1": DailyAggregates,
    "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1": WeeklyAggregates,
    "/driver-aggregate/monthly?start_date=2026-03-01&driver_id=d1": MonthlyAggregates,
    "/driver/d1/score?start_date=2026-03-09": DriverScore,
    "/ranking?period=week&start_date=2026-03-09": RankingPage,
    "/ranking?period=month&start_date=2026-03-01&min_distance_miles=1": RankingPage,
    "/healthz": Health,
}


@pytest.mark.parametrize("path", READS)
def test_nothing_that_is_not_declared_leaves_the_store(canaries, path):
    response = canaries.get(path)
    assert response.status_code == 200
    assert "canary" not in response.text


@pytest.mark.parametrize(("path", "schema"), READS.items())
def test_what_is_served_equals_the_dump_of_its_schema(canaries, path, schema):
    body = canaries.get(path).json
    assert [] not in body.values()
    assert json.dumps(body) == json.dumps(schema().dump(body))
