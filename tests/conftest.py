"""The fixtures that tests share: the two stores, the service on either, and a frozen clock."""

import collections
import contextlib
import functools
import gc
import gzip
import itertools
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from click.testing import CliRunner, Result
from hypothesis import settings
from limits import parse
from pymongo import MongoClient
from pymongo.database import Database
from werkzeug.serving import make_server

from app import create_app
from app.config import Config
from app.store import Store
from app.store.scope import Scope
from scripts.cli import cli
from scripts.mongodb.collections import prepare_collections
from scripts.mongodb.embedded_mongod import NoMongod, embedded_mongod, get_mongod_path
from scripts.mongodb.memory_store import memory_client
from tests import store_contents
from tests.resilience.processes import Redis

# A busy machine is no reason to fail.
settings.register_profile("untimed", settings(deadline=None))
settings.load_profile("untimed")

# A Wednesday.
NOW = "2026-03-18T12:00:00Z"
# A server that is stopped ends after so many seconds.
POLL_SECONDS = 0.01
# How long the server of the tests keeps what was deleted. An idle server looks every 10 seconds whether it has to write
# because it is idle, so 20 seconds may pass between two writes. The snapshot of a request is that of the last one.
SNAPSHOT_SECONDS = 30


NO_MONGOD = pytest.StashKey[str]()


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--store",
        choices=["mongod", "mongomock"],
        help="what the fixtures db and shared_db are; by default a real server, or mongomock where there is none",
    )


def pytest_configure(config) -> None:
    try:
        get_mongod_path()
    except NoMongod as error:
        config.stash[NO_MONGOD] = str(error)
    if config.option.store is None:
        is_mock = NO_MONGOD in config.stash and not os.environ.get("CI")
        config.option.store = "mongomock" if is_mock else "mongod"


def pytest_collection_finish() -> None:
    # What was imported stays. A garbage collection that went through it would take a tenth of a second each time.
    gc.freeze()


def pytest_unconfigure() -> None:
    # DuckDB would print each of its objects that nothing has collected when the process ends.
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter, config) -> None:
    terminalreporter.write_line(f"store: {config.option.store}")
    for result in itertools.chain(*terminalreporter.stats.values()):
        if getattr(result, "when", None) == "call":
            for name, line in result.user_properties:
                if name == "outcome":
                    terminalreporter.write_line(line)
    skipped = collections.Counter(result.longrepr[2] for result in terminalreporter.stats.get("skipped", ()))
    for reason, count in skipped.most_common():
        terminalreporter.write_line(f"{count} x {reason}")


@pytest.fixture
def report(record_property) -> Callable[[str], None]:
    """Say in a line, shown at the end of the run, what was done and what came of it: `report("...")`."""
    return functools.partial(record_property, "outcome")


# Linux has a file system in memory here.
MEMORY = Path("/dev/shm")
MIN_FREE_BYTES = 4 * 2**30


@pytest.fixture(scope="session")
def data_folder() -> Iterator[Path]:
    """A folder for databases, in memory if there is room: each commit waits for the disk."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MIN_FREE_BYTES
    with tempfile.TemporaryDirectory(prefix="driver-analytics-", dir=MEMORY if has_room else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def mongod_uri(pytestconfig, data_folder) -> Iterator[str]:
    """A real MongoDB server."""
    if pytestconfig.option.store == "mongomock":
        pytest.skip(pytestconfig.stash.get(NO_MONGOD, "it needs a real server, and the store is mongomock"))
    with embedded_mongod(data_folder) as uri:
        with MongoClient(uri) as client:
            # Each test would read past what was deleted in the 5 minutes that are the default.
            client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=SNAPSHOT_SECONDS)
        yield uri


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
def _client(mongod_uri) -> Iterator[MongoClient]:
    with MongoClient(mongod_uri) as client:
        for name in ("test", "shared"):
            prepare_collections(Store.of(client[name]))
        yield client


def _emptied(db: Database) -> Database:
    for name in db.list_collection_names():
        db[name].delete_many({})
    return db


@pytest.fixture
def mongod(_client) -> Database:
    """An empty database of a real server, with its validators and indexes."""
    return _emptied(_client["test"])


@pytest.fixture
def db(request, pytestconfig) -> Database:
    """An empty database of the store that --store names."""
    is_mock = pytestconfig.option.store == "mongomock"
    return memory_client()["test"] if is_mock else request.getfixturevalue("mongod")


@pytest.fixture(scope="module")
def shared_db(request, pytestconfig) -> Database:
    """Another database of the store that --store names, for the tests of a module that only read."""
    is_mock = pytestconfig.option.store == "mongomock"
    return memory_client()["shared"] if is_mock else _emptied(request.getfixturevalue("_client")["shared"])


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

    def key(self, fleet: str, driver: str | None = None) -> str:
        """Return a key of the fleet, or of one driver of it."""
        scope = Scope(fleet, driver)
        if scope.identity not in self.keys:
            self.keys[scope.identity] = store_contents.issue_key(self.db, *scope)
        return self.keys[scope.identity]

    def get(self, path: str, **options: Any) -> Any:
        """Return the response to a request for a path under /api/v1; the options are those of `open`."""
        return self.open(f"/api/v1{path}", **options)

    def open(
        self, path: str, *, fleet="f1", driver=None, method="GET", headers=None, buffered=False, **query: Any
    ) -> Any:
        """Return the response; `fleet=None` sends no key, `driver` that of one; `buffered` reads a file to its end."""
        sent_headers = dict(headers or {})
        if fleet is not None:
            sent_headers.setdefault("Authorization", f"APIKEY {self.key(fleet, driver)}")
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


NO_LIMITS = dict.fromkeys(("rate_limit", "driver_rate_limit"), parse("1000000000 per minute"))


@pytest.fixture(scope="module")
def shared_service(shared_db) -> Iterator[Service]:
    """The service on `shared_db`, at NOW and with NO_LIMITS, for the tests of a module that only read.

    Making an application takes longer than ten requests.
    """
    with time_machine.travel(NOW, tick=False):
        yield Service(shared_db, **NO_LIMITS)


@pytest.fixture
def make_service(db, clock) -> Callable[..., Service]:
    """Make the service with settings of its own."""
    return lambda **settings: Service(db, **settings)


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Serve the application, `app`, of a Service or another object in a thread; return its URL."""
    with contextlib.ExitStack() as stack:

        def start(service: Any) -> str:
            server = stack.enter_context(make_server("127.0.0.1", 0, service.app, threaded=True))
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS})
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return f"http://127.0.0.1:{server.port}"

        yield start


@pytest.fixture
def command(mongod_uri, mongod, monkeypatch) -> Callable[..., Result]:
    """Run the command line on the real server: `command("keys", "list", ...)` returns click's Result.

    `stdin` is its standard input.
    """
    monkeypatch.setenv("MONGODB_URI", mongod_uri)
    monkeypatch.setenv("MONGODB_DATABASE", mongod.name)

    def run(*words: str, stdin: str | bytes = "") -> Result:
        result = CliRunner().invoke(cli, list(words), stdin)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def no_authorities(monkeypatch, tmp_path) -> None:
    """Trust no certificate authority. Without TLS, reading all of them would take most of the time of a request."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture
def long_timeout(monkeypatch) -> None:
    """Remove the time limit of requests."""
    monkeypatch.setattr("app.middleware.deadline.TIMEOUT_SECONDS", 1000)


@pytest.fixture
def short_batches(monkeypatch) -> None:
    """Wait less for more changes before a batch of a change stream ends."""
    monkeypatch.setattr("scripts.ingest.change_stream.BATCH_SECONDS", 0.03)


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
