"""The change feed of the service that `mirror` reads, for `--follow`."""

import json
from typing import Any, cast

import click
from marshmallow import ValidationError

from app.store import Document
from schemas.page import TripChange
from schemas.param_fields import get_first_date
from schemas.periods import DAY, UTC, get_today, midnight, now_ms
from scripts.ingest import upstream
from scripts.ingest.http_client import Request
from scripts.ingest.mirrored_fleet import NOT_STORED, MirroredFleet, are_equal
from scripts.ingest.resume_tokens import ResumeToken, get_resume_token, name_cursor, save_resume_token
from scripts.materialize.sources import describe_errors, divide_trips
from scripts.materialize.write_sources import DELETIONS_PER_TRANSACTION, delete_trips

CHANGE = TripChange()


def apply_feed(mirrored: MirroredFleet) -> bool:
    """Apply the change feed from the stored cursor on. Returns whether the other service has a feed.

    Without a cursor, the lists are read next: they have the drivers, and the trips that the feed does not show yet.
    The cursor is stored after what it covers.
    """
    name = name_cursor(mirrored.fleet, mirrored.client.url)
    stored = get_resume_token(mirrored.store, name)
    cursor = stored.token.decode() if stored else None
    page = upstream.get_changes(mirrored.client, mirrored.known_fields, cursor)
    if page is None and cursor:
        # It is invalid if the other service was restored from a backup.
        cursor, page = None, upstream.get_changes(mirrored.client, mirrored.known_fields, None)
    begins, applied, empty_pages = cursor is None, set[int](), 0
    mirrored.lists_are_due |= begins
    while page:
        changes = [read for change in page["changes"] if (read := _read_change(mirrored, change))]
        _apply_page(mirrored, changes, begins=begins)
        applied.add(hash(cursor))
        empty_pages = 0 if page["changes"] else empty_pages + 1
        if page["cursor"] != cursor:
            cursor = page["cursor"]
            save_resume_token(mirrored.store, name, ResumeToken(cursor.encode(), now_ms()))
        if not page["has_more"]:
            return True
        if hash(cursor) in applied or len(applied) > upstream.MAX_PAGES or empty_pages > upstream.MAX_EMPTY_PAGES:
            raise click.ClickException(f"{mirrored.client.url} has a change feed whose cursor does not move on.")
        page = upstream.get_changes(mirrored.client, mirrored.known_fields, cursor)
    return False


def _read_change(mirrored: MirroredFleet, change: Any) -> Document | None:
    """Return a change (schema TripChange), or None after it was rejected."""
    mirrored.known_fields.keep(CHANGE, change)
    try:
        return cast(Document, CHANGE.load(change))
    except ValidationError as error:
        mirrored.reject(change, describe_errors(error))
    return None


def _apply_page(mirrored: MirroredFleet, changes: list[Document], *, begins: bool) -> None:
    """Apply a page of the change feed. Read the list of drivers if that may have changed.

    If the feed `begins`, the list of drivers is read anyway, and trips that are stored as they are stay.
    """
    latest = {change["trip_id"]: change for change in changes}
    stored = mirrored.find_stored(latest)
    deleted = [change for change in latest.values() if change["deleted"]]
    trip_ids = [change["trip_id"] for change in deleted if change["trip_id"] in stored]
    for part in divide_trips(mirrored.store, mirrored.fleet, trip_ids, DELETIONS_PER_TRANSACTION):
        delete_trips(mirrored.store, mirrored.fleet, part)
    since_ms = max(mirrored.since_ms, midnight(str(get_first_date(get_today(UTC), DAY)), UTC))
    requests, driver_ids = list[Request](), set[str]()
    for trip_id, change in latest.items():
        if change["deleted"]:
            continue
        trip, known = change["trip"], stored.get(trip_id, NOT_STORED)
        is_wanted = trip_id in stored or trip["trip_start_time"] >= since_ms
        if is_wanted and not (begins and _is_stored(change, known)):
            requests.append(upstream.request_details(trip_id, change["tracking_id"] or known["tracking_id"]))
            driver_ids.add(trip["driver_id"])
    mirrored.load_trips(requests)
    mirrored.touch(trip["driver_id"] for trip in (*stored.values(), *deleted))
    if not begins and (deleted or driver_ids - mirrored.listed.keys()):
        mirrored.load_drivers()


def _is_stored(change: Document, trip: Document) -> bool:
    """Return whether the trip of a change is stored in the same summary form and with the same tracking_id, if any."""
    has_its_tracking_id = change["tracking_id"] in (None, trip["tracking_id"])
    return has_its_tracking_id and are_equal(change["trip"], json.loads(trip["summary"]))
