"""Following what another program writes to `drivers` and `trips`: what test_any_following.py does not reach."""

import bson
import pytest

from app.store import SOURCES, Store
from scripts.ingest.resume_tokens import FOLLOW, ResumeToken, save_resume_token
from scripts.mongodb.validators import VALIDATORS
from tests.factories import make_driver, make_trip
from tests.feed_client import Client
from tests.fleet_states import FLEET, differences
from tests.following import Following, make_source
from tests.store_contents import load

pytestmark = pytest.mark.usefixtures("short_batches")

BYPASS = {"bypass_document_validation": True}


@pytest.fixture
def db(mongod):
    """A real server: mongomock has no change streams."""
    return mongod


@pytest.fixture
def following(mongod):
    """A follower that has compared everything, and has read what was written before."""
    following = Following(mongod)
    following.catch_up()
    return following


def details(db, *fields):
    """Return these fields of the served trips, by fleet and trip_id."""
    found = db.trip_details.find({}, sort=[("fleet", 1), ("trip_id", 1)])
    return [tuple(detail[field] for field in ("fleet", "trip_id", *fields)) for detail in found]


def test_the_change_feed_reports_what_was_written_directly(service, following):
    client = Client(service)
    service.db.trips.insert_many([make_source(make_trip(trip_id=f"t{n}")) for n in range(2)])
    following.catch_up()
    assert sorted(client.sync()) == [("t0", False), ("t1", False)]
    service.db.trips.delete_one({"trip_id": "t0"})
    following.catch_up()
    assert client.sync() == [("t0", True)]


def test_what_another_program_writes_in_a_transaction_is_served(mongod, following):
    load(mongod, make_trip(trip_id="imported"))
    with mongod.client.start_session() as session, session.start_transaction():
        mongod.trips.insert_one(make_source(make_trip(trip_id="t1")), session=session)
    following.catch_up()
    assert details(mongod) == [("f1", "imported"), ("f1", "t1")]


def test_a_change_without_an_effect_leaves_no_trace_of_an_erased_fleet(mongod, following, command):
    load(mongod, make_trip(trip_id="t1"))
    mongod.trips.delete_one({"trip_id": "t1"})
    assert command("fleets", "erase", "--fleet", "f1", "--yes").exit_code == 0
    following.catch_up()
    assert mongod.fleets.count_documents({}) == 0


def test_a_trip_past_the_maximum_of_a_day_is_left_out(mongod, following, monkeypatch):
    monkeypatch.setattr("scripts.materialize.trips.MAX_TRIPS_A_DAY", 3)
    mongod.trips.insert_many([make_source(make_trip(driver_id=driver)) for driver in ["d1"] * 5 + ["d2"] * 3])
    following.catch_up()
    assert [sum(row[2] == driver for row in details(mongod, "driver_id")) for driver in ("d1", "d2")] == [3, 3]
    assert following.value("invalid_documents_total") == 2


# The resume token.


def test_a_follower_resumes_where_another_one_stopped(mongod, following):
    load(mongod, make_trip())
    mongod.trips.insert_one(make_source(make_trip()))
    another = Following(mongod)
    another.catch_up()
    assert another.value("comparisons_total") == 0
    assert differences(mongod) == []


def test_the_first_start_compares_everything(mongod, log):
    load(mongod, make_trip(trip_id="t1"), make_trip(trip_id="t2"), drivers=[make_driver("d3")], fleet="f2")
    mongod.trips.insert_one(make_source(make_trip(trip_id="t3")))
    mongod.trips.delete_one({"trip_id": "t2"})
    mongod.drivers.update_one({}, {"$set": {"alias": "A"}})
    mongod.trips.insert_one(make_source(make_trip(trip_id="bad"), canary=1), **BYPASS)
    following = Following(mongod)
    following.catch_up()
    assert details(mongod) == [("f1", "t3"), ("f2", "t1")]
    assert '"alias":"A"' in mongod.driver_periods.find_one({"period": "profile", "driver_id": "d3"})["json"]
    assert [line["event"] for line in log() if line["level"] == "error"] == ["document left out"]


