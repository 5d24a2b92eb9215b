"""The programs of docs/clients.md that keep a copy in sync, against a feed that refuses every other request."""

import itertools
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from app.store import Store
from schemas.trip import TripSummary
from scripts.ingest.writes import delete_trips
from tests.clients.test_clients_page import SECTIONS, TSC
from tests.factories import days_ago, make_trip
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.clients

FLEET, TITLES = "copy", ("Make a request", "Rate limits and retries", "Keep a copy in sync")
HEADERS = ("Retry-After", "Content-Type")


class Proxy(BaseHTTPRequestHandler):
    """Forwards requests to the URL of the server; of those of the change feed it refuses every other one: 503, 429."""

    def do_GET(self):
        """Respond to a request."""
        self.server.paths.append(self.path)
        # tests/clients/test_clients_page.py has refusals of other requests.
        if refusal := "/changes" in self.path and next(self.server.refusals):
            self.respond(refusal, {"Retry-After": "1"}, b"{}")
        else:
            key = {"Authorization": self.headers["Authorization"]}
            response = httpx.get(self.server.url + self.path, headers=key)
            named = {name: response.headers[name] for name in HEADERS if name in response.headers}
            self.respond(response.status_code, named, response.content)

    def respond(self, status, headers, body):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Print nothing."""


class ProxyServer(ThreadingHTTPServer):
    """A proxy, which keeps the paths of all requests."""

    def __init__(self, url):
        self.url, self.paths, self.refusals = url, [], itertools.cycle([503, None, 429, None])
        super().__init__(("127.0.0.1", 0), Proxy)


@pytest.fixture
def proxy(live):
    """A proxy before the service."""
    with ProxyServer(live.url) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def data(fleet):
    """The database with a fleet of its own."""
    load(fleet, *(make_trip(days_ago(3), trip_id=f"t{n}") for n in range(5)), fleet=FLEET)
    yield fleet
    delete_trips(Store.of(fleet), FLEET, [f"t{n}" for n in range(9)])


def find_visible(db):
    return {trip["trip_id"]: TripSummary().dump(trip) for trip in db.trips.find({"fleet": FLEET})}


def read_database(folder):
    with sqlite3.connect(folder / "copy.db") as copy:
        return {trip_id: json.loads(trip) for trip_id, trip in copy.execute("SELECT * FROM trips")}


def read_json(folder):
    return json.loads((folder / "copy.json").read_text())["trips"]


# The fixture that makes the folder of a program, the command that runs it, and what reads its copy.
PROGRAMS = {
    "python": ("written", "python -W error example.py", read_database),
    "typescript": ("compiled", "node example.mjs", read_json),
}


def join_examples(language):
    return "\n".join(SECTIONS[title][language] for title in TITLES)


@pytest.fixture
def written(tmp_path):
    """A folder with the program in Python."""
    (tmp_path / "example.py").write_text(join_examples("python"))
    return tmp_path


@pytest.fixture
def compiled(tmp_path, document, node_modules, run):
    """A folder with the program in TypeScript, compiled once for all its runs."""
    (tmp_path / "node_modules").symlink_to(node_modules)
    (tmp_path / "example.mts").write_text(join_examples("typescript"))
    ran = run("sh", "-c", f"openapi-typescript '{document}' --output api.d.ts && {TSC}", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return tmp_path


@pytest.fixture
def sync(run, proxy, data):
    """Run a program in a folder, compare its copy, and return the requests of the feed that it made."""

    def sync(folder, command, read_copy):
        proxy.paths.clear()
        url, key = f"http://127.0.0.1:{proxy.server_port}", issue_key(data, FLEET)
        ran = run("sh", "-c", command, cwd=folder, SERVICE=url, KEY=key)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert read_copy(folder) == find_visible(data)
        return [path for path in proxy.paths if "/changes" in path]

    return sync


@pytest.mark.parametrize(("folder", "command", "read_copy"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_copy_is_kept_in_sync_through_refusals_and_restarts(request, data, sync, folder, command, read_copy):
    program = request.getfixturevalue(folder), command, read_copy
    assert "cursor" not in sync(*program)[0]
    load(data, make_trip(days_ago(2), "d2", trip_id="t1"), make_trip(days_ago(2), trip_id="t7"), fleet=FLEET)
    delete_trips(Store.of(data), FLEET, ["t2"])
    assert all("cursor" in path for path in sync(*program))
