"""What is committed between the commands of a request does not show in its response."""

import itertools
import random

import pytest
from pymongo import MongoClient

from app.store import Store
from tests.command_listeners import Before
from tests.conftest import NO_LIMITS, Service
from tests.factories import make_driver, make_trip
from tests.fleet_states import Batch, write_batches
from tests.operations import CHANGES, OF_DATA, make_target

MASK = (
    "count,drivers{driver_id,driver_info},trips{trip_id,distance_miles},data{driver_info,driving_summary{trip_count}}"
)
MASK += ",total{fm_score,trip_count},series{start_date}"
PATHS = [
    *(make_target(path, {"driver_id": "d0", "filter_value": "t0"}) for path in (*OF_DATA, CHANGES)),
    "/drivers?limit=2",
    "/driver/d0/trips?start_date=2026-03-02&limit=3&page=2",
    "/trip/tracking_id/k0",
    "/trip/tracking_id/k0?page=2",
    "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d0&driver_id=d1",
    "/drivers?search=d&limit=2&page=2",
    "/driver-aggregate/window?start_date=2026-03-09&limit=2",
    "/driver-aggregate/window?start_date=2026-03-09&driver_id=d0&driver_id=d1",
    "/driver-aggregate/window?start_date=2026-03-09&group=North",
    "/ranking?period=month&start_date=2026-03-01&group=North",
    "/drivers?group=North&search=d",
    "/trips?start_date=2026-03-02&group=North&order=worst",
    "/events?start_date=2026-03-02&group=North",
    "/driver/d0/score?start_date=2026-03-09&end_date=2026-03-11&interval=day",
    "/ranking?period=month&start_date=2026-03-01&order=best&limit=2&page=2",
]


def write_state(db, number):
    """Write one of many states: other names, and trips of other drivers, days, lengths and tracking ids."""
    rng = random.Random(number)
    trips = [
        make_trip(
            # Trips of March 18 are not visible yet.
            f"2026-03-{rng.choice((9, 9, 10, 11, 16, 18)):02}T09:00",
            f"d{rng.choice((0, 0, 0, 1, 2, 3))}",
            trip_id=f"t{n}",
            tracking_id=rng.choice(("k0", "k0", "k1")),
            distance_miles=rng.random(),
        )
        for n in range(16)
    ]
    groups = [["North"] if n == 0 or rng.random() < 0.5 else [] for n in range(4)]
    drivers = [make_driver(f"d{n}", alias=str(number), groups=groups[n]) for n in range(4)]
    write_batches(Store.of(db), [Batch("drivers", drivers), Batch("trips", trips)])


def reads_data(event):
    """Return whether a command is a read, but for that of the key."""
    return event.command_name in ("find", "aggregate") and "keys" not in event.command.values()


@pytest.fixture
def interrupted(mongod, mongod_uri, clock, long_timeout):
    """What writes another state before a read, and a service on the first of the states."""
    states = itertools.count()
    interrupter = Before(-1, lambda: write_state(mongod, next(states)), reads_data)
    interrupter.function()
    with MongoClient(mongod_uri, event_listeners=[interrupter]) as client:
        yield interrupter, Service(client[mongod.name], **NO_LIMITS, log_level="ERROR")


@pytest.mark.parametrize(
    "mask", [pytest.param("*", id="whole"), pytest.param(MASK, id="masked", marks=pytest.mark.large)]
)
def test_what_is_committed_between_the_commands_of_a_request_does_not_show(interrupted, mask):
    (interrupter, service), hits = interrupted, 0

    def get(path):
        response = service.get(path, headers={"X-Fields": mask})
        return response.status_code, response.headers.get("ETag"), response.data

    for path in PATHS:
        for command in itertools.count(1):
            interrupter.left = -1
            before = get(path)
            interrupter.left = command
            assert get(path) == before, path
            if interrupter.left >= 0:
                break
            hits += 1
    assert hits > 10
