"""The lines that `serve --demo` prints: a key, what to try first, example requests, and links to a report."""

import os
import shlex
from pathlib import Path

from pymongo import DESCENDING

from app.config import API, Config
from app.report_links import ReportLinkSigner
from app.store import Store
from app.store.api_keys import digest, get_key
from app.store.fleets import get_time_zone
from app.store.reports import FILES
from app.store.scope import Scope
from app.store.visibility import get_max_visible_end_ms
from schemas.periods import get_today, monday_of
from scripts.admin.keys import issue_key
from scripts.command_line.addresses import get_local_url
from scripts.command_line.output import create_private
from scripts.demo.fleet import FLEET
from scripts.demo.load import ensure_demo
from scripts.reports.build import find_current_windows


def prepare_demo(store: Store, config: Config) -> list[str]:
    """Load the demonstration fleet into an empty store, and return the lines to print."""
    if not ensure_demo(store):
        return ["The store has fleets of your own. Issue a key for one: driver-analytics keys issue --fleet ID"]
    key = _get_or_issue_key(store, Path(config.data_dir, "demo.key"))
    lines = [f"A key for the demonstration fleet: {key}"]
    # A browser reaches a Unix socket only through a proxy, whose address is not known here.
    if not config.bind.startswith("unix:"):
        lines += [get_first_step(config, key), *_example_requests(store, config, key)]
        lines += _report_links(store, config, key)
    return lines


def get_first_step(config: Config, key: str) -> str:
    """Return the line that says what to try first: the explorer, unless only a Unix socket leads to it.

    The fragment of a URL stays in the browser, so the server never sees the key in it.
    """
    base_url = config.public_base_url or get_local_url(config.bind)
    return f"Try first: open {base_url}/#key={key} to look at the fleet. Or run one of these requests:"


def _get_or_issue_key(store: Store, path: Path) -> str:
    """Return the key in the file if it is valid; otherwise issue one and write it to the file (mode 0600)."""
    key = path.read_text().strip() if os.access(path, os.R_OK) else ""
    stored_key = get_key(store, key)
    if stored_key is None or stored_key.scope != Scope(FLEET):
        key = issue_key(store, FLEET)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with create_private(path) as file:
            file.write(key + "\n")
    return key


def _example_requests(store: Store, config: Config, key: str) -> list[str]:
    """Return a curl command line for each of several endpoints, with identifiers and dates of a recent trip."""
    today = get_today(get_time_zone(store, FLEET))
    # The newest trip that is in the response of each: visible, of a day that all of them take, with a tracking_id.
    end_ms, dates = get_max_visible_end_ms(config.processing_delay_hours), {"$lt": str(today)}
    match = {"fleet": FLEET, "tracking_id": {"$ne": None}, "trip_end_time": {"$lte": end_ms}, "date": dates}
    trip = store.trip_details.find_one(match, sort=[("trip_start_time", DESCENDING)])
    if trip is None:
        return []
    driver_id, date, monday = trip["driver_id"], trip["date"], monday_of(trip["date"])
    paths = (
        "/drivers?limit=3",
        f"/driver/{driver_id}/trips?start_date={monday}&limit=2",
        f"/trip/trip_id/{trip['trip_id']}",
        f"/trip/tracking_id/{trip['tracking_id']}",
        f"/driver-aggregate/daily?start_date={date}&driver_id={driver_id}",
        f"/driver-aggregate/weekly?start_date={monday}&driver_id={driver_id}",
        f"/driver/{driver_id}/score?start_date={monday}&interval=day",
        f"/ranking?period=week&start_date={monday}&limit=3",
    )
    curl = f"curl -H {shlex.quote(f'Authorization: APIKEY {key}')}"
    return [f"{curl} {shlex.quote(get_local_url(config.bind) + API + path)}" for path in paths]


def _report_links(store: Store, config: Config, key: str) -> list[str]:
    links, base = ReportLinkSigner(config), config.public_base_url or get_local_url(config.bind)
    (key_id,), expires_at = store.keys.distinct("key_id", {"digest": digest(key)}), links.get_expiry_ms()
    return [
        f"Last {window.period}'s report as {name}: {links.build_url(base, FLEET, *window, file, key_id, expires_at)}"
        for window in find_current_windows(store, FLEET)
        for name, file in zip(("CSV", "a page"), FILES, strict=True)
    ]
