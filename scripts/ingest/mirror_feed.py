"""The change feed of the service that `mirror` reads, for `--follow`."""

import json
from typing import Any, cast

import click
from marshmallow import ValidationError

from app.store import Document, Store
from schemas.date_params import get_first_date
from schemas.page import TripChange
from schemas.periods import DAY, UTC, get_today, midnight, now_ms
from scripts.command_line.reasons import describe_errors
from scripts.ingest import upstream
from scripts.ingest.http_client import HttpClient
from scripts.ingest.mirror_lists import NOT_STORED, Lists, are_equal
from scripts.ingest.resume_tokens import ResumeToken, get_resume_token, name_cursor, save_resume_token
from scripts.materialize.write_sources import delete_trips

CHANGE = TripChange()


class Feed:
    """Applies the change feed of another service to a fleet. `lists` load what it names."""

    def __init__(self, store: Store, fleet: str, client: HttpClient, since_ms: int, lists: Lists) -> None:
        self._store, self._fleet, self._client, self._since_ms, self._lists = store, fleet, client, since_ms, lists
        self._cursor_name = name_cursor(fleet, client.url)

    def apply(self) -> bool:
        """Apply the change feed from the stored cursor on. Returns whether the other service has a feed.

        Without a cursor, the lists are read next: they have the drivers, and the trips that the feed does not show yet.
        The cursor is stored after what it covers.
        """
        stored, page_count = get_resume_token(self._store, self._cursor_name), 0
        cursor = stored.token.decode() if stored else None
        page = upstream.get_changes(self._client, self._lists.known, cursor)
        if page is None and cursor:
            # It is invalid if the other service was restored from a backup.
            cursor, page = None, upstream.get_changes(self._client, self._lists.known, None)
        begins = cursor is None
        self._lists.are_due |= begins
        while page:
            self._apply_page([*filter(None, map(self._read_change, page["changes"]))], begins=begins)
            if page["cursor"] != cursor:
                token = ResumeToken(page["cursor"].encode(), now_ms())
                save_resume_token(self._store, self._cursor_name, token)
            if not page["has_more"]:
                return True
            page_count += 1
            if page["cursor"] == cursor or page_count > upstream.MAX_PAGES:
                raise click.ClickException(f"{self._client.url} has a change feed whose cursor does not move on.")
            cursor = page["cursor"]
            page = upstream.get_changes(self._client, self._lists.known, cursor)
        return False

    def _read_change(self, change: Any) -> Document | None:
        """Return a change (schema TripChange), or None after it was rejected."""
        self._lists.known.keep(CHANGE, change)
        try:
            return cast(Document, CHANGE.load(change))
        except ValidationError as error:
            self._lists.reject(change, describe_errors(error))
        return None

    def _apply_page(self, changes: list[Document], *, begins: bool) -> None:
        """Apply a page of the change feed. Read the list of drivers if that may have changed.

        If the feed `begins`, the list of drivers is read anyway, and trips that are stored as they are stay.
        """
        latest = {change["trip_id"]: change for change in changes}
        stored = self._lists.find_stored(latest)
        deleted = [change for change in latest.values() if change["deleted"]]
        trip_ids = [change["trip_id"] for change in deleted if change["trip_id"] in stored]
        if trip_ids:
            delete_trips(self._store, self._fleet, trip_ids)
        since_ms = max(self._since_ms, midnight(str(get_first_date(get_today(UTC), DAY)), UTC))
        changed = [change for change in latest.values() if not change["deleted"]]
        if begins:
            changed = [
                change for change in changed if not _is_stored(change, stored.get(change["trip_id"], NOT_STORED))
            ]
        trips = [change["trip"] for change in changed]
        trips = [trip for trip in trips if trip["trip_id"] in stored or trip["trip_start_time"] >= since_ms]
        trip_ids = [trip["trip_id"] for trip in trips]
        kept = {name: trip["tracking_id"] for name, trip in stored.items()}
        details = (upstream.request_details(name, latest[name]["tracking_id"] or kept.get(name)) for name in trip_ids)
        self._lists.load_trips(details)
        self._lists.touch(trip["driver_id"] for trip in (*stored.values(), *deleted))
        if not begins and (deleted or {trip["driver_id"] for trip in trips} - self._lists.listed.keys()):
            self._lists.load_drivers()


def _is_stored(change: Document, trip: Document) -> bool:
    """Return whether the trip of a change is stored in the same summary form and with the same tracking_id, if any."""
    has_its_tracking_id = change["tracking_id"] in (None, trip["tracking_id"])
    return has_its_tracking_id and are_equal(change["trip"], json.loads(trip["summary"]))
