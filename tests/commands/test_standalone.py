"""Commands on a MongoDB that is no replica set, and so has no transactions."""

import json

import pytest
from pymongo import MongoClient

from tests.factories import make_driver
from tests.resilience.processes import Mongod
from tests.service_process import free_port

pytestmark = pytest.mark.usefixtures("mongod_uri")

REMEDY = (
    "Error: MongoDB runs as a standalone server, which has no transactions. Start mongod with --replSet NAME and run "
    "rs.initiate() once: a replica set of one member is enough.\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A standalone server."""
    with Mongod(tmp_path_factory.mktemp("standalone")) as server:
        yield server


@pytest.mark.parametrize(
    "words",
    [
        "import --fleet f1 --drivers drivers",
        "keys issue --fleet f1",
        "rollups rebuild",
        "follow",
        "backup saved",
        "serve --demo",
    ],
)
def test_a_command_says_in_one_line_what_to_do(run_main, server, tmp_path, words):
    (tmp_path / "drivers").write_text(json.dumps(make_driver()))
    places = {name: str(tmp_path / name) for name in ("drivers", "saved")}
    settings = {"MONGODB_URI": server.uri, "DATA_DIR": str(tmp_path), "BIND": f"127.0.0.1:{free_port()}"}
    assert run_main(*(places.get(word, word) for word in words.split()), **settings) == (1, "", REMEDY)
    with MongoClient(server.uri) as client:
        assert "driver_analytics" not in client.list_database_names()
