"""The embedded MongoDB: whom it lets in, and where its folder may be."""

import contextlib
import os
import socket
import tempfile
from pathlib import Path

import pytest
from pymongo import MongoClient

from scripts.mongodb.embedded_mongod import embedded_mongod

NOBODY = 65534


@pytest.fixture(scope="module")
def folder(mongod_uri):
    """The folder of a running server, in one that others can enter. It had other permissions before the start."""
    with tempfile.TemporaryDirectory() as data_dir:
        Path(data_dir).chmod(0o755)
        (folder := Path(data_dir, "mongodb")).mkdir(mode=0o755)
        with embedded_mongod(Path(data_dir)):
            yield folder


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


def test_it_listens_on_no_port(folder):
    process, sockets = Path("/proc", (folder / "mongod.pid").read_text().strip()), set()
    for file in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            sockets.add(file.readlink().name)
    rows = [line.split() for name in ("tcp", "tcp6") for line in (process / "net" / name).read_text().splitlines()]
    assert not sockets & {f"socket:[{row[9]}]" for row in rows}


def test_only_its_user_can_enter_its_folder(folder):
    assert folder.stat().st_mode & 0o777 == 0o700


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
