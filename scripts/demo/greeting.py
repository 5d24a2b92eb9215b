"""The lines that `serve --demo` prints: a key, what to try first, example requests, and links to a report."""

import contextlib
import datetime
import os
import shlex
from pathlib import Path
from urllib.parse import quote

from pymongo import DESCENDING

from app.config import API, Config
from app.report_links import ReportLinkSigner
from app.store import Document, Store
from app.store.api_keys import get_key
from app.store.dates import monday_of
from app.store.reports import FILES
from app.store.trips import get_max_visible_end_ms
from schemas.date_params import HISTORY
from scripts.admin.keys import issue_key
from scripts.demo.fleet import FLEET
from scripts.demo.load import ensure_demo
from scripts.reports.build import current_report_date


def prepare_demo(store: Store, config: Config) -> list[str]:
    """Load the demonstration fleet into an empty store, and return the lines to print."""
    if not ensure_demo(store):
        return ["The store has fleets of your own. Issue a key for one: driver-analytics keys issue --fleet ID"]
    key = _get_or_issue_key(store, Path(config.data_dir, "demo.key"))
    return [
        f"A key for the demonstration fleet: {key}",
        get_first_step(config, key),
        *_example_requests(store, config, key),
        *_report_links(store, config, key),
    ]


def get_first_step(config: Config, key: str) -> str:
    """Return the line that says what to try first: the explorer, unless only a Unix socket leads to it.

    The fragment of a URL stays in the browser, so the server never sees the key in it.
    """
    if config.bind.startswith("unix:") and not config.public_base_url:
        return "Try first: run one of these requests:"
    base_url = config.public_base_url or get_local_url(config.bind)
    return f"Try first: open {base_url}/#key={key} to look at the fleet. Or run one of these requests:"


def _get_or_issue_key(store: Store, path: Path) -> str:
    """Return the key in the file if it is valid; otherwise issue one and write it to the file (mode 0600)."""
    with contextlib.suppress(OSError):
        key_in_file = path.read_text().strip()
        stored = get_key(store, key_in_file)
        if stored is not None and stored.fleet == FLEET:
            return key_in_file
    key = issue_key(store, FLEET)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key


def _example_requests(store: Store, config: Config, key: str) -> list[str]:
    """Return a curl command line for each of several endpoints."""
    trip = _get_recent_trip(store, config)
    if trip is None:
        return []
    driver_id, date, monday = quote(trip["driver_id"], safe=""), trip["date"], monday_of(trip["date"])
    paths = (
        "/drivers?limit=3",
        f"/driver/{driver_id}/trips?start_date={monday}&limit=2",
        f"/trip/trip_id/{quote(trip['trip_id'], safe='')}",
        f"/trip/tracking_id/{quote(trip['tracking_id'], safe='')}",
        f"/driver-aggregate/daily?start_date={date}&driver_id={driver_id}",
        f"/driver-aggregate/weekly?start_date={monday}&driver_id={driver_id}",
        f"/driver/{driver_id}/score?start_date={monday}&interval=day",
        f"/ranking?period=week&start_date={monday}&limit=3",
    )
    header = shlex.quote(f"Authorization: APIKEY {key}")
    return [f"curl -H {header} {_curl_arguments(config.bind, path)}" for path in paths]


def _report_links(store: Store, config: Config, key: str) -> list[str]:
    links, stored_key = ReportLinkSigner(config), get_key(store, key)
    if stored_key is None:
        return []
    base, date = config.public_base_url or get_local_url(config.bind), current_report_date()
    urls = [links.build_url(base, FLEET, date, file, stored_key.key_id, links.get_expiry_ms()) for file in FILES]
    return [f"Last week's report as {name}: {url}" for name, url in zip(("CSV", "a page"), urls, strict=True)]


def _get_recent_trip(store: Store, config: Config) -> Document | None:
    """Return the newest trip that is in the response of every example: visible, before today, with a tracking_id."""
    now = datetime.datetime.now(datetime.UTC)
    match = {
        "fleet": FLEET,
        "tracking_id": {"$ne": None},
        "trip_end_time": {"$lte": get_max_visible_end_ms(config.processing_delay_hours)},
        "date": {"$gte": str((now - HISTORY).date() + datetime.timedelta(weeks=1)), "$lt": str(now.date())},
    }
    fields = {"_id": 0, "trip_id": 1, "tracking_id": 1, "driver_id": 1, "date": 1}
    return store.trip_details.find_one(match, fields, sort=[("trip_start_time", DESCENDING)])


def _curl_arguments(bind: str, path: str) -> str:
    url = shlex.quote(f"{get_local_url(bind)}{API}{path}")
    return f"--unix-socket {shlex.quote(bind.removeprefix('unix:'))} {url}" if bind.startswith("unix:") else url


def get_local_url(bind: str) -> str:
    """Return the URL of the service on this host: a wildcard address becomes the loopback address."""
    if bind.startswith("unix:"):
        return "http://localhost"
    host = bind.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]")  # noqa: S104
    return f"http://{host}"
