"""driver-analytics backup and restore."""

import contextlib
import json
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from pymongo import MongoClient

from app.store import READ_MODELS, Store
from schemas.report import ReportWindow
from scripts.admin import backup
from scripts.admin.backup import FILE_INDEXES
from scripts.admin.keys import issue_driver_keys, issue_key
from scripts.admin.manifest import RAW, read_manifest
from scripts.cli import cli
from scripts.materialize.fleet_settings import set_settings
from scripts.mongodb.collections import INDEXES, prepare_collections
from scripts.reports.build import build_report
from tests.command_listeners import Recorder
from tests.conftest import Service
from tests.factories import make_driver, make_trip
from tests.feed_client import Client
from tests.service_process import COMMAND, wait_until
from tests.store_contents import HISTORY, load

DATE = "2026-03-16"
WRITES = {"insert", "update", "delete", "findAndModify", "bulkWrite"}


def make_trips():
    """Return 60 trips of 20 drivers over 9 days, with two tracking ids."""
    return [
        make_trip(
            f"2026-03-{10 + n % 9}T08:00", f"d{n % 20}", trip_id=f"t{n}", tracking_id=f"k{n % 2}", distance_miles=n / 7
        )
        for n in range(60)
    ]


@pytest.fixture(scope="module")
def source(mongod_uri):
    """A store with two fleets in two time zones, a report, a revoked key and one of a driver. No test changes it."""
    drivers = [make_driver("idle"), make_driver("d1", first_travel_date="2025-01-01", groups=["North"])]
    with MongoClient(mongod_uri) as client:
        store = Store.of(client["backed_up"])
        prepare_collections(store)
        set_settings(store, "f2", time_zone="Pacific/Niue")
        for fleet in ("f1", "f2"):
            load(store.db, *make_trips(), drivers=drivers, fleet=fleet)
        build_report(store, "f1", ReportWindow(DATE))
        issue_key(store, "f1")
        store.keys.update_one({}, {"$set": {"revoked_at": 1}})
        issue_driver_keys(store, "f1", ["d1"])
        yield store.db
        client.drop_database("backed_up")


@pytest.fixture(scope="module")
def key(source):
    """The valid key of f1."""
    return issue_key(Store.of(source), "f1")


@pytest.fixture(scope="module")
def saved(mongod_uri, source, key, tmp_path_factory):
    """A backup of it."""
    folder = tmp_path_factory.mktemp("backup") / "saved"
    settings = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": source.name}
    result = CliRunner().invoke(cli, ["backup", str(folder)], env=settings)
    assert result.stdout == f"{folder}: 4 drivers, 120 trips, 1 reports, 3 keys\n"
    return folder


@pytest.fixture
def empty(mongod, monkeypatch):
    """Another, empty database, which commands use from here on."""
    monkeypatch.setenv("MONGODB_DATABASE", "restored")
    mongod.client.drop_database("restored")
    yield mongod.client["restored"]
    mongod.client.drop_database("restored")


def documents(db, name, **projection):
    """Return the documents of a collection as bytes."""
    return sorted(bytes(document.raw) for document in db.get_collection(name, RAW).find({}, projection or None))


def test_a_backup_of_an_empty_database_says_so(command, mongod, tmp_path):
    ended = command("backup", str(tmp_path / "backup"))
    assert (ended.exit_code, ended.stderr) == (0, "Nothing is stored in the database test.\n")
    assert ended.stdout.endswith(": 0 drivers, 0 trips, 0 reports, 0 keys\n")


def test_what_is_restored_is_the_same_to_the_byte_and_verified(command, source, saved, empty):
    assert command("restore", str(saved)).exit_code == 0
    for name in {*source.list_collection_names()} - {*READ_MODELS, "fleets"}:
        assert documents(empty, name) == documents(source, name)
    for name in READ_MODELS:
        assert documents(empty, name, _id=0, **HISTORY) == documents(source, name, _id=0, **HISTORY)
    for name in (*INDEXES, *FILE_INDEXES):
        assert empty[name].index_information() == source[name].index_information()
    assert empty.fleets.find_one({"_id": "f2"})["time_zone"] == "Pacific/Niue"
    verified = command("rollups", "verify")
    assert (verified.exit_code, verified.stdout.count("no differences")) == (0, 2)


def test_the_change_feed_of_a_restored_store_begins_from_scratch(command, source, key, saved, empty, clock):
    services = Service(source), Service(empty)
    services[0].keys["f1"] = key
    before, after = Client(services[0], 1000), Client(services[1])
    before.sync()
    assert command("restore", str(saved)).exit_code == 0
    assert list(services[1].errors("/changes", cursor=before.cursor)) == ["cursor"]
    after.sync()
    assert after.copy == before.copy


