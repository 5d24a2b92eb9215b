"""What the scenarios share: the marker, a healthy store, and instances of the service."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.resilience.fleet import expected_responses, load_fleet
from tests.resilience.load import Request
from tests.resilience.processes import Mongod, Primary, Redis, Service

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        # Tests that send requests in this process for minutes run with the other long ones.
        if HERE in item.path.parents and not item.get_closest_marker("large"):
            item.add_marker(pytest.mark.resilience)


class Store(NamedTuple):
    """A mongod with the fleet, a key of it, and the expected bodies by request."""

    server: Mongod
    key: str
    expected: dict[Request, set[bytes]]

    @property
    def uri(self):
        return self.server.uri

    def repair(self):
        """Start or resume it, whether it was stopped or paused."""
        self.server.resume() if self.server.runs else self.server.start()


@pytest.fixture(scope="session")
def store(tmp_path_factory, redis_server):
    """A Store of one mongod, which all tests share: a test that breaks it repairs it."""
    folder = tmp_path_factory.mktemp("store")
    with Primary(folder, "--setParameter", "enableTestCommands=1") as server:
        key = load_fleet(server.uri, folder)
        with Service(folder, MONGODB_URI=server.uri, RATELIMIT_STORAGE_URI=redis_server.uri) as service:
            expected = expected_responses(service, key)
        yield Store(server, key, expected)


@pytest.fixture
def make_service(tmp_path, redis_server):
    """Make a service that logs to the test's folder, to be started by `with`: `make_service(MONGODB_URI=...)`."""

    def make(name="service", **settings):
        return Service(tmp_path, name, **{"RATELIMIT_STORAGE_URI": redis_server.uri, **settings})

    return make


@pytest.fixture
def counters(tmp_path):
    """A Redis of its own."""
    with Redis(tmp_path) as server:
        yield server


@pytest.fixture
def pair(make_service, store):
    """Two instances, with which the proxies are shipped."""
    settings = {"MONGODB_URI": store.uri, "LOG_LEVEL": "WARNING"}
    with make_service("one", **settings) as one, make_service("two", **settings) as two:
        yield one, two
