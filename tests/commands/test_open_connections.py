"""What a worker does before it accepts requests."""

import contextlib
import socket

from app import create_app
from app.config import Config
from app.database import service_client
from app.services import get_services
from scripts.server.checks import open_connections


def test_servers_that_do_not_respond_are_logged(log):
    # A server that accepts connections and never responds.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        uris = {
            "mongodb_uri": f"mongodb://{address}/?directConnection=true",
            "ratelimit_storage_uri": f"redis://{address}",
        }
        config = Config(secret_key="test", **uris)
        with contextlib.closing(service_client(config)) as client:
            open_connections(get_services(create_app(config, client)))
    assert [line["event"].partition(":")[0] for line in log()] == ["MongoDB does not respond", "Redis does not respond"]
