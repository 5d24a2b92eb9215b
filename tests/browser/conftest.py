"""The browser that pages are looked at with."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.explorer_fleets import load_fleets, make_long_trip
from tests.browser.explorer_visit import SCREEN, TIMEOUT_MS, Visit
from tests.service_process import run_service
from tests.store_contents import issue_key, load

# Chromium's own calls home are no part of what the page does.
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TILES = {"MAP_TILES_URL": "http://tiles.invalid/{z}/{x}/{y}.png", "MAP_TILES_ATTRIBUTION": "© <b>Tiles"}
# Nobody reads the log, and the service waits while the pipe of its log is full.
SILENT = {"LOG_LEVEL": "WARNING"}


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser, without a window."""
    path = shutil.which("chromium")
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("There is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def axe() -> str:
    """The script of axe-core, which checks the accessibility of a page."""
    path = Path(__file__).parents[1] / "clients" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.exists():
        reason = "npm's packages are not installed: 'make test-clients' does that"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return path.read_text()


@pytest.fixture(scope="package")
def live(tmp_path_factory, mongod_uri):
    """The address of a service with several fleets, and a key of each."""
    with run_service(mongod_uri, tmp_path_factory.mktemp("explorer"), "explorer", **SILENT) as (process, db):
        yield f"http://{process.bind}/", load_fleets(db)


@pytest.fixture(scope="package")
def busy(tmp_path_factory, mongod_uri):
    """The address of a service with map tiles that allows two requests in two seconds, and a key."""
    settings = {**SILENT, **TILES, "RATE_LIMIT": "2 per 2 second"}
    with run_service(mongod_uri, tmp_path_factory.mktemp("busy"), "explorer_busy", **settings) as (process, db):
        load(db, make_long_trip())
        yield f"http://{process.bind}/", issue_key(db)


@pytest.fixture
def visit(chromium, live):
    """Open the page: `visit("demo")` signs in to a fleet; options are those of a browser context."""
    contexts = []

    def visit(fleet=None, address=live[0], key=None, **options):
        viewport = {"width": options.pop("width", SCREEN), "height": 900}
        contexts.append(chromium.new_context(viewport=viewport, **options))
        contexts[-1].set_default_timeout(TIMEOUT_MS)
        opened = Visit(contexts[-1], address)
        if fleet or key:
            opened.sign_in(key or live[1][fleet])
        return opened

    yield visit
    for context in contexts:
        context.close()
