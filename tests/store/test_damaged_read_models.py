"""Fields of read models that another program removes, adds or changes: `verify` finds them, `rebuild` repairs them."""

import contextlib
import itertools

import bson
import pytest
from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError, WriteError

from app.store import READ_MODELS, Store
from schemas.periods import PERIODS
from scripts.materialize.read_models import IDENTITY_FIELDS
from scripts.materialize.rebuild_and_verify import discard_other_formats, rebuild_fleet, verify_fleet
from scripts.materialize.unidentified import find_of_no_fleet
from scripts.materialize.versions import is_same
from scripts.mongodb.collections import prepare_collections
from tests.factories import make_driver, make_trip
from tests.fleet_states import differences
from tests.store_contents import HISTORY, load
from tests.whole_fleet import write_whole_fleets

# The kinds of documents: the collection, and what its documents match.
KINDS = {
    "details": ("trip_details", {}),
    "events": ("trip_events", {}),
    "entries": ("trip_changes", {"deleted_at": {"$exists": False}}),
    "tombstones": ("trip_changes", {"deleted_at": {"$exists": True}}),
    **{period: ("driver_periods", {"period": period}) for period in (*PERIODS, "profile")},
    "sums": ("fleet_periods", {"period": {"$in": PERIODS}}),
    "counts": ("fleet_periods", {"period": "profile"}),
    "blocks": ("fleet_drivers", {"offset": {"$gte": 0}}),
    "heads": ("fleet_drivers", {"offset": -1}),
}
ABSENT = object()
# What another document may have there.
OTHERS = {"fleet": ["f2"], "period": ["day", "week", "profile"], "start_date": ["2026-03-16"], "driver_id": ["idle"]}


def find_damages(name, value):
    """Return what may take the place of a value: nothing, null, an array with it, another type, another value."""
    match value:
        case bool():
            others = [not value, int(value)]
        case int():
            others = [value + 1, float(value), str(value)]
        case float():
            others = [value + 1, -value - 1, str(value)]
        case str():
            others = [f"{value}x", "", 5, {"x": value}]
        case list():
            others = [[*value, "x"], {}, "x", value[1:] or ["x"]]
        case dict():
            others = [{**value, "x": 1}, [], "x", dict(itertools.islice(value.items(), 1, None))]
        case _:
            others = [5, "x"]
    damages = [ABSENT, None, *others, *OTHERS.get(name, []), *([] if name == "_id" else [[value]])]
    return [damage for damage in damages if not is_same(damage, value)]


@pytest.fixture(scope="module")
def whole(mongod_uri):
    """A store with every kind of document, in a database of its own, and its read models."""
    with MongoClient(mongod_uri) as client, pytest.MonkeyPatch.context() as patch:
        # The more documents of a kind there are, the fewer rounds it takes to damage them.
        patch.setattr("scripts.materialize.drivers.BLOCK_SIZE", 1)
        db = client["damaged"]
        prepare_collections(Store.of(db))
        write_whole_fleets(db)
        yield db, {name: list(db[name].find()) for name in READ_MODELS}
        client.drop_database("damaged")


@pytest.fixture
def written(whole):
    """The store."""
    db, documents = whole
    for name in READ_MODELS:
        db[name].delete_many({})
        db[name].insert_many(documents[name])
    return db


def contents_of(db):
    """Return the read models, each with its fields in order, without what is not the same after a rebuild."""
    left_out = {name: {**HISTORY, **({"_id": 0} if name[:5] != "trip_" else {})} for name in READ_MODELS}
    return {
        name: sorted(
            str(in_order(document)) for document in db[name].find({"deleted_at": {"$exists": False}}, left_out[name])
        )
        for name in READ_MODELS
    }


def in_order(value):
    """Return a value with the fields of each object in order, and integers of one type."""
    if isinstance(value, dict):
        return [(name, in_order(value[name])) for name in sorted(value)]
    if isinstance(value, list):
        return [in_order(item) for item in value]
    return int(value) if type(value) is bson.Int64 else value


