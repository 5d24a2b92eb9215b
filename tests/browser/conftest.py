"""The browser that pages are looked at with."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

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