def test_an_invalid_trip_is_restored_as_it_is_and_named(command, mongod, empty, tmp_path, monkeypatch):
    load(mongod, make_trip(driver_id="d7", trip_id="t7"))
    mongod.trips.update_one({}, {"$set": {"distance_miles": "far"}}, bypass_document_validation=True)
    monkeypatch.setenv("MONGODB_DATABASE", mongod.name)
    command("backup", str(tmp_path / "saved"))
    monkeypatch.setenv("MONGODB_DATABASE", empty.name)
    restored = command("restore", str(tmp_path / "saved"))
    assert restored.stderr == "f1: trips f1/t7 is invalid and left out: distance_miles: Must be a number.\n"
    assert documents(empty, "trips") == documents(mongod, "trips")
    assert empty.trip_details.count_documents({}) == 0


def test_a_backup_is_for_its_owner_alone(saved):
    assert {path.stat().st_mode & 0o777 for path in (saved, *saved.iterdir())} == {0o700, 0o600}


def test_an_existing_folder_is_left_as_it_is(command, tmp_path):
    (tmp_path / "saved").mkdir()
    assert "saved already exists. Choose another folder." in command("backup", str(tmp_path / "saved")).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def put_another_format(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "trips.bson.gz",
            lambda path: path.write_bytes(path.read_bytes()[:-1]),
            "trips.bson.gz is missing or was changed since the backup",
        ),
        ("drivers.bson.gz", Path.unlink, "drivers.bson.gz is missing or was changed since the backup"),
        ("manifest.json", Path.unlink, "saved is not a complete backup"),
        ("manifest.json", lambda path: path.write_text("{"), "saved is not a complete backup"),
        ("manifest.json", put_another_format, "saved has the format 1, but this command reads only the format 4."),
    ],
)
def test_an_altered_backup_is_not_restored(command, mongod, tmp_path, monkeypatch, name, change, message):
    saved = tmp_path / "saved"
    assert command("backup", str(saved)).exit_code == 0
    monkeypatch.setenv("MONGODB_DATABASE", "restored")
    change(saved / name)
    refused = command("restore", str(saved))
    assert (refused.exit_code, message in refused.stderr) == (1, True)
    assert mongod.client["restored"].list_collection_names() == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("restore", "/nowhere/z"), "/nowhere/z is not a complete backup: manifest.json is missing or cannot be read."),
        (("backup", "/proc/z"), "/proc/z cannot be written: No such file or directory. Give FOLDER "),
    ],
)
def test_a_folder_that_cannot_be_used_is_named(command, words, error):
    result = command(*words)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert result.stderr.startswith(f"Error: {error}")


def test_a_store_with_documents_is_not_restored_into(command, mongod, saved):
    load(mongod, drivers=[make_driver()])
    refused = command("restore", str(saved))
    assert (refused.exit_code, refused.stderr) == (
        1,
        "Error: The database test is not empty. Drop it, or set MONGODB_DATABASE to another database.\n",
    )


def test_a_killed_backup_is_never_restored(command, source, monkeypatch, tmp_path):
    monkeypatch.setenv("MONGODB_DATABASE", source.name)
    folder, part = tmp_path / "saved", tmp_path / "saved.part"
    process = subprocess.Popen([COMMAND, "backup", str(folder)], stdout=subprocess.DEVNULL)
    wait_until(lambda: (part / "trips.bson.gz").exists() or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if folder.exists():
        read_manifest(folder)
        folder.rename(tmp_path / "finished")
    assert command("backup", str(folder)).exit_code == 0
    assert not part.exists()
    read_manifest(folder)


def test_a_fleet_that_has_only_reports_is_restored_as_a_fleet(command, empty, tmp_path):
    prepare_collections(Store.of(empty))
    load(empty, make_trip())
    build_report(Store.of(empty), "f1", ReportWindow(DATE))
    for name in ("drivers", "trips"):
        empty[name].delete_many({})
    command("backup", str(tmp_path / "saved"))
    empty.client.drop_database(empty)
    command("restore", str(tmp_path / "saved"))
    assert command("rollups", "verify", "--fleet", "f1").exit_code == 0


def test_keys_are_restored_after_everything_else(command, mongod_uri, saved, empty, monkeypatch):
    recorder = Recorder()
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        prepare_collections(Store.of(empty))
        monkeypatch.setattr(backup, "open_store", lambda: contextlib.nullcontext(Store.of(client[empty.name])))
        assert command("restore", str(saved)).exit_code == 0
        *others, last = [sent for sent in recorder.commands if WRITES & set(sent)]
    assert last["insert"] == "keys"
    assert len(others) > 20
    assert "keys" not in [sent.get(name) for sent in others for name in WRITES]


def test_a_driver_that_was_stored_without_a_nullable_field_is_restored_and_served_with_null(command, empty, tmp_path):
    prepare_collections(Store.of(empty))
    stored = {"_id": "f1/d1", "fleet": "f1", "driver_id": "d1", "alias": "A"}
    empty.drivers.insert_one(stored, bypass_document_validation=True)
    assert command("backup", str(tmp_path / "saved")).exit_code == 0
    empty.client.drop_database(empty)
    assert command("restore", str(tmp_path / "saved")).exit_code == 0
    assert empty.drivers.find_one() == stored
    assert json.loads(empty.driver_periods.find_one({})["json"]) == make_driver("d1", alias="A")
