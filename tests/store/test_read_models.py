"""Responses agree with the sources for any sources."""

import json

import pytest

from schemas.trip import TripSummary
from tests.factories import epoch_ms, make_driver, make_event, make_trip
from tests.store_contents import load

VISIBLE_UNTIL = epoch_ms("2026-03-18T08:00")
NUMBERS = (0, 5, 5.0, 1e-7, 1e22, 2**63 - 1)


def make_trips():
    """Yield trips: many on a day, two at each time, numbers and names of every kind, and some that are not visible."""
    for n in range(60):
        start = f"2026-03-12T{n // 12:02}:{n % 12 // 2 * 10:02}"
        yield make_trip(start, trip_id=f"many-{n % 7}-{n}", distance_miles=n / 7, tracking_id="many")
    for n, number in enumerate(NUMBERS):
        yield make_trip(f"2026-03-1{n}T07:00", "ü/2", trip_id=f'n{n} ü\\"', highway_miles=number, tracking_id="shared")
    for n in range(5):
        end = epoch_ms("2026-03-18T07:58") + n * 60_000
        yield make_trip(f"2026-03-{13 + n}T09:00", trip_id=f"late{n}", trip_end_time=end, tracking_id="shared")
    yield make_trip("2026-03-18T09:00", trip_id="today", insurance_period=2, tracking_id="many")
    yield make_trip("2026-03-17T10:00", trip_id="e", events=[make_event(epoch_ms("2026-03-17T10:01"))], trail_path=[])


TRIPS = list(make_trips())
DRIVERS = [make_driver("idle"), make_driver("ü/2", alias='=1 "ü"')]


@pytest.fixture(scope="module")
def fleet(shared_service):
    """The service, with that fleet."""
    load(shared_service.db, *TRIPS, drivers=DRIVERS)
    return shared_service


def visible(**values):
    """Return the visible trips with these values, oldest first."""
    result = [trip for trip in TRIPS if values.items() <= trip.items() and trip["trip_end_time"] <= VISIBLE_UNTIL]
    return sorted(result, key=lambda trip: (trip["trip_start_time"], trip["trip_id"]))


def pages(service, path, limit, name):
    """Return the lists of the pages of a path, up to an empty one, and the counts that they give."""
    result = [service.get(f"{path}page={page}").json for page in range(1, 100 // limit + 2)]
    return [page[name] for page in result], {page["count"] for page in result}


def sliced(records, limit):
    return [records[first : first + limit] for first in range(0, (100 // limit + 1) * limit, limit)]


@pytest.mark.parametrize("limit", [3, 100])
@pytest.mark.parametrize(("date", "last"), [("01", 31), ("14", 31), ("01", 12), ("13", 14)])
@pytest.mark.parametrize("driver_id", ["d1", "ü/2", "idle"])
def test_pages_of_a_driver_s_trips_are_slices_of_them_all(fleet, driver_id, date, last, limit):
    start, end = epoch_ms(f"2026-03-{date}T00:00"), epoch_ms(f"2026-03-{last}T23:59:59.999")
    expected = [trip for trip in visible(driver_id=driver_id) if start <= trip["trip_start_time"] <= end]
    path = f"/driver/{driver_id.replace('/', '%2F')}/trips?start_date=2026-03-{date}&limit={limit}&"
    path += f"end_date=2026-03-{last}&" if last < 31 else ""
    result, counts = pages(fleet, path, limit, "trips")
    assert json.dumps(result) == json.dumps(sliced([TripSummary().dump(trip) for trip in expected], limit))
    assert counts == {len(expected)}


@pytest.mark.parametrize("tracking_id", ["many", "shared", "nothing"])
def test_pages_of_trips_that_share_an_id_are_slices_of_them_all(fleet, tracking_id):
    expected = [trip["trip_id"] for trip in visible(tracking_id=tracking_id)]
    result, counts = pages(fleet, f"/trip/tracking_id/{tracking_id}?", 5, "trips")
    assert [[trip["trip_id"] for trip in page] for page in result] == sliced(expected, 5)
    assert counts == {len(expected)}


def test_a_driver_is_there_as_long_as_imported_or_with_trips(service):
    load(service.db, *TRIPS, drivers=DRIVERS)
    load(service.db, *({**trip, "driver_id": "idle"} for trip in TRIPS if trip["driver_id"] != "idle"))
    assert [driver["driver_id"] for driver in service.get("/drivers").json["drivers"]] == ["idle", "ü/2"]
    assert service.get("/driver/d1/trips?start_date=2026-03-01").status_code == 404
