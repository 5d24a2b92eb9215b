"""Following what another program writes directly to `drivers` and `trips`."""

import json

import bson
import pytest
from pymongo import MongoClient, monitoring

from app.store import Store
from app.store.indexes import VALIDATORS, make_validator
from schemas.driver import Driver
from schemas.fields import Text
from schemas.stored import StoredDriver
from scripts.ingest.change_stream import ResumeToken, save_resume_token
from scripts.materialize import drivers, trip_details
from scripts.materialize.sources import SCHEMAS
from scripts.mongodb.connection import prepare_collections
from tests.factories import make_driver, make_event, make_trip
from tests.feed_client import Client
from tests.fleet_states import FLEET, Batch, differences, write_batches
from tests.following import Following, make_source
from tests.store_contents import everything, load

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


def profiles(db):
    """Return the drivers that are served, as (fleet, driver_id)."""
    found = db.driver_periods.find({"period": "profile"}, sort=[("fleet", 1), ("driver_id", 1)])
    return [(profile["fleet"], profile["driver_id"]) for profile in found]


def details(db, *fields):
    """Return these fields of the served trips, by fleet and trip_id."""
    found = db.trip_details.find({}, sort=[("fleet", 1), ("trip_id", 1)])
    return [tuple(detail[field] for field in ("fleet", "trip_id", *fields)) for detail in found]


# Each kind of change, as it is served afterwards.


def test_an_inserted_trip_is_served_with_its_driver(mongod, following):
    mongod.trips.insert_one(make_source(make_trip(trip_id="t1", events=[make_event(1)])))
    following.catch_up()
    assert details(mongod) == [("f1", "t1")]
    assert profiles(mongod) == [("f1", "d1")]
    assert differences(mongod) == []


@pytest.mark.parametrize(
    "change",
    [{"distance_miles": 5.5}, {"driver_id": "d2"}, {"trip_start_time": 0}, {"tracking_id": "k"}],
    ids=str,
)
def test_a_changed_trip_is_served_as_it_is_now(mongod, following, change):
    load(mongod, make_trip(trip_id="t1"))
    mongod.trips.update_one({"trip_id": "t1"}, {"$set": change})
    following.catch_up()
    assert differences(mongod) == []
    assert len(details(mongod)) == len(profiles(mongod)) == 1


def test_a_deleted_trip_is_no_longer_served_and_neither_is_its_driver(mongod, following):
    load(mongod, make_trip(trip_id="t1"))
    mongod.trips.delete_one({"trip_id": "t1"})
    following.catch_up()
    assert (details(mongod), profiles(mongod), differences(mongod)) == ([], [], [])


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


def test_a_driver_may_be_inserted_changed_and_deleted(mongod, following):
    mongod.drivers.insert_one(make_source(make_driver("d1")))
    for alias in ("A", "B"):
        mongod.drivers.update_one({}, {"$set": {"alias": alias}})
        following.catch_up()
        assert f'"alias":"{alias}"' in mongod.driver_periods.find_one()["json"]
    mongod.drivers.delete_one({})
    following.catch_up()
    assert profiles(mongod) == []


def test_a_deleted_driver_with_trips_has_null_names(service, following):
    load(service.db, make_trip(), drivers=[make_driver("d1", alias="A")])
    service.db.drivers.delete_one({})
    following.catch_up()
    assert service.get("/drivers").json["drivers"] == [
        make_driver("d1", first_travel_date="2026-03-10", last_travel_date="2026-03-10")
    ]


def test_the_change_feed_reports_what_was_written_directly(service, following):
    client = Client(service)
    service.db.trips.insert_many([make_source(make_trip(trip_id=f"t{n}")) for n in range(2)])
    following.catch_up()
    assert sorted(client.sync()) == [("t0", False), ("t1", False)]
    service.db.trips.delete_one({"trip_id": "t0"})
    following.catch_up()
    assert client.sync() == [("t0", True)]


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