@pytest.mark.parametrize("name", SOURCES)
def test_a_dropped_collection_is_created_again_with_its_validator(mongod, following, log, name):
    load(mongod, make_trip(), drivers=[make_driver("d2")])
    mongod[name].drop()
    mongod.trips.insert_one(make_source(make_trip(trip_id="t1", driver_id="d1")))
    for _ in range(2):
        following.catch_up()
    assert ("f1", "t1") in details(mongod)
    assert (mongod[name].options()["validator"], differences(mongod)) == (VALIDATORS[name], [])
    assert [line["event"] for line in log() if line["level"] == "error"] == ["resume token lost"]


@pytest.mark.parametrize("token", [{"_data": "82"}, {"_data": "no token"}, {}, {"x": 1}], ids=str)
def test_where_a_resume_token_cannot_be_used_everything_is_compared_and_repaired(mongod, token):
    load(mongod, make_trip())
    save_resume_token(Store.of(mongod), FOLLOW, ResumeToken(bson.encode(token), 0))
    mongod.trips.insert_one(make_source(make_trip()))
    mongod.driver_periods.delete_one({"period": "week"})
    following = Following(mongod)
    following.catch_up()
    assert following.value("comparisons_total") == 1
    assert following.value("repairs_total") > 0
    assert differences(mongod) == []


def test_the_lag_is_the_time_since_all_changes_were_applied(clock, following):
    for wait_seconds in (60, 5):
        following.catch_up()
        assert following.value("lag_seconds") == 0
        clock.shift(wait_seconds)
        assert following.value("lag_seconds") == wait_seconds


def test_a_corrected_document_is_served(mongod, following):
    load(mongod, make_trip(trip_id="t1"), drivers=[make_driver("d1", alias="A")])
    for name, field, value in (("trips", "distance_miles", 5.5), ("drivers", "alias", "B")):
        mongod[name].update_one({}, {"$set": {field: []}}, **BYPASS)
        following.catch_up()
        mongod[name].update_one({}, {"$set": {field: value}})
    following.catch_up()
    assert differences(mongod) == []


@pytest.mark.parametrize("compares", [True, False])
def test_a_nullable_field_that_a_stored_driver_lacks_counts_as_null(service, compares):
    following = Following(service.db)
    if not compares:
        following.catch_up()
    service.db.drivers.insert_one({"_id": "f1/d1", "fleet": FLEET, "driver_id": "d1", "alias": "A"}, **BYPASS)
    service.db.trips.insert_one(make_source(make_trip()))
    following.catch_up()
    travelled = dict.fromkeys(("first_travel_date", "last_travel_date"), "2026-03-10")
    assert service.get("/drivers").json["drivers"] == [make_driver("d1", alias="A", **travelled)]
    assert (differences(service.db), following.value("invalid_documents_total")) == ([], 0)


def test_a_trip_is_found_by_another_tracking_id(mongod, following):
    load(mongod, make_trip(trip_id="t1", tracking_id="k"))
    mongod.trips.update_one({}, {"$set": {"tracking_id": "l"}})
    following.catch_up()
    assert (mongod.trip_details.find_one()["tracking_id"], differences(mongod)) == ("l", [])


def test_integers_of_any_size_have_the_same_sum(mongod, following):
    miles = [0.9327299858461501, 0.08254685723487265, 4, 19.581196, 20]
    trips = [make_trip(f"2026-03-10T{8 + n:02}:00", trip_id=f"t{n}", highway_miles=m) for n, m in enumerate(miles)]
    mongod.trips.insert_many(
        make_source(t, highway_miles=bson.Int64(20) if t["trip_id"] == "t4" else t["highway_miles"]) for t in trips
    )
    load(mongod, *trips, fleet="imported")
    following.catch_up()
    days = mongod.driver_periods.find({"period": "day"}, {"_id": 0, "json": 1})
    assert len({day["json"] for day in days}) == 1
