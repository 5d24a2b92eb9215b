"""deploy/mongodb-roles: what each user of the store may do, on a server with access control."""

import contextlib
import datetime
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from app.config import Config
from app.database import UNAUTHORIZED, service_client
from app.services import get_services
from app.store import COLLECTIONS, READ_MODELS, SOURCES
from app.store.api_keys import make_key
from app.store.reports import BUCKET
from scripts.cli import cli
from scripts.server.checks import open_connections
from tests.conftest import Service
from tests.factories import days_ago, make_driver, make_event, make_trip
from tests.following import Following, make_source
from tests.operations import OF_DATA, make_target
from tests.original_service import KEY, Original
from tests.resilience.processes import Primary

pytestmark = pytest.mark.usefixtures("mongod_uri")

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
# Another than the default, which the file names.
NAME = "fleet_data"
USERS = ("service", "importer", "eraser", "exporter", "follow", "mirror", "backup")
EVERYTHING = (*COLLECTIONS, f"{BUCKET}.files", f"{BUCKET}.chunks")
REPORT = ("--fleet", "f1", "--report-date", "2026-11-16")


class Secured(Primary):
    """A `mongod` with access control, whose administrator is root."""

    def __init__(self, folder):
        # Members of a replica set with access control share a key.
        key = folder / "key"
        key.write_text("c2VjcmV0")
        key.chmod(0o600)
        super().__init__(folder, "--auth", "--keyFile", key)

    def uri_of(self, user, password=None):
        return f"mongodb://{user}:{password or user}@{self.address}/?directConnection=true"


def by_the_driver(server):
    """Make the roles and users as the shell's script does."""
    with MongoClient(server.uri_of("root")) as client:
        for role in json.loads((DEPLOY / "mongodb-roles.json").read_text().replace("driver_analytics", NAME)):
            client.admin.command(role)
        for user in USERS:
            client.admin.command("createUser", f"{NAME}_{user}", pwd=f"{NAME}_{user}", roles=[f"{NAME}_{user}"])


def by_the_shell(server):
    """Make them twice with the script, which is to change nothing the second time."""
    passwords = {f"{NAME}_{user}_PASSWORD": f"{NAME}_{user}" for user in USERS}
    words = ["mongosh", server.uri_of("root"), "--quiet", DEPLOY / "mongodb-roles.js"]
    for _ in range(2):
        subprocess.run(words, env={**os.environ, **passwords, "MONGODB_DATABASE": NAME}, check=True)


@pytest.fixture(scope="module", params=[by_the_driver, by_the_shell])
def server(request, tmp_path_factory):
    """A server with the roles and users."""
    if request.param is by_the_shell and not shutil.which("mongosh"):
        pytest.skip("there is no mongosh")
    with Secured(tmp_path_factory.mktemp("secured")) as server:
        # Whoever comes first, from the same machine, makes the first user.
        with MongoClient(server.uri) as client:
            client.admin.command("createUser", "root", pwd="root", roles=["root"])
        request.param(server)
        yield server


