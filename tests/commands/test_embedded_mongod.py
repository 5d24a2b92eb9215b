"""The embedded MongoDB: whom it lets in, and where its folder may be."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from pymongo import MongoClient

from scripts.mongodb.embedded_mongod import embedded_mongod
from tests.factories import make_trip
from tests.service_process import COMMAND, wait_until

NOBODY = 65534
# A mongod that writes an error to its log, which is the ninth argument, and ends.
FAILING = """#!/bin/sh
[ "$1" = --version ] || echo '{"s":"E", "msg":"WiredTiger error message", "attr":{"error_str":"I/O error"}}' >"$9"
"""


@pytest.fixture(scope="module")
def folder(mongod_uri):
    """The folder of a running server, in one that others can enter. It had other permissions before the start."""
    with tempfile.TemporaryDirectory() as data_dir:
        Path(data_dir).chmod(0o755)
        (folder := Path(data_dir, "mongodb")).mkdir(mode=0o755)
        with embedded_mongod(Path(data_dir)):
            yield folder


def test_it_listens_on_no_port(folder):
    process, sockets = Path("/proc", (folder / "mongod.pid").read_text().strip()), set()
    for file in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            sockets.add(file.readlink().name)
    rows = [line.split() for name in ("tcp", "tcp6") for line in (process / "net" / name).read_text().splitlines()]
    assert not sockets & {f"socket:[{row[9]}]" for row in rows}


def test_only_its_user_can_enter_its_folder(folder):
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def run_without_a_database(run_main, tmp_path, monkeypatch):
    """Run a command in a folder without a database, with a mongod that does not start, and answer it."""
    (mongod := tmp_path / "mongod").write_text(FAILING)
    mongod.chmod(0o700)
    monkeypatch.delenv("MONGODB_URI", raising=False)

    def run(answer=None):
        monkeypatch.setattr("sys.stdin", stdin := io.StringIO(answer))
        stdin.isatty = lambda: answer is not None
        return run_main("keys", "issue", "--fleet", "f1", MONGOD=str(mongod), DATA_DIR=str(tmp_path / "data"))

    return run


def test_a_server_that_does_not_start_is_named_with_the_last_error_of_its_log(run_without_a_database, tmp_path):
    (_, error) = run_without_a_database().stderr.splitlines()
    reason = "WiredTiger error message: I/O error"
    log = tmp_path / "data/mongodb/mongod.log"
    assert error == f"Error: The embedded MongoDB did not start: {reason}. Its log: {log}"


def test_a_command_says_that_it_creates_a_database(run_without_a_database, tmp_path):
    sentence = f"MONGODB_URI is not set, and {tmp_path}/data has no database yet. Creating one."
    assert run_without_a_database().stderr.splitlines()[0] == sentence


def test_a_command_on_a_terminal_asks_before_it_creates_a_database(run_without_a_database, tmp_path):
    question = f"MONGODB_URI is not set, and {tmp_path}/data has no database yet. Create one? [y/N]: "
    assert run_without_a_database("n\n") == (1, "", f"{question}Aborted.\n")
    assert not (tmp_path / "data").exists()


@pytest.fixture
def nobody():
    """Be another user, which only root can."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    yield
    os.seteuid(0)
    os.setegid(0)


def test_another_user_can_neither_connect_nor_read_nor_lock(folder, nobody):
    with socket.socket(socket.AF_UNIX) as client, pytest.raises(PermissionError):
        client.connect(str(folder / "mongod.sock"))
    for name in ("mongod.log", "start.lock"):
        with pytest.raises(PermissionError):
            (folder / name).read_bytes()


def test_a_folder_that_was_moved_keeps_its_data(mongod_uri, data_folder):
    # A URI has other characters in place of those of the second name.
    before, after = data_folder / "before", data_folder / "after ü+%2F@?"
    with embedded_mongod(before) as uri, MongoClient(uri) as client:
        client.test.things.insert_one({"_id": 1})
    before.rename(after)
    with embedded_mongod(after) as uri, MongoClient(uri) as client:
        assert client.test.things.find_one() == {"_id": 1}
        client.test.things.insert_one({"_id": 2})


IMPORT = ("import", "--fleet", "f1", "--trips", "-")


@contextlib.contextmanager
def running(folder, *words):
    """Run a command with its embedded MongoDB, and yield both: the process, and a client."""
    settings = {"DATA_DIR": str(folder), "MONGODB_URI": "", "PYTHONUNBUFFERED": "1"}
    with (
        embedded_mongod(folder) as uri,
        MongoClient(uri, serverSelectionTimeoutMS=100) as client,
        subprocess.Popen([COMMAND, *words], stdin=-1, stdout=-1, stderr=-1, env={**os.environ, **settings}) as process,
    ):
        yield process, client.driver_analytics


def kill_mongod(folder):
    os.kill(int((folder / "mongodb" / "mongod.pid").read_text()), signal.SIGKILL)


def assert_it_says_so(process, folder):
    """Assert that a command ends within 30 seconds, with a line that says why."""
    _, errors = process.communicate(timeout=30)
    *_, line = errors.decode().splitlines()
    assert line.startswith("Error: The embedded MongoDB ended: there is no error in its log, whose last line is '")
    assert line.endswith(f"'. Its log: {folder}/mongodb/mongod.log")
    assert (process.returncode, b"Traceback" in errors) == (1, False)


def test_a_command_that_waits_for_input_ends_with_its_mongod(mongod_uri, data_folder):
    with running(folder := data_folder / "waits", *IMPORT) as (process, db):
        process.stdin.write(json.dumps(make_trip()).encode() + b"\n")
        process.stdin.flush()
        wait_until(lambda: db.trips.find_one())
        kill_mongod(folder)
        assert_it_says_so(process, folder)


def test_a_command_that_writes_ends_with_its_mongod(mongod_uri, data_folder):
    with running(folder := data_folder / "writes", *IMPORT) as (process, db):
        for number in range(100):
            process.stdin.write(json.dumps(make_trip(trip_id=f"t{number}")).encode() + b"\n")
            process.stdin.flush()
            if number == 50:
                wait_until(lambda: db.trips.find_one())
                kill_mongod(folder)
        assert_it_says_so(process, folder)


def test_follow_ends_with_its_mongod(mongod_uri, data_folder):
    with running(folder := data_folder / "follows", "follow") as (process, _):
        assert b"Following" in process.stdout.readline()
        kill_mongod(folder)
        assert_it_says_so(process, folder)
