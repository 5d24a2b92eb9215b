"""The programs of docs/clients.md that keep a copy in sync, against a service that often refuses a request."""

import itertools
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from app.store import Store
from schemas.trip import TripSummary
from scripts.materialize.trips import delete_trips
from tests.clients.test_clients_page import PAGE, SECTIONS, TSC
from tests.factories import days_ago, make_trip
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.clients

FLEET, TITLES = "copy", ("Make a request", "Rate limits and retries", "Keep a copy in sync")
EXAMPLES = dict(zip((part.partition("\n")[0] for part in PAGE.split("\n## ")), SECTIONS, strict=True))
HEADERS = ("Retry-After", "Content-Type")


class Proxy(BaseHTTPRequestHandler):
    """Forwards requests to the URL of the server, and refuses every other one with a 503."""

    def do_GET(self):
        """Respond to a request."""
        self.server.paths.append(self.path)
        if next(self.server.turns):
            self.respond(503, {"Retry-After": "1"}, b"{}")
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
        self.url, self.paths, self.turns = url, [], itertools.cycle([True, False])
        super().__init__(("127.0.0.1", 0), Proxy)


@pytest.fixture
def proxy(busy):
    """A proxy before the service, which itself refuses clients that do not wait."""
    with ProxyServer(busy.url) as server:
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


PROGRAMS = {
    "python": ("example.py", "python -W error example.py", read_database),
    "typescript": ("example.mts", f"{TSC} && node example.mjs", read_json),
}


@pytest.fixture
def folder(tmp_path, document, node_modules, run):
    """A folder with what a program in TypeScript needs."""
    (tmp_path / "node_modules").symlink_to(node_modules)
    ran = run("openapi-typescript", document, "--output", "api.d.ts", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
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


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_copy_is_kept_in_sync_through_refusals_and_restarts(request, tmp_path, data, sync, language):
    name, *program = PROGRAMS[language]
    folder = request.getfixturevalue("folder") if language == "typescript" else tmp_path
    (folder / name).write_text("\n".join(EXAMPLES[title][language] for title in TITLES))
    assert "cursor" not in sync(folder, *program)[0]
    load(data, make_trip(days_ago(2), "d2", trip_id="t1"), make_trip(days_ago(2), trip_id="t7"), fleet=FLEET)
    delete_trips(Store.of(data), FLEET, ["t2"])
    assert all("cursor" in path for path in sync(folder, *program))