@pytest.fixture
def new_field(monkeypatch, mongod):
    """A nullable field that the schema of the driver gets while drivers are stored."""

    class NewDriver(Driver):
        license_state = Text(load_default=None, allow_none=True)

    class NewStoredDriver(StoredDriver, NewDriver):
        pass

    load(mongod, make_trip(), drivers=[make_driver("d1", alias="A"), make_driver("idle")])
    monkeypatch.setattr(drivers, "DRIVER", NewDriver())
    monkeypatch.setitem(SCHEMAS, "drivers", NewStoredDriver())
    monkeypatch.setitem(VALIDATORS, "drivers", make_validator(NewStoredDriver()))
    prepare_collections(Store.of(mongod))
    yield "license_state"
    monkeypatch.undo()
    prepare_collections(Store.of(mongod))


def test_drivers_stored_before_a_nullable_field_was_added_keep_their_names(mongod, new_field):
    following = Following(mongod)
    for date in (11, 12):
        # The first of them is applied by the comparison.
        mongod.trips.insert_one(make_source(make_trip(f"2026-03-{date}T08:00")))
        following.catch_up()
        driver = json.loads(mongod.driver_periods.find_one({"period": "profile", "driver_id": "d1"})["json"])
        expected = {"alias": "A", "last_travel_date": f"2026-03-{date}", new_field: None}
        assert expected.items() <= driver.items()
    assert (differences(mongod), following.value("invalid_documents_total")) == ([], 0)


# What the commands write.


def test_what_the_commands_wrote_is_not_read_again(mongod, following, mongod_uri):
    class Reads(monitoring.CommandListener):
        names = []

        def started(self, event):
            if event.command_name in ("find", "aggregate") and event.command.get("find") != "resume_tokens":
                self.names.append(event.command.get("aggregate", event.command.get("find")))

        def succeeded(self, event):
            pass

        failed = succeeded

    write_batches(Store.of(mongod), [Batch("trips", [make_trip()]), Batch("drivers", [make_driver()])])
    before = everything(mongod)
    with MongoClient(mongod_uri, event_listeners=[Reads()]) as client:
        assert Following(client[mongod.name]).catch_up() > 2
    assert Reads.names == [1]
    assert everything(mongod) == before


def test_a_second_follower_writes_nothing(mongod, following):
    another = Following(mongod)
    another.follower.follow().close()
    mongod.trips.insert_one(make_source(make_trip()))
    following.catch_up()
    writes = mongod.fleets.find_one({"_id": FLEET})["writes"]
    mongod.resume_tokens.delete_many({})
    another.catch_up()
    assert mongod.fleets.find_one({"_id": FLEET})["writes"] == writes


# What cannot be served.

INVALID = {
    "no trail": ({"$unset": {"trail_path": 1}}, "trail_path: Missing"),
    "text for a number": ({"$set": {"distance_miles": "ten"}}, "distance_miles: Must be a number."),
    "a negative distance": ({"$set": {"distance_miles": -300}}, "distance_miles: Must be greater than or equal to 0"),
    "an end before the start": ({"$set": {"trip_end_time": 0}}, "trip_end_time: Must not be before trip_start_time."),
    "no such type": ({"$set": {"events": 5}}, "events: Not a valid list."),
    "an undeclared field": ({"$set": {"canary": 1}}, "canary: Unknown field."),
    "no fleet": ({"$unset": {"fleet": 1}}, "fleet: Missing"),
    "another fleet": ({"$set": {"fleet": "f2"}}, "_id: Must be 'f2/t1'"),
    "another identifier": ({"$set": {"trip_id": "t2"}}, "_id: Must be 'f1/t2'"),
    "another type of identifier": ({"$set": {"trip_id": 5}}, "trip_id: Must be a string."),
}


@pytest.mark.parametrize(("change", "reason"), INVALID.values(), ids=INVALID)
def test_an_invalid_trip_is_left_out_and_reported(mongod, following, log, change, reason):
    load(mongod, make_trip(trip_id="t1"), make_trip(trip_id="t2"))
    mongod.trips.update_one({"trip_id": "t1"}, change, **BYPASS)
    mongod.trips.insert_one(make_source(make_trip(trip_id="t3")))
    following.catch_up()
    assert details(mongod) == [("f1", "t2"), ("f1", "t3")]
    assert following.value("invalid_documents_total") == 1
    (line,) = [line for line in log() if line["level"] == "error"]
    assert (line["event"], line["collection"], line["source_id"]) == ("document left out", "trips", "f1/t1")
    assert reason in line["reason"]


