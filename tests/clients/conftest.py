"""A fleet behind a live service."""

import datetime
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from app.store import Store
from scripts.demo.fleet import make_drivers
from scripts.reports.build import build_report, find_current_windows
from tests.factories import days_ago, make_event_summary, make_speeding, make_trip
from tests.service_process import run_service
from tests.store_contents import issue_key, load

# One a day, the last of them six days ago: a week that begins 7 to 13 days ago holds some, whatever the day is.
TRIPS, LAST_TRIP_DAYS_AGO = 11, 6


@pytest.fixture(scope="session")
def live(mongod_uri, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """A live service: its `url`, its `db`, and a `key` of a fleet with a report for this week's Monday.

    The fleet has the drivers of the demonstration fleet, of whom the first drove 12.5 miles on 11 days, and the fourth
    a round of six trips under one tracking_id.
    """
    # Nobody reads the log, and the service waits while the pipe of its log is full.
    with run_service(mongod_uri, tmp_path_factory.mktemp("live"), "clients", LOG_LEVEL="WARNING") as (process, db):
        drivers = make_drivers(datetime.datetime.now(datetime.UTC).date())
        trips = [_make_trip(number) for number in range(TRIPS)]
        round_trips = [_make_round_trip(number) for number in range(1, 7)]
        load(db, *trips, *round_trips, drivers=drivers, fleet="demo")
        for window in find_current_windows(store := Store.of(db), "demo"):
            build_report(store, "demo", window)
        yield SimpleNamespace(url=f"http://{process.bind}", db=db, key=issue_key(db, "demo"))


def _make_trip(days_before_the_last: int) -> dict[str, Any]:
    trip_id = f"demo-01-{54 - days_before_the_last}-1"
    trip = make_trip(
        days_ago(LAST_TRIP_DAYS_AGO + days_before_the_last), "demo-01", trip_id=trip_id, distance_miles=12.5
    )
    phone_use = {"phone_use_count": 1, "phone_use_time_seconds": 36}
    summary = make_event_summary(**phone_use, overspeeding_count=1, overspeeding_time_seconds=90)
    return {**trip, "event_summary": summary, "events": [make_speeding(trip["trip_start_time"], 52.0, 35.0, 55.5)]}


def _make_round_trip(number: int) -> dict[str, Any]:
    start = days_ago(LAST_TRIP_DAYS_AGO, f"{8 + number:02}:00")
    return make_trip(start, "demo-04", trip_id=f"demo-04-54-{number}", tracking_id="round-04-54")
