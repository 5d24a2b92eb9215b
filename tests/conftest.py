"""The fixtures that tests share: the two stores, the service on either, and a frozen clock."""

import functools
import gzip
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from click.testing import CliRunner, Result
from pymongo import MongoClient
from pymongo.database import Database

from app import create_app
from app.config import Config
from app.store import Store
from scripts.admin.keys import issue_key
from scripts.cli import cli
from scripts.mongodb.connection import prepare_collections
from scripts.mongodb.embedded_mongod import NoMongod, embedded_mongod
from scripts.mongodb.memory_store import memory_client
from tests import store_contents
from tests.command_recorder import Recorder
from tests.resilience.processes import Redis

# A Wednesday.
NOW = "2026-03-18T12:00:00Z"


def pytest_collection_modifyitems(config, items) -> None:
    """Run tests marked `one_store` on mongomock alone, and of other tests those on mongomock with the large ones."""
    left_out = set()
    for item in items:
        is_of_one = bool(item.get_closest_marker("one_store"))
        if is_of_one and _is_on(item, "mongod"):
            left_out.add(item)
        elif not is_of_one and _is_on(item, "mongomock"):
            item.add_marker(pytest.mark.large)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_on(item, kind) -> bool:
    return hasattr(item, "callspec") and kind in map(item.callspec.params.get, ("db", "shared_db"))


def pytest_terminal_summary(terminalreporter) -> None:
    for result in itertools.chain(*terminalreporter.stats.values()):
        if getattr(result, "when", None) == "call":
            for name, line in result.user_properties:
                if name == "outcome":
                    terminalreporter.write_line(line)


@pytest.fixture
def report(record_property) -> Callable[[str], None]:
    """Say in a line, shown at the end of the run, what was done and what came of it: `report("...")`."""
    return functools.partial(record_property, "outcome")