@pytest.mark.parametrize("_id", ["t1", 5, None, {"a": 1}, bson.ObjectId(bytes(12)), bson.Binary(b"f1/t1")], ids=repr)
def test_a_trip_whose_id_belongs_to_no_fleet_is_left_out_and_reported(mongod, following, log, _id):
    mongod.trips.insert_one({**make_source(make_trip(trip_id="t1")), "_id": _id}, **BYPASS)
    following.catch_up()
    mongod.resume_tokens.delete_many({})
    following.catch_up()
    assert (details(mongod), differences(mongod), following.value("invalid_documents_total")) == ([], [], 2)
    assert {line["reason"] for line in log() if line["level"] == "error"} == {
        "_id: Must be the fleet, a slash, and the trip_id."
    }


@pytest.mark.parametrize(
    "change", [{"alias": 5}, {"last_travel_date": 5}, {"first_travel_date": "2026-02-30"}], ids=str
)
def test_an_invalid_driver_counts_as_absent(mongod, following, change):
    load(mongod, make_trip(), drivers=[make_driver("d1", alias="A"), make_driver("d2")])
    mongod.drivers.update_many({}, {"$set": change}, **BYPASS)
    mongod.trips.insert_one(make_source(make_trip()))
    following.catch_up()
    assert profiles(mongod) == [("f1", "d1")]
    assert '"alias":null' in mongod.driver_periods.find_one({"period": "profile"})["json"]
    assert (following.value("invalid_documents_total"), len(details(mongod))) == (2, 2)


def test_a_corrected_document_is_served(mongod, following):
    load(mongod, make_trip(trip_id="t1"), drivers=[make_driver("d1", alias="A")])
    for name, field, value in (("trips", "distance_miles", 5.5), ("drivers", "alias", "B")):
        mongod[name].update_one({}, {"$set": {field: []}}, **BYPASS)
        following.catch_up()
        mongod[name].update_one({}, {"$set": {field: value}})
    following.catch_up()
    assert differences(mongod) == []


def test_a_trip_past_the_maximum_of_a_day_is_left_out(mongod, following, monkeypatch):
    monkeypatch.setattr(trip_details, "MAX_TRIPS_A_DAY", 3)
    mongod.trips.insert_many([make_source(make_trip(driver_id=driver)) for driver in ["d1"] * 5 + ["d2"] * 3])
    following.catch_up()
    assert [sum(row[2] == driver for row in details(mongod, "driver_id")) for driver in ("d1", "d2")] == [3, 3]
    assert following.value("invalid_documents_total") == 2


def test_a_trip_too_large_for_its_read_model_is_left_out(mongod, following):
    point = {"timestamp": 0, "latitude": 0.12345678901234567, "longitude": 1e-300, "course": 1.2345678901234567e-300}
    mongod.trips.insert_many([make_source(make_trip(trip_id=name)) for name in ("t1", "t2")])
    mongod.trips.update_one({"trip_id": "t1"}, {"$set": {"trail_path": [point] * 180_000}})
    following.catch_up()
    assert details(mongod) == [("f1", "t2")]
    assert following.value("invalid_documents_total") == 1


# The resume token of the stream.


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


def test_the_comparison_repairs_damaged_read_models(mongod, following):
    load(mongod, *(make_trip(trip_id=f"t{n}", driver_id=f"d{n}") for n in range(4)))
    mongod.trip_details.update_one({"trip_id": "t1"}, {"$set": {"totals.distance_miles": 1}})
    mongod.driver_periods.delete_one({"period": "week", "driver_id": "d2"})
    mongod.trip_changes.delete_one({"trip_id": "t3"})
    mongod.resume_tokens.delete_many({})
    following.catch_up()
    assert differences(mongod) == []
    assert following.value("comparisons_total") == 2


@pytest.mark.parametrize("name", ["drivers", "trips"])
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
def test_a_resume_token_that_cannot_be_used_is_lost(mongod, token):
    save_resume_token(Store.of(mongod), ResumeToken(bson.encode(token), 0))
    mongod.trips.insert_one(make_source(make_trip()))
    following = Following(mongod)
    following.catch_up()
    assert following.value("comparisons_total") == 1
    assert following.value("repairs_total") > 0
    assert differences(mongod) == []


def test_the_lag_is_the_time_since_all_changes_were_applied(clock, following):
    following.catch_up()
    clock.shift(5)
    assert following.value("lag_seconds") == 5
