"""What a worker does before it accepts requests."""

import socket

import pytest
import redis
from pymongo.monitoring import ConnectionPoolListener

from app import create_app
from app.config import Config
from app.database import service_client
from app.services import get_services
from app.store import Store
from scripts.admin.keys import issue_key
from scripts.server.checks import open_connections


class CreatedConnections(ConnectionPoolListener):
    """Counts the connections that the pools of a client open."""

    def __init__(self):
        self.count = 0

    def connection_created(self, event):
        self.count += 1

    def _ignore(self, event):
        pass

    pool_created = pool_ready = pool_cleared = pool_closed = _ignore
    connection_ready = connection_closed = connection_checked_out = connection_checked_in = _ignore
    connection_check_out_started = connection_check_out_failed = _ignore


@pytest.fixture
def created():
    return CreatedConnections()


@pytest.fixture
def make_app(created):
    """Make the application with the URIs of MongoDB and of Redis."""
    clients = []

    def make(mongodb_uri, redis_uri):
        config = Config(
            secret_key="test", mongodb_database="test", mongodb_uri=mongodb_uri, ratelimit_storage_uri=redis_uri
        )
        clients.append(service_client(config, [created]))
        return create_app(config, clients[0])

    yield make
    clients[0].close()


@pytest.fixture
def silent_address():
    """The address of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "{}:{}".format(*server.getsockname())


@pytest.fixture
def count_connections(created, redis_server):
    """Return how many connections to MongoDB and to Redis were opened."""
    with redis.Redis.from_url(redis_server.uri) as client:
        yield lambda: (created.count, client.info("stats")["total_connections_received"])


def test_the_first_request_opens_no_connection(mongod, mongod_uri, redis_server, make_app, count_connections):
    app, key = make_app(mongod_uri, redis_server.uri), issue_key(Store.of(mongod), "acme")
    at_start = count_connections()
    open_connections(get_services(app))
    opened = count_connections()
    response = app.test_client().get("/api/v1/drivers", headers={"Authorization": f"APIKEY {key}"})
    assert (response.status_code, "X-RateLimit-Remaining" in response.headers) == (200, True)
    assert [after - before for before, after in zip(at_start, opened, strict=True)] == [1, 1]
    assert count_connections() == opened


def test_servers_that_do_not_respond_are_logged(silent_address, make_app, log):
    app = make_app(f"mongodb://{silent_address}/?directConnection=true", f"redis://{silent_address}")
    open_connections(get_services(app))
    assert [line["event"].partition(":")[0] for line in log()] == ["MongoDB does not respond", "Redis does not respond"]