# Linux has a file system in memory here.
MEMORY = Path("/dev/shm")
MIN_FREE_BYTES = 4 * 2**30


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory) -> Iterator[Path]:
    """A folder for databases, in memory if there is room: each commit waits for the disk."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MIN_FREE_BYTES:
        with tempfile.TemporaryDirectory(prefix="driver-analytics-", dir=MEMORY) as folder:
            yield Path(folder)
    else:
        yield tmp_path_factory.mktemp("data")


@pytest.fixture(scope="session")
def mongod_uri(data_folder) -> Iterator[str]:
    """A real MongoDB server."""
    try:
        with embedded_mongod(data_folder) as uri:
            yield uri
    except NoMongod as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory) -> Iterator[Redis]:
    """A Redis server."""
    if not shutil.which("redis-server"):
        reason = "there is no redis-server: apt-get install redis-server"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with Redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def _prepared(mongod_uri) -> Iterator[Database]:
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["test"]))
        yield client["test"]


def _empty(db: Database) -> None:
    for name in db.list_collection_names():
        db[name].delete_many({})


@pytest.fixture
def mongod(_prepared) -> Database:
    """An empty database of a real server, with its validators and indexes."""
    _empty(_prepared)
    return _prepared


@pytest.fixture
def recorder() -> Recorder:
    """The commands sent to `recorded_mongod`."""
    return Recorder()


@pytest.fixture
def recorded_mongod(mongod, mongod_uri, recorder) -> Iterator[Database]:
    """An empty database of a real server; the commands sent to it are recorded."""
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        yield client[mongod.name]


@pytest.fixture(params=["mongomock", "mongod"])
def db(request) -> Database:
    """An empty database: one of mongomock, one of a real server."""
    return memory_client()["test"] if request.param == "mongomock" else request.getfixturevalue("mongod")


@pytest.fixture(scope="module", params=["mongomock", "mongod"])
def shared_db(request) -> Iterator[Database]:
    """A database for the tests of a module that only read: one of mongomock, one of a real server."""
    if request.param == "mongomock":
        yield memory_client()["shared"]
        return
    with MongoClient(request.getfixturevalue("mongod_uri")) as client:
        prepare_collections(Store.of(client["shared"]))
        yield client["shared"]
        client.drop_database("shared")


@pytest.fixture
def clock() -> Iterator[Any]:
    """Freeze the time at NOW; a test may move it."""
    with time_machine.travel(NOW, tick=False) as coordinates:
        yield coordinates


@pytest.fixture
def store(db) -> Store:
    """The store in that database."""
    return Store.of(db)


@pytest.fixture
def load(db) -> Callable[..., None]:
    """Load documents in import format: `load(*trips, drivers=[...], fleet=...)`."""
    return functools.partial(store_contents.load, db)


class Service:
    """The service; requests have the key of fleet `f1` by default."""

    def __init__(self, db: Database, **settings: Any) -> None:
        self.db, self.store = db, Store.of(db)
        self.app = create_app(Config(mongodb_database=db.name, **settings), db.client)
        self.keys: dict[str, str] = {}

    def key(self, fleet: str) -> str:
        """Return a key of the fleet."""
        if fleet not in self.keys:
            self.keys[fleet] = issue_key(self.store, fleet)
        return self.keys[fleet]

    def get(self, path: str, **options: Any) -> Any:
        """Return the response to a request for a path under /api/v1; the options are those of `open`."""
        return self.open(f"/api/v1{path}", **options)

    def open(
        self,
        path: str,
        *,
        fleet: str | None = "f1",
        method: str = "GET",
        headers: Any = None,
        buffered: bool = False,
        **query: Any,
    ) -> Any:
        """Return the response; `fleet=None` sends no key, `buffered` reads a file to its end."""
        sent_headers = dict(headers or {})
        if fleet is not None:
            sent_headers.setdefault("Authorization", f"APIKEY {self.key(fleet)}")
        return self.app.test_client().open(
            path, method=method, headers=sent_headers, query_string=query or None, buffered=buffered
        )

    def errors(self, path: str, **options: Any) -> dict[str, list[str]]:
        """Return the reasons of a ValidationError."""
        response = self.get(path, **options)
        assert (response.status_code, response.json["error"]) == (400, "ValidationError"), response.text
        return response.json["errors"]


@pytest.fixture
def service(db, clock) -> Service:
    """The service on either store."""
    return Service(db)


@pytest.fixture
def make_service(db, clock) -> Callable[..., Service]:
    """Make the service with settings of its own."""
    return lambda **settings: Service(db, **settings)


@pytest.fixture
def command(mongod_uri, mongod, monkeypatch) -> Callable[..., Result]:
    """Run the command line on the real server: `command("keys", "list", ...)` returns click's Result."""
    monkeypatch.setenv("MONGODB_URI", mongod_uri)
    monkeypatch.setenv("MONGODB_DATABASE", mongod.name)

    def run(*words: str) -> Result:
        result = CliRunner().invoke(cli, list(words))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def long_timeout(monkeypatch) -> None:
    """Remove the time limit of requests."""
    monkeypatch.setattr("app.middleware.deadline.TIMEOUT_SECONDS", 1000)


@pytest.fixture
def short_batches(monkeypatch) -> None:
    """Wait less for more changes before a batch of a change stream ends."""
    monkeypatch.setattr("scripts.ingest.change_stream.BATCH_SECONDS", 0.03)


@pytest.fixture
def plain_page(monkeypatch) -> None:
    """Build reports with a page without content: its charts take most of the time."""
    monkeypatch.setattr("scripts.reports.page.make_page", lambda figures: b"<!doctype html>")


@pytest.fixture
def log(capfd) -> Callable[[], list[dict[str, Any]]]:
    """Return the lines that were logged since it was called last."""
    return lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]


@pytest.fixture
def write_lines(tmp_path) -> Callable[..., Path]:
    """Write an NDJSON file of documents, or of lines as they are; gzip where its name says so."""

    def write(name: str, *lines: Any) -> Path:
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write