def verify(db, *fleets):
    """Return what `rollups verify` finds."""
    store = Store.of(db)
    lines = [line for fleet in fleets for outcome in verify_fleet(store, fleet) for line in outcome.differences]
    return {*lines, *find_of_no_fleet(store)}


def rebuild(db, *fleets):
    """Do what `rollups rebuild` does. What is before a fleet is rebuilt matters to documents of no fleet alone."""
    store = Store.of(db)
    if len(fleets) > 1:
        discard_other_formats(store)
    for fleet in fleets:
        list(rebuild_fleet(store, fleet))


def make_round(documents, name, number):
    """Return documents, each with what takes the place of a field, or nothing after the last round.

    Each has a value of another kind. Damaged one at a time, it would take minutes.
    """
    having = [document for document in documents if name in document]
    if not having:
        return [] if number else [(documents[0], 1)]
    damages = [find_damages(name, document[name]) for document in having]
    first = number * len(having)
    return [
        (document, values[first + n])
        for n, (document, values) in enumerate(zip(having, damages, strict=True))
        if first + n < len(values)
    ]


def damage(db, collection, document, value, name):
    """Put a value in the place of a field of a document. Returns whether its indexes allow this."""
    damaged = {**document, name: value}
    if value is ABSENT:
        del damaged[name]
    try:
        if name == "_id":
            db[collection].delete_one({"_id": document["_id"]})
            db[collection].insert_one(damaged)
        else:
            db[collection].replace_one({"_id": document["_id"]}, damaged)
    except WriteError:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_damage_of_any_field_is_found_and_repaired(written, kind):
    collection, _ = KINDS[kind]
    whole, tombstones = contents_of(written), list(written.trip_changes.find({"deleted_at": {"$exists": True}}))
    names = {name for document in find(written, kind) for name in document} | {"added"}
    assert verify(written, "f1", "f2") == set()
    for name in sorted(names - (set() if collection.startswith("trip_") else {"_id"})):
        # A document with another fleet is one of that.
        fleets = ("f1", "f2") if name == "fleet" else ("f1",)
        # What no longer belongs to anything ends the comparison early.
        is_identity = name in ("fleet", *IDENTITY_FIELDS[collection])
        number = 0
        while pairs := make_round(find(written, kind), name, number):
            number += 1
            if not (done := sum(damage(written, collection, *pair, name) for pair in pairs)):
                continue
            assert len(verify(written, *fleets)) >= (1 if is_identity else done), (name, pairs)
            rebuild(written, *fleets)
            assert contents_of(written) == whole, (name, pairs)
            # They are history, which a rebuild does not repair.
            for tombstone in tombstones:
                written.trip_changes.replace_one({"_id": tombstone["_id"]}, tombstone, upsert=True)
        assert verify(written, *fleets) == set(), name


def find(db, kind):
    """Return the documents of a kind, in an order."""
    collection, match = KINDS[kind]
    order = ("segment", "driver_id", "period", "start_date", "offset", "_id")
    return list(db[collection].find({"fleet": "f1", **match}, sort=[(name, 1) for name in order]))


def test_a_field_of_the_feed_that_is_gone_where_it_was_null_is_found_and_repaired(service, load):
    load(make_trip(trip_id="t1"))
    first = service.get("/changes").json
    service.db.trip_changes.update_one({}, {"$unset": {"tracking_id": 1}})
    assert differences(service.db) == ["trip_changes f1/t1: differs"]
    list(rebuild_fleet(service.store, "f1"))
    assert differences(service.db) == []
    assert service.get("/changes", cursor=first["cursor"]).json["changes"] == first["changes"]


HISTORIES = {
    "changed": {"$inc": {"change": 1}},
    "gone": {"$unset": {"replaced": 1}},
    "added": {"$set": {"deleted_at": 5}},
}