@pytest.fixture(scope="module")
def run(server):
    """Run a command as a user, the importer by default."""

    def run(*words, user="importer"):
        settings = {"MONGODB_URI": server.uri_of(f"{NAME}_{user}"), "MONGODB_DATABASE": NAME}
        result = CliRunner().invoke(cli, list(map(str, words)), env=settings, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


@pytest.fixture(scope="module")
def loaded(run, tmp_path_factory):
    """A store that the importer has loaded, by every command that writes; its key."""
    folder = tmp_path_factory.mktemp("files")
    trip = make_trip(days_ago(3), trip_id="t1", events=[make_event(1)])
    for name, line in (("drivers", make_driver(groups=["North"])), ("trips", trip)):
        (folder / name).write_text(json.dumps(line) + "\n")
    for _ in range(2):
        run("import", "--fleet", "f1", "--drivers", folder / "drivers", "--trips", folder / "trips")
        run("reports", "build", *REPORT)
    run("rollups", "rebuild")
    run("rollups", "verify")
    return run("keys", "issue", "--fleet", "f1").strip()


@pytest.fixture(scope="module")
def connect(server, loaded):
    """Open the data as a user: `connect("service")`."""
    with contextlib.ExitStack() as stack:
        # Each connection costs the server thousands of rounds of hashing.
        clients = {user: stack.enter_context(MongoClient(server.uri_of(f"{NAME}_{user}"))) for user in USERS}
        yield lambda user: clients[user][NAME]


def writes(collection):
    """Yield all kinds of writing to a collection."""
    db, name = collection.database, collection.name
    yield "insert", lambda: collection.insert_one({})
    yield "update", lambda: collection.update_many({}, {"$set": {"fleet": "mine"}})
    yield "remove", lambda: collection.delete_many({})
    yield "out", lambda: list(db.drivers.aggregate([{"$out": name}]))
    yield "merge", lambda: list(db.drivers.aggregate([{"$merge": {"into": name}}]))
    yield from changes(collection)
    yield "createIndex", lambda: collection.create_index("x")
    yield "dropIndex", lambda: collection.drop_index("x_1")
    yield "collMod", lambda: db.command("collMod", name, validator={})
    yield "create", lambda: db.create_collection("another", check_exists=False)


def changes(collection):
    """Yield operations that no user who writes data needs."""
    yield "drop", lambda: collection.database.command("drop", collection.name)
    yield "rename", lambda: collection.rename("gone")
    yield "dropDatabase", lambda: collection.database.command("dropDatabase")
    yield "createUser", lambda: collection.database.command("createUser", "me", pwd="me", roles=["root"])


def allowed(attempts):
    """Return which attempts were not refused."""
    result = []
    for name, attempt in attempts:
        try:
            attempt()
        except OperationFailure as error:
            if error.code == UNAUTHORIZED:
                continue
        result.append(name)
    return result


@pytest.mark.parametrize("user", ["service", "exporter", "backup"])
def test_users_who_only_read_cannot_write(connect, user):
    assert [(name, done) for name in EVERYTHING for done in allowed(writes(connect(user)[name]))] == []


def test_the_service_reads_no_sources(connect):
    db = connect("service")
    read = {name: db[name].find_one for name in EVERYTHING}
    assert {*allowed(read.items())} == {*EVERYTHING} - {*SOURCES, "resume_tokens"}


def test_the_backup_user_reads_everything_and_the_importer_restores_it(run, server, connect, tmp_path):
    run("backup", tmp_path / "taken", user="backup")
    with MongoClient(server.uri_of("root")) as client:
        whole = {name: client[NAME][name].count_documents({}) for name in EVERYTHING}
        client.drop_database(NAME)
        run("restore", tmp_path / "taken")
        assert {name: client[NAME][name].count_documents({}) for name in EVERYTHING} == whole


@pytest.mark.parametrize("user", ["importer", "eraser", "follow", "mirror"])
def test_users_who_write_cannot_drop_or_rename_anything(connect, user):
    assert [(name, done) for name in EVERYTHING for done in allowed(changes(connect(user)[name]))] == []


def test_the_importer_rebuilds_what_another_version_has_written(run, server, loaded):
    with MongoClient(server.uri_of("root")) as client:
        client[NAME].fleets.update_many({}, {"$unset": {"format": 1}})
        client[NAME].fleet_periods.drop_index("period")
        client[NAME].fleet_periods.create_index(["fleet", "period", "start_date"], name="period")
    run("rollups", "rebuild")
    run("rollups", "verify")


def test_the_eraser_changes_no_source(connect):
    for name in SOURCES:
        attempts = dict(writes(connect("eraser")[name]))
        assert allowed((key, attempts[key]) for key in ("insert", "update", "out", "merge")) == []


def test_the_exporter_reads_no_keys(connect):
    assert allowed([("find", connect("exporter")["keys"].find_one)]) == []


def test_the_eraser_erases_and_prunes_and_the_exporter_exports(run, loaded, tmp_path):
    lines = [make_trip(days_ago(4), "to erase", trip_id="t2"), make_trip("2026-01-01T08:00", trip_id="t3")]
    (tmp_path / "trips").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run("import", "--fleet", "f1", "--trips", tmp_path / "trips")
    run("reports", "build", *REPORT)
    run("keys", "issue", "--fleet", "f1", "--driver", "to erase")
    erased = run("erase", "--fleet", "f1", "--driver", "to erase", "--yes", user="eraser")
    assert "1 trips removed, 1 reports built again" in erased
    assert "removed 1 trips" in run("prune", "--before", "2026-01-02", user="eraser")
    assert "1 drivers, 1 trips, 1 daily" in run("export", "--fleet", "f1", "--out", tmp_path / "out", user="exporter")
    run("import", "--fleet", "f2", "--trips", tmp_path / "trips")
    assert "f2: erased" in run("fleets", "erase", "--fleet", "f2", "--yes", user="eraser")


def test_the_follow_user_writes_neither_sources_nor_keys_nor_reports(connect):
    for name in {*EVERYTHING} - {*READ_MODELS, "fleets", "resume_tokens"}:
        assert {*allowed(writes(connect("follow")[name]))} <= {"createIndex", "collMod", "create"}


def test_the_follow_user_follows(connect):
    following, trips = Following(connect("follow")), connect("importer").trips
    following.catch_up()
    trips.insert_one(make_source(make_trip(days_ago(3), trip_id="direct")))
    following.catch_up()
    assert "direct" in connect("service").trip_details.distinct("trip_id")
    trips.delete_one({"trip_id": "direct"})
    following.catch_up()
    assert "direct" not in connect("service").trip_details.distinct("trip_id")


def test_the_mirror_user_mirrors_and_has_no_access_to_keys_and_reports(run, serve, monkeypatch, connect, tmp_path):
    for name in {*EVERYTHING} - {*SOURCES, *READ_MODELS, "fleets", "resume_tokens"}:
        assert {*allowed(writes(connect("mirror")[name]))} <= {"createIndex", "collMod", "create"}
        assert allowed([("find", connect("mirror")[name].find_one)]) == []
    original = Original()
    original.load(make_trip(days_ago(3), trip_id="mirrored"), drivers=[make_driver()])
    monkeypatch.setenv("MIRROR_KEY", KEY)
    words = ("mirror", "--from", serve(original), "--fleet", "f2", "--rejects", tmp_path)
    assert ": 2 loaded, 0 rejected" in run(*words, user="mirror")


def test_no_user_sees_another_database(connect):
    clients = {user: connect(user).client for user in USERS}
    others = ("admin", "other", f"{NAME}_more")
    assert allowed((user, clients[user][name]["anything"].find_one) for user in USERS for name in others) == []


def test_the_service_serves_as_its_user(connect, loaded):
    service = Service(connect("service"))
    monday = days_ago(datetime.datetime.now(datetime.UTC).weekday() or 7)[:10]
    required = {"driver_id": "d1", "filter_value": "t1"}
    paths = ["/healthz", "/changes", *(make_target(path, required, monday=monday, end_date=None) for path in OF_DATA)]
    for path in [*paths, f"/report?report_time={REPORT[-1]}T00:00:00"]:
        for headers in ({}, {"X-Fields": "*,nope"}):
            response = service.get(path, fleet=None, headers={**headers, "Authorization": f"APIKEY {loaded}"})
            assert response.status_code == 200, response.text
    link = response.json["report_link"].partition("/api/v1")[2]
    assert service.get(link, fleet=None, buffered=True).status_code == 200


WHO = "MongoDB refused the user in MONGODB_URI: "
NO_ROLE = f"{WHO}not authorized for this in MONGODB_DATABASE"
NO_USER = "MongoDB requires a user, and MONGODB_URI has none"
WHICH_USER = ". deploy/mongodb-roles.js says which user each command needs.\n"


def test_a_command_whose_user_lacks_its_role_says_where_its_user_is_named(server, run_main):
    settings = {"MONGODB_URI": server.uri_of(f"{NAME}_service"), "MONGODB_DATABASE": NAME}
    assert run_main("keys", "issue", "--fleet", "f1", **settings).stderr == f"Error: {NO_ROLE}{WHICH_USER}"


def test_a_command_whose_password_is_wrong_names_the_setting(server, run_main):
    settings = {"MONGODB_URI": server.uri_of("root", "canary"), "MONGODB_DATABASE": NAME}
    assert (
        run_main("keys", "list", "--fleet", "f1", **settings).stderr == f"Error: {WHO}authentication failed{WHICH_USER}"
    )


def test_a_command_without_a_user_says_that_it_needs_one(server, run_main):
    ended = run_main("keys", "list", "--fleet", "f1", MONGODB_URI=server.uri, MONGODB_DATABASE=NAME)
    assert ended.stderr == f"Error: {NO_USER}{WHICH_USER}"


@pytest.mark.parametrize(
    ("user", "password", "health", "message"),
    [
        ("root", "canary", 503, f"{WHO}authentication failed"),
        (f"{NAME}_exporter", f"{NAME}_exporter", 200, NO_ROLE),
    ],
    ids=["wrong password", "wrong role"],
)
def test_the_service_logs_that_its_user_is_refused(server, log, user, password, health, message):
    with service_client(Config(mongodb_uri=server.uri_of(user, password), secret_key="test")) as client:
        service, headers = Service(client[NAME]), {"Authorization": f"APIKEY {make_key()}"}
        open_connections(get_services(service.app))
        # The first refusal comes from MongoDB, later ones may come from PyMongo.
        statuses = [service.get("/drivers", fleet=None, headers=headers).status_code for _ in range(2)]
        assert (statuses, service.get("/healthz", fleet=None).status_code) == ([503, 503], health)
    lines = [line for line in log() if line["level"] != "info"]
    assert [line["event"] for line in lines if "SECRET_KEY" not in line["event"]] == 3 * [message]
    assert "canary" not in str(lines)


def test_follow_ends_when_its_password_is_refused(server, monkeypatch):
    # A second attempt would be a ValueError.
    monkeypatch.setattr("scripts.ingest.follow.RETRY_SECONDS", -1)
    with MongoClient(server.uri_of("root", "canary")) as client, pytest.raises(OperationFailure):
        Following(client[NAME]).catch_up()
