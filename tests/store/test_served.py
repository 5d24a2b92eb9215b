"""What is served as text is what drivers and trips say."""

import itertools

import orjson
import pytest
from app.store.served import COUNT
from scripts.verify import verify_fleet

from schemas.driver import Driver
from schemas.trip import TripDetail, TripSummary
from scripts.rollups import known_days
from scripts.store import Writer
from tests.factories import epoch_ms, make_driver, make_event, make_trip

SINCE = "start_date=2026-03-01"
AGGREGATES = "driver_id=d1&driver_id=%C3%BC%2F2&driver_id=idle"


def busy_fleet():
    """Yield trips: a day with more than two buckets of them, and numbers, times and names of every kind."""
    for n in range(230):
        yield make_trip(
            f"2026-03-12T{n // 12:02}:{n % 12 * 5:02}",
            trip_id=f"many-{n % 7}-{n}",
            distance_miles=n / 7,
            tracking_id="many",
        )
    numbers = (0, 5, 5.0, -0.0 + 0, 1e-7, 1e22, 2**63 - 1)
    for n, number in enumerate(numbers):
        yield make_trip(f"2026-03-1{n}T07:00", "ü/2", trip_id=f'n{n} ü\\"', highway_miles=number, tracking_id="shared")
    # Ends within the last four hours, and in the future.
    yield make_trip("2026-03-18T09:00", insurance_period=2)
    yield make_trip("2026-03-17T09:00", trip_end_time=epoch_ms("2026-04-01T00:00"), tracking_id="shared")
    yield make_trip("2026-03-17T10:00", events=[make_event(epoch_ms("2026-03-17T10:01"))], trail_path=[])


PATHS = [
    *(f"/drivers?limit={limit}&page={page}" for limit in (1, 2, 3, 100) for page in (1, 2, 3, 9)),
    *(
        f"/driver/{driver}/trips?start_date=2026-03-{day}&limit={limit}&page={page}"
        for driver, day, limit, page in itertools.product(
            ("d1", "%C3%BC%2F2", "idle"), ("01", 12, 17), (7, 100), (1, 2, 3, 40)
        )
    ),
    *(f"/trip/tracking_id/shared?page={page}" for page in (1, 2, 3)),
    *(f"/trip/tracking_id/many?page={page}" for page in (1, 2, 45, 46, 47, 999)),
    "/trip/trip_id/many-0-0",
    "/trip/trip_id/nope",
    f"/driver-aggregate/daily?start_date=2026-03-12&{AGGREGATES}",
    f"/driver-aggregate/weekly?start_date=2026-03-09&{AGGREGATES}",
    f"/driver-aggregate/weekly?start_date=2026-03-16&{AGGREGATES}",
]


@pytest.fixture
def fleet(service, load, db):
    """A fleet that has everything."""
    load(*busy_fleet(), drivers=[make_driver("idle"), make_driver("ü/2", alias='=1 "ü"')])
    return db


def mark_all_stale(db):
    db.served_spans.update_many({"span": ""}, {"$set": {"stale": True}})
    for name in ("served_drivers", "served_trackings"):
        db[name].update_many({}, {"$set": {"stale": True}})
    db.trips.update_many({}, {"$unset": {"text": ""}})


def test_text_and_documents_give_the_same_answers_byte_by_byte(service, fleet):
    served = [service.get(path).data for path in PATHS]
    mark_all_stale(fleet)
    assert [service.get(path).data for path in PATHS] == served


def test_masked_answers_are_the_same_whether_places_are_known_or_counted(service, fleet):
    masks = ["count,next_page,trips{trip_id},drivers{alias}", "*", "next_page", "trips{nope},data{driver_info{alias}}"]
    asked = [(path, {"X-Fields": mask}) for path in PATHS for mask in masks]
    served = [service.get(path, headers=headers).data for path, headers in asked]
    mark_all_stale(fleet)
    assert [service.get(path, headers=headers).data for path, headers in asked] == served


def test_what_was_thrown_away_is_answered_from_the_documents(service, fleet):
    served = [service.get(path).data for path in PATHS]
    for name in ("served_spans", "served_drivers", "served_trackings"):
        fleet[name].delete_many({})
    assert [service.get(path).data for path in PATHS] == served


def test_what_was_imported_before_there_was_text_is_served(service, fleet):
    served = [service.get(path).data for path in PATHS]
    options = {"bypass_document_validation": True}
    fleet.trips.update_many({}, {"$unset": {"text": "", "version": ""}}, **options)
    for name in ("served_spans", "served_drivers", "served_trackings"):
        fleet[name].delete_many({})
    assert [service.get(path).data for path in PATHS] == served
    assert service.get("/trip/trip_id/many-0-0").headers["ETag"]


def test_text_is_what_the_schemas_dump(fleet):
    for trip in fleet.trips.find({}):
        assert orjson.loads(trip["text"]) == TripDetail().dump(trip)
        assert trip["text"] == orjson.dumps(TripDetail().dump(trip))
        day = fleet.served_spans.find({"driver_id": trip["driver_id"], "span": {"$regex": f"^{trip['day']['date']}"}})
        assert orjson.dumps(TripSummary().dump(trip)) in [row for bucket in day for row in bucket.get("rows", ())]
    rows = [row for page in fleet.served_drivers.find({"number": {"$gt": COUNT}}) for row in page["rows"]]
    assert rows == [orjson.dumps(Driver().dump(driver)) for driver in fleet.drivers.find({}).sort("driver_id")]


def test_a_bucket_that_was_written_since_it_was_counted_is_not_served(service, fleet):
    path = f"/driver/d1/trips?{SINCE}&limit=2"
    before = service.get(path).data
    fleet.served_spans.update_many({"span": "2026-03-12"}, {"$set": {"version": b"another", "rows": []}})
    assert service.get(path).data == before


def test_what_is_loaded_verifies(fleet):
    with Writer(fleet, "f1") as writer:
        assert verify_fleet(fleet, "f1", writer, [known_days(fleet, "f1")]) == []
