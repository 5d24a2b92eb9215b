"""The browser that pages are looked at with, and the services that they are pages of."""

import contextlib
import functools
import shutil
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.explorer_fleets import load_fleet
from tests.browser.visit import SCREEN, TIMEOUT_MS, Visit
from tests.clients.tools import require, require_npm
from tests.service_process import run_service
from tests.store_contents import issue_key

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


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser, without a window."""
    path = require(shutil.which("chromium"), "There is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def axe() -> str:
    """The script of axe-core, which checks the accessibility of a page."""
    return (require_npm() / "axe-core" / "axe.min.js").read_text()


@contextlib.contextmanager
def serve(mongod_uri, folder, name, **settings) -> Iterator[SimpleNamespace]:
    """Run a service: its `address` and `db`, and `key("demo")`, which loads a fleet when it is called first."""
    # Nobody reads the log, and the service waits while the pipe of its log is full.
    with run_service(mongod_uri, folder, name, LOG_LEVEL="WARNING", **settings) as (process, db):
        key = functools.cache(functools.partial(load_fleet, db))
        yield SimpleNamespace(address=f"http://{process.bind}/", db=db, key=key)


@pytest.fixture(scope="package")
def live(tmp_path_factory, mongod_uri):
    """A service."""
    with serve(mongod_uri, tmp_path_factory.mktemp("explorer"), "explorer") as service:
        yield service


@pytest.fixture(scope="package")
def busy(tmp_path_factory, mongod_uri):
    """A service with map tiles that allows eight requests in two seconds, and a driver four."""
    settings = {**TILES, "RATE_LIMIT": "8 per 2 second", "DRIVER_RATE_LIMIT": "4 per 2 second"}
    with serve(mongod_uri, tmp_path_factory.mktemp("busy"), "explorer_busy", **settings) as service:
        yield service


@pytest.fixture
def window(chromium):
    """Open a window to visit an address with; options are those of a browser context."""
    contexts = []

    def window(address, width=SCREEN, **options):
        options = {"viewport": {"width": width, "height": 900}, "locale": "en-GB", **options}
        contexts.append(context := chromium.new_context(**options))
        context.set_default_timeout(TIMEOUT_MS)
        return Visit(context, address)

    yield window
    for context in contexts:
        context.close()


@pytest.fixture
def visit(window, live):
    """Open the explorer: `visit("demo", "#/reports")` signs in to a fleet, and goes to a view.

    With `driver` it signs in as a driver of the fleet. Other options are those of `window`.
    """

    def visit(fleet=None, view=None, *, driver=None, service=live, **options):
        opened = window(service.address, **options)
        if fleet:
            key = service.key(fleet)
            opened.sign_in(issue_key(service.db, fleet, driver) if driver else key)
        if view:
            opened.open(view)
        return opened

    return visit