@pytest.mark.parametrize("change", HISTORIES.values(), ids=HISTORIES)
@pytest.mark.parametrize("repair", ["rebuild", "import"])
def test_a_feed_whose_history_is_damaged_begins_from_scratch(service, load, change, repair):
    load(make_trip(trip_id="t1"), make_trip(trip_id="t2"))
    load(make_trip(trip_id="t1", distance_miles=5))
    first = service.get("/changes").json
    service.db.trip_changes.update_one({"_id": "f1/t1"}, change)
    if repair == "rebuild":
        list(rebuild_fleet(service.store, "f1"))
    else:
        load(make_trip(trip_id="t1", distance_miles=5.5))
    assert [*service.errors("/changes", cursor=first["cursor"])] == ["cursor"]
    assert {entry["trip_id"] for entry in service.get("/changes").json["changes"]} == {"t1", "t2"}
    assert differences(service.db) == []


def test_an_infinite_number_in_place_of_null_is_damage(store, load):
    load(make_trip(trip_id="t1"))
    store.trip_changes.update_one({"_id": "f1/t1", "replaced": None}, {"$set": {"replaced": float("inf")}})
    assert differences(store.db) == ["trip_changes f1/t1: differs"]
    list(rebuild_fleet(store, "f1"))
    assert differences(store.db) == []


DAMAGE = {
    "a trip": ("trip_details", {"$unset": {"driver_id": 1, "date": 1, "trip_id": 1}}),
    "a day": ("driver_periods", {"$set": {"contribution": "x", "parts": 5, "summary": 5, "trips": 5}}),
    "a profile": ("driver_periods", {"$set": {"groups": 5, "json": 5}}),
    "a sum": ("fleet_periods", {"$set": {"sums": {"driver_count": "x"}, "parts": [5]}}),
    "a block": ("fleet_drivers", {"$unset": {"first_driver_id": 1}}),
    "all": ("driver_periods", {"$set": {"version": [], "start_date": 5}}),
}


@pytest.mark.parametrize("words", ["import", "rebuild --since 2026-03-11", "rebuild"])
@pytest.mark.parametrize(("collection", "change"), DAMAGE.values(), ids=DAMAGE)
def test_a_command_ends_with_one_line_or_repairs_what_it_can(mongod, command, collection, change, words, write_lines):
    load(mongod, *(make_trip(f"2026-03-1{n}T08:00", trip_id=f"t{n}", insurance_period=1) for n in range(3)))
    load(mongod, drivers=[make_driver("d1", groups=["a"])])
    for document in list(mongod[collection].find({}, {"_id": 1})):
        with contextlib.suppress(DuplicateKeyError):
            mongod[collection].update_one(document, change)
    # Trips have changed meanwhile.
    mongod.trips.update_many({}, {"$set": {"driver_id": "d2"}})
    lines = str(write_lines("trips", make_trip(trip_id="t0", driver_id="d3")))
    name, *options = words.split()
    words = ("import", "--fleet", "f1", "--trips", lines) if name == "import" else ("rollups", name, *options)
    # Anything but a click.ClickException would be raised here.
    result = command(*words)
    assert result.exit_code == 0 or "'driver-analytics rollups rebuild --fleet f1' repairs it." in result.stderr
    if words[1:] == ("rebuild",):
        assert (result.exit_code, differences(mongod)) == (0, [])


READ = {
    "export --fleet f1 --out {folder}/out": ("driver_periods", {"json": 1}),
    "reports build --fleet f1 --report-date 2026-03-16": ("driver_periods", {"json": 1}),
    "groups list --fleet f1": ("fleet_periods", {"segment": 1}),
    "fleets set --fleet f1 --time-zone Asia/Tokyo": ("trip_details", {"date": 1}),
    "erase --fleet f1 --driver d1 --yes": ("driver_periods", {"start_date": 1}),
}


@pytest.mark.parametrize(("words", "collection", "fields"), [(words, *damage) for words, damage in READ.items()])
def test_a_command_that_reads_damage_ends_with_one_line(mongod, command, tmp_path, words, collection, fields):
    load(mongod, make_trip(trip_id="t1"), drivers=[make_driver("d1", groups=["a"])])
    for document in list(mongod[collection].find({}, {"_id": 1})):
        with contextlib.suppress(DuplicateKeyError):
            mongod[collection].update_one(document, {"$unset": fields})
    result = command(*words.format(folder=tmp_path).split())
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].endswith("'driver-analytics rollups rebuild --fleet f1' repairs it.")
