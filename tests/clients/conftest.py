"""A fleet behind live services, the document as a file, and what npm installed."""

import contextlib
import datetime
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from app import openapi_document
from app.store import Store
from scripts.demo.fleet import make_drivers
from scripts.mongodb.connection import prepare_collections
from scripts.reports.build import build_report, current_report_date
from tests.factories import make_event, make_event_summary, make_trip
from tests.service_process import ServiceProcess
from tests.store_contents import issue_key, load

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
# The tools are those of the virtual environment and of npm. They do not check for updates, and npm does not
# speak of its own settings.
ENVIRONMENT = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(NODE_MODULES / ".bin"), os.environ["PATH"]]),
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "npm_config_update_notifier": "false",
    "npm_config_loglevel": "error",
}
# One a day, the last of them six days ago: a week that begins 7 to 13 days ago holds some, whatever the day is.
TRIPS, LAST_TRIP_DAYS_AGO = 11, 6


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first the tests that wait longest, so that they wait while others run."""
    items.sort(key=lambda item: item.path != HERE / "test_clients_page.py")


@pytest.fixture(scope="session")
def fleet(mongod_uri) -> Iterator[Database]:
    """A database with the drivers of the demonstration fleet, of whom the first drove 12.5 miles on 11 days.

    Its report for this week's Monday is built.
    """
    with MongoClient(mongod_uri) as client:
        db = client["clients"]
        prepare_collections(Store.of(db))
        today = datetime.datetime.now(datetime.UTC).date()
        rounds = [_round_trip(number, today) for number in range(1, 7)]
        trips = [_trip(number, today) for number in range(1, TRIPS + 1)]
        load(db, *rounds, *trips, drivers=make_drivers(today), fleet="demo")
        build_report(Store.of(db), "demo", current_report_date())
        yield db
        client.drop_database("clients")


def _trip(number: int, today: datetime.date) -> dict[str, Any]:
    date = today - datetime.timedelta(days=LAST_TRIP_DAYS_AGO + TRIPS - number)
    trip = make_trip(f"{date}T08:00", "demo-01", trip_id=f"demo-01-{43 + number}-1", distance_miles=12.5)
    speeds = {"user_speed_mph": 52.0, "speed_limit_mph": 35.0, "max_user_speed_mph": 55.5}
    speeding = {"event_type": 9, "event_name": "OVERSPEEDING", "event_data": speeds}
    counts = {"phone_use_count": 1, "phone_use_time_seconds": 36}
    counts |= {"overspeeding_count": 1, "overspeeding_time_seconds": 90}
    events = [make_event(trip["trip_start_time"], **speeding)]
    return {**trip, "event_summary": make_event_summary(**counts), "events": events}


def _round_trip(number: int, today: datetime.date) -> dict[str, Any]:
    """Return a trip of the round that the fourth driver drove in six trips under one tracking_id."""
    date = today - datetime.timedelta(days=LAST_TRIP_DAYS_AGO)
    return make_trip(f"{date}T{8 + number:02}:00", "demo-04", trip_id=f"demo-04-54-{number}", tracking_id="round-04-54")


@contextlib.contextmanager
def _serve(fleet: Database, uri: str, folder: Path, **settings: str) -> Iterator[SimpleNamespace]:
    settings |= {"MONGODB_URI": uri, "MONGODB_DATABASE": fleet.name}
    with ServiceProcess(folder, **settings) as process:
        process.read(1)
        yield SimpleNamespace(url=f"http://{process.bind}", key=issue_key(fleet, "demo"), stop=process.stop)


@pytest.fixture(scope="module")
def live(fleet, mongod_uri, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """A live service of the fleet: its `url`, and a `key`."""
    with _serve(fleet, mongod_uri, tmp_path_factory.mktemp("live")) as service:
        yield service


@pytest.fixture
def busy(fleet, mongod_uri, tmp_path_factory) -> Iterator[SimpleNamespace]:
    """One that refuses a client which does not wait."""
    with _serve(fleet, mongod_uri, tmp_path_factory.mktemp("busy"), RATE_LIMIT="2 per second") as service:
        yield service


@pytest.fixture(scope="session")
def document(tmp_path_factory) -> Path:
    """The OpenAPI document, in a file."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(openapi_document(""))
    return path


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder of what npm installed."""
    if not (NODE_MODULES / ".installed").exists():
        reason = "npm's packages are not installed: 'make test-clients' does that"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return NODE_MODULES


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command with those tools: `run("redocly", "lint", path, KEY=...)`."""

    def run(*command: str | Path, cwd: Path = HERE, **environment: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, **environment}
        return subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    return run


@pytest.fixture(scope="session")
def make_client(run) -> Callable[..., None]:
    """Run a generator of clients, which has to end well and without a warning."""

    def make_client(*command: str | Path, **options: Any) -> None:
        completed = run(*command, **options)
        output = completed.stdout + completed.stderr
        assert completed.returncode == 0, output
        assert "warn" not in output.lower(), output

    return make_client


@pytest.fixture(scope="session")
def python_client(tmp_path_factory, make_client) -> Iterator[Callable[[Path, str], Callable[[str], Any]]]:
    """Generate a Python client: `python_client(document, package)` returns what imports its modules by name."""
    with pytest.MonkeyPatch.context() as patch:

        def generate(document: Path, package: str) -> Callable[[str], Any]:
            folder = tmp_path_factory.mktemp("python")
            options = ("--fail-on-warning", "--meta", "none", "--output-path", folder / package)
            make_client("openapi-python-client", "generate", "--path", document, *options)
            patch.syspath_prepend(folder)
            return lambda name: importlib.import_module(f"{package}.{name}")

        yield generate
