"""An upgrade: stores that earlier versions have written.

`stores/COMMIT.json.gz` has what the commands of a commit made of the same drivers and trips, in MongoDB's extended
JSON: the options, indexes and documents of each collection, and the keys that were issued. The fleet f1 has every kind
of trip and event, a time zone, reports, keys, and an erased driver; f2 has a trip.
"""

import gzip
from pathlib import Path

import bson
import pytest
from bson import json_util
from pymongo import IndexModel, MongoClient

from app.store import COLLECTIONS, READ_MODELS, SOURCES, Store
from scripts.admin import rollups
from scripts.admin.backup import SETTINGS
from scripts.materialize.fleet_settings import set_settings
from scripts.mongodb.collections import prepare_collections
from tests.conftest import Service
from tests.store_contents import contents, load

STORES = sorted(path.name.partition(".")[0] for path in (Path(__file__).parent / "stores").iterdir())
REPORT = "/report?report_time=2026-03-16T00:00:00"
WAY_OUT = "run 'driver-analytics rollups rebuild'"


def read_store(commit):
    """Return the content of a file."""
    text = gzip.decompress((Path(__file__).parent / "stores" / f"{commit}.json.gz").read_bytes())
    return json_util.loads(text, json_options=json_util.CANONICAL_JSON_OPTIONS)


def write_store(db, collections):
    """Make the collections in an empty database."""
    for name, collection in collections.items():
        options = dict(collection["options"])
        if "clusteredIndex" in options:
            # MongoDB gives this index a version and a name.
            options["clusteredIndex"] = {"key": {"_id": 1}, "unique": True}
        db.create_collection(name, check_exists=False, **options)
        for index in collection["indexes"]:
            rest = {option: value for option, value in index.items() if option not in ("key", "v")}
            db[name].create_indexes([IndexModel([*index["key"].items()], **rest)])
        if documents := collection["documents"]:
            db[name].insert_many(documents, bypass_document_validation=True)


@pytest.fixture(scope="module", params=STORES)
def commit(request):
    """The name of the commit whose commands have written the store."""
    return request.param


@pytest.fixture(scope="module")
def saved(commit):
    """What they have written."""
    return read_store(commit)


@pytest.fixture
def old(mongod, saved):
    """The store of that commit, in the database of the commands."""
    empty(mongod)
    write_store(mongod, saved["collections"])
    yield mongod
    empty(mongod)
    prepare_collections(Store.of(mongod))


def empty(db):
    """Drop all collections."""
    for name in db.list_collection_names():
        db.drop_collection(name)


@pytest.fixture(scope="module")
def expected(saved, mongod_uri):
    """The sources, read models and indexes of a store into which this version has imported the same."""
    sources = {name: saved["collections"].get(name, {"documents": []})["documents"] for name in SOURCES}
    groups = {source["_id"]: source["groups"] for source in sources["driver_groups"]}
    with MongoClient(mongod_uri) as client:
        db = client["expected"]
        prepare_collections(store := Store.of(db))
        for state in saved["collections"]["fleets"]["documents"]:
            fleet = state["_id"]
            set_settings(store, fleet, **{name: state[name] for name in SETTINGS if name in state})
            drivers, trips = (
                [without_fleet(source) for source in sources[name] if source["fleet"] == fleet]
                for name in ("drivers", "trips")
            )
            for driver in drivers:
                driver["groups"] = groups.get(f"{fleet}/{driver['driver_id']}", [])
            load(db, *trips, drivers=drivers, fleet=fleet)
        yield {**data_of(db), "indexes": indexes_of(db)}
        client.drop_database("expected")


def without_fleet(source):
    """Return a source as a line of an import."""
    return {name: value for name, value in source.items() if name not in ("_id", "fleet")}


def data_of(db):
    """Return the sources and read models."""
    return {
        name: sorted(bson.encode(with_sorted_names(bson.decode(text))) for text in documents)
        for name, documents in contents(db).items()
        if name != "fleets"
    }


def with_sorted_names(value):
    """Return a value with the fields of each object in order: MongoDB returns groups in any."""
    if isinstance(value, dict):
        return {name: with_sorted_names(value[name]) for name in sorted(value)}
    return [with_sorted_names(item) for item in value] if isinstance(value, list) else value


def indexes_of(db):
    """Return the indexes of each collection that this version has, its validator, and whether it is clustered."""
    stored = {entry["name"]: entry["options"] for entry in db.list_collections()}
    return {
        name: (db[name].index_information(), stored[name].get("validator", {}), "clusteredIndex" in stored[name])
        for name in COLLECTIONS
    }


def test_a_rebuild_makes_of_the_store_of_an_earlier_version_that_of_an_import(old, expected, command):
    assert command("rollups", "rebuild").output == "f1: 5 days rebuilt\nf2: 1 days rebuilt\n"
    assert {**data_of(old), "indexes": indexes_of(old)} == expected
    assert command("rollups", "verify").exit_code == 0


