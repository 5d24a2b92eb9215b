"""docs/clients.md, the page for client developers: what it shows is what happens."""

import datetime
import json
import re
import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from werkzeug import Response
from werkzeug.serving import make_server

from app import create_app
from app.config import API, Config
from app.store import Store
from schemas.trip import TripSummary
from scripts.materialize.write_sources import delete_trips
from tests.clients.tools import generate, require_npm, run
from tests.factories import days_ago, make_trip
from tests.operations import OPERATIONS
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.clients

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
# The examples of each section, by title and language; `json` or `text` is what they print, `bash` makes the clients.
SECTIONS = {
    part.partition("\n")[0]: dict(re.findall(r"^```(\w+)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))
    for part in PAGE.split("\n## ")
}
COPY_SECTIONS = ("Make a request", "Rate limits and retries", "Keep a copy in sync")
# How an example prints the title of its section, before what it prints itself.
PRINT_TITLE = {"sh": "printf '\\n## {}\\n'", "python": "print('\\n## {}')", "typescript": "console.log('\\n## {}')"}
SUFFIXES = {"sh": "sh", "python": "py", "typescript": "mts"}
COMMANDS = {"sh": "sh -eu {}.sh", "python": "python -W error {}.py", "typescript": "node {}.mjs"}
MASKS = re.findall(r"^\| `(/.+?)` \| `(.+?)` \| (.+?) \|$", PAGE, re.MULTILINE)
# What differs from run to run: dates, and identifiers of requests.
CHANGING = re.compile(r'\d{4}-\d\d-\d\d|(?<="request_id":")\w+')


@pytest.fixture(scope="module")
def folder(tmp_path_factory, live):
    """The folder of somebody who did as the page says: the clients, and the programs `page` and `feed`."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "node_modules").symlink_to(require_npm())
    (commands,) = (section["bash"] for section in SECTIONS.values() if "bash" in section)
    generate("bash", "-euc", commands, cwd=folder, SERVICE=live.url)
    for language, suffix in SUFFIXES.items():
        examples = {title: section[language] for title, section in SECTIONS.items() if language in section}
        titled = [f"{PRINT_TITLE[language].format(title)}\n{example}" for title, example in examples.items()]
        (folder / f"page.{suffix}").write_text("\n".join(titled))
        (folder / f"feed.{suffix}").write_text("\n".join(examples[title] for title in COPY_SECTIONS))
    return folder


@pytest.fixture(scope="module")
def compiler_errors(folder):
    """What the compiler of TypeScript says of all programs."""
    return run("sh", "-c", "tsc --strict --target es2022 --module nodenext *.mts", cwd=folder).stdout


@pytest.fixture
def execute(folder, compiler_errors, tmp_path, refusing):
    """Run a program against that service, in a folder of its own; return what it prints."""

    def execute(name, language, key, *, fails=False):
        command = COMMANDS[language].format(folder / name).split()
        ran = run(*command, cwd=tmp_path, SERVICE=refusing.url, KEY=key)
        assert (ran.returncode != 0) == fails, compiler_errors + ran.stdout + ran.stderr
        return ran.stdout

    return execute


@pytest.fixture
def refusing(live):
    """The same service, which once refuses each path of `refusals`; `urls` are those that were requested."""
    config = Config(mongodb_database=live.db.name, log_level="ERROR", secret_key="secret of the tests" * 2)
    app, urls = create_app(config, live.db.client), []
    refusals = {f"{API}/driver/demo-01/trips": 429, f"{API}/changes": 503}

    def respond(environ, start_response):
        urls.append(environ["REQUEST_URI"])
        status = refusals.pop(environ["PATH_INFO"], None)
        response = Response("{}", status, {"Retry-After": "1"}) if status else app
        return response(environ, start_response)

    with make_server("127.0.0.1", 0, respond, threaded=True) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.port}", urls=urls, refusals=refusals)
        server.shutdown()
        thread.join()


def bare(text):
    """Return the values of a text without what differs from run to run, and without its spaces."""
    return re.split(r"(?<=[,{\[])", "".join(CHANGING.sub("#", text).split()))


@pytest.mark.parametrize("language", SUFFIXES)
def test_the_examples_print_what_the_page_shows_through_a_429_and_a_503(execute, live, refusing, language):
    printed = dict(part.split("\n", 1) for part in execute("page", language, live.key).split("\n## ")[1:])
    sections = {title: section for title, section in SECTIONS.items() if language in section}
    for title, section in sections.items():
        assert bare(printed[title]) == bare(section.get("json") or section["text"]), title
    assert refusing.refusals == {}


def read_copy(folder):
    """Return the trips of the copy, by trip_id, that the program in Python or TypeScript keeps."""
    if (folder / "copy.json").exists():
        return json.loads((folder / "copy.json").read_text())["trips"]
    with sqlite3.connect(folder / "copy.db") as copy:
        return {trip_id: json.loads(trip) for trip_id, trip in copy.execute("SELECT * FROM trips")}


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_the_copy_is_kept_in_sync_through_restart_error_and_restored_backup(
    execute, live, refusing, tmp_path, language
):
    fleet = f"copy-{language}"

    def sync():
        """Run the program, compare its copy, and return the requests of the feed that it made."""
        refusing.urls.clear()
        execute("feed", language, issue_key(live.db, fleet))
        stored = live.db.trips.find({"fleet": fleet})
        assert read_copy(tmp_path) == {trip["trip_id"]: TripSummary().dump(trip) for trip in stored}
        return [url for url in refusing.urls if "/changes" in url]

    load(live.db, *(make_trip(days_ago(3), trip_id=f"t{n}") for n in range(5)), fleet=fleet)
    assert "cursor" not in sync()[0]
    load(live.db, make_trip(days_ago(2), "d2", trip_id="t1"), make_trip(days_ago(2), trip_id="t7"), fleet=fleet)
    delete_trips(Store.of(live.db), fleet, ["t2"])
    assert ["cursor" in url for url in sync()] == [True]
    kept, refusing.refusals[f"{API}/changes"] = read_copy(tmp_path), 400
    execute("feed", language, issue_key(live.db, fleet), fails=True)
    assert read_copy(tmp_path) == kept
    live.db.fleets.update_one({"_id": fleet}, {"$set": {"feed_key": "another"}})
    assert ["cursor" in url for url in sync()] == [True, False]


def test_typescript_compiles(compiler_errors):
    assert compiler_errors == ""


@pytest.mark.parametrize(("path", "mask", "shown"), MASKS, ids=[f"{path} {mask}" for path, mask, _ in MASKS])
def test_a_mask_gives_what_the_page_shows(live, path, mask, shown):
    monday = days_ago(datetime.datetime.now(datetime.UTC).weekday() + 7)[:10]
    path = path.replace("$since", days_ago(30)[:10]).replace("$monday", monday)
    response = httpx.get(f"{live.url}{API}{path}", headers={"Authorization": f"APIKEY {live.key}", "X-Fields": mask})
    if response.status_code == 200:
        assert f"`{response.text}`" == shown
    else:
        assert f"{response.status_code} {response.json()['error']}, `{response.json()['message']}`" == shown


def test_the_operation_ids_that_the_page_names_are_those_of_the_document():
    named = set(re.findall(r"`((?:list|get)[A-Z]\w+)`", PAGE))
    assert {"listDrivers", "listTrips"} <= named <= {operation["operationId"] for operation in OPERATIONS.values()}