def test_a_fleet_that_is_rebuilt_alone_is_served_and_the_others_wait(old, expected, command, clock):
    service = Service(old)
    for fleet, statuses in (("f2", [503, 200]), ("f1", [200, 200])):
        assert command("rollups", "rebuild", "--fleet", fleet).exit_code == 0
        assert [service.get("/drivers", fleet=name).status_code for name in ("f1", "f2")] == statuses
    assert {**data_of(old), "indexes": indexes_of(old)} == expected


def test_a_rebuild_that_was_killed_serves_no_fleet_that_is_not_complete(old, expected, command, kills, clock):
    service, whole = Service(old), of_fleet(expected, "f1")
    for _ in kills(rollups, lambda: command("rollups", "rebuild"), first=1, step=9, least=100):
        assert service.get("/drivers").status_code == 503 or of_fleet(data_of(old), "f1") == whole
    assert {**data_of(old), "indexes": indexes_of(old)} == expected


def of_fleet(data, fleet):
    """Return the read models of a fleet."""
    return {name: [text for text in data[name] if bson.decode(text)["fleet"] == fleet] for name in READ_MODELS}


COMMANDS = (
    "rollups verify",
    "import --fleet f1 --trips -",
    "import --fleet another --trips -",
    "follow",
    "export --fleet f1 --out out",
    "fleets list",
    "fleets set --fleet f1 --time-zone UTC",
    "keys list --fleet f1",
    "reports list --fleet f1",
    "reports build --due",
)


def test_without_a_rebuild_every_command_names_it_in_one_line(old, run_main, serve_error, mongod_uri):
    before, settings = everything(old), {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": old.name}
    for words in COMMANDS:
        ended = run_main(*words.split(), **settings)
        assert (ended.status, ended.stderr.count("\n"), WAY_OUT in ended.stderr) == (1, 1, True), ended.stderr
    assert WAY_OUT in serve_error(**settings)
    assert everything(old) == before


def everything(db):
    """Return all documents, and the indexes."""
    return {name: (list(db[name].find()), db[name].index_information()) for name in db.list_collection_names()}


def test_without_fleets_a_command_names_the_rebuild_because_of_the_indexes(old, saved, run_main, command, mongod_uri):
    for name in ("fleets", *SOURCES):
        old[name].delete_many({})
    words = ("keys", "issue", "--fleet", "f1")
    ended = run_main(*words, MONGODB_URI=mongod_uri, MONGODB_DATABASE=old.name)
    assert (ended.status, ended.stderr.count("\n"), WAY_OUT in ended.stderr) == (1, 1, True), ended.stderr
    assert command("rollups", "rebuild").exit_code == 0
    assert command(*words).exit_code == 0


def test_keys_and_settings_stay(old, saved, command, clock):
    before = {name: list(old[name].find()) for name in ("keys", "resume_tokens")}
    command("rollups", "rebuild")
    assert {name: list(old[name].find()) for name in before} == before
    service, keys = Service(old), saved["keys_issued"]
    bodies = [
        service.get("/fleet", fleet=None, headers={"Authorization": f"APIKEY {keys[name]}"}).json
        for name in ("fleet", "driver")
    ]
    assert [(body["fleet"], body["driver_id"], body["time_zone"]) for body in bodies] == [
        ("f1", None, "America/New_York"),
        ("f1", "d1", "America/New_York"),
    ]
    assert command("keys", "list", "--fleet", "f1").output.count("\n") == 2


def test_a_change_feed_begins_from_scratch(old, command, clock):
    states = {state["_id"]: state.get("feed_key") for state in old.fleets.find()}
    command("rollups", "rebuild")
    assert all(state["feed_key"] not in (None, states[state["_id"]]) for state in old.fleets.find())
    entries = Service(old).get("/changes").json["changes"]
    assert [entry["trip_id"] for entry in entries if entry["deleted"]] == []


def test_reports_stay_and_are_built_again_if_they_are_due(old, commit, command, clock):
    clock.move_to("2026-03-16T12:00:00Z")
    command("rollups", "rebuild")
    service = Service(old, secret_key="s" * 32)
    (week, *_) = service.get("/reports").json["reports"]
    assert (week["report_date"], week["period"], week["units"]) == ("2026-03-16", "week", "km")
    links = service.get(REPORT).json
    for name in ("report_link", "report_page"):
        path = links[name].partition("/api/v1")[2]
        assert service.get(path, fleet=None, buffered=True).status_code == 200
    assert command("reports", "list", "--fleet", "f1").output.startswith("2026-0")
    # Of an earlier version, nobody knows what it shows.
    outcome = {"65dc608": "built the weekly report of 2026-03-16, 4 drivers"}.get(commit, "already exists")
    assert outcome in command("reports", "build", "--due").output.splitlines()[0]
    assert service.get("/reports").json["reports"][0]["units"] == "km"
    assert command("reports", "delete", "--fleet", "f1", "--report-date", "2026-03-16").exit_code == 0
    assert service.get(REPORT).status_code == 404
    assert command("erase", "--fleet", "f1", "--driver", "d1", "--yes").exit_code == 0


def test_a_deleted_report_of_an_earlier_version_leaves_no_file(old, command):
    command("rollups", "rebuild")
    command("reports", "delete", "--fleet", "f1", "--report-date", "2026-03-16")
    assert [file for file in old["report_files.files"].distinct("_id") if "2026-03-16" in file] == []
