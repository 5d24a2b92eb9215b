"""`driver-analytics mirror`: copies the drivers and trips of another service with this interface."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any

import click
from marshmallow import ValidationError

from app.config import API, Config, is_base_url
from app.store import Document, Store
from schemas.fields import Identifier
from schemas.periods import get_today, midnight, now_ms
from schemas.stored import make_id
from scripts.ingest import importer
from scripts.ingest.change_stream import ResumeToken, get_resume_token, save_resume_token
from scripts.ingest.follow import end_on_signals
from scripts.ingest.lines import MAX_LINE_BYTES, Line, Rejects
from scripts.ingest.plausibility import Doubts
from scripts.ingest.upstream import UnexpectedResponse, Upstream, connect, get_first_date
from scripts.ingest.writes import delete_drivers, delete_trips
from scripts.mongodb.identities import ids_of_fleet
from scripts.options import DATE, FLEET
from scripts.output import echo
from scripts.progress import make_bar

# How often the change feed is read, and how often lists are.
FEED_SECONDS, LISTS_SECONDS = 10.0, 600.0
STORED_TRIP = {"_id": 0, "trip_id": 1, "driver_id": 1, "tracking_id": 1, "summary": 1}
NOT_STORED: Document = {"summary": "null", "tracking_id": None}
IDENTIFIER = Identifier()
# A trip to read: its record in a list of the other service, and the `tracking_id` of the stored trip.
Listed = tuple[Any, str | None]


@click.command()
@click.option("--from", "url", metavar="URL", required=True, help="The other service.")
@FLEET
@click.option("--since", type=DATE, help="Only trips from this UTC date on. By default six months.")
@click.option("--follow", "is_followed", is_flag=True, help="Keep running, and apply what changes.")
@importer.REJECTS
def mirror(url: str, fleet: str, since: str | None, is_followed: bool, rejects: Path | None) -> None:
    """Copy the drivers and trips of another service into a fleet.

    The other service has the same interface: it is the original service, or another instance of this one. MIRROR_KEY is
    the API key for it.

    Copies the trips of the last six months that are new or were changed. Trips that the other service no longer has
    stay. If the command was interrupted, run it again.

    Invalid records are written to mirror.rejected.ndjson in the current folder. The others are loaded, and the exit
    status is 1.

    With --follow, it keeps running until Ctrl-C or SIGTERM. If the other service has a change feed, changes and
    deletions are applied within a minute. Otherwise the lists are read again every ten minutes.
    """
    url, since, key = url.rstrip("/").removesuffix(API), since or "", Config.from_environment().mirror_key
    if not is_base_url(url) or since > str(get_today()):
        raise click.UsageError("Give --from as https://api.example.com, and --since as a date up to today.")
    if not key or not all("!" <= character <= "~" for character in key):
        raise click.ClickException("Set MIRROR_KEY to an API key of the other service.")
    if is_followed:
        end_on_signals()
    rejected = _RejectedRecords((rejects or Path()) / "mirror.rejected.ndjson", is_pipe=is_followed)
    with connect(url, key, is_followed=is_followed) as upstream, importer.open_fleet(fleet) as store, rejected:
        copy = Mirror(store, fleet, upstream, since, rejected)
        rounds = copy.run(is_followed=is_followed)
        with importer.naming_new_fleet(store, fleet):
            next(rounds)
        rejected.finish()
        echo(f"{url}: {copy.loaded} loaded, {rejected.describe()}")
        for _ in rounds:
            rejected.finish()
    if rejected.count:
        raise SystemExit(1)


def ids_of_cursors(fleet: str) -> dict[str, str]:
    """Return the condition on the `_id` of the cursors of a fleet in `resume_tokens`."""
    return ids_of_fleet(f"mirror/{fleet}")


class _RejectedRecords(Rejects):
    """The rejected records, from any thread. One that is read again and again is listed once."""

    def __init__(self, path: Path, *, is_pipe: bool) -> None:
        super().__init__(path, is_pipe=is_pipe)
        self._known, self._lock = set[int](), Lock()

    def add(self, line: Line, reason: str) -> None:
        """Write a rejected record."""
        with self._lock:
            if (known := hash(line.content)) not in self._known:
                self._known.add(known)
                super().add(line, reason)


class _DoubtfulTrips(Doubts):
    """The trips that are not plausible, by trip_id."""

    def check(self, name: str, trip: Mapping[str, Any]) -> None:
        """Check a trip (schema ImportedTrip)."""
        super().check(f"trip {trip['trip_id']}", trip)


class Mirror:
    """Copies the drivers and trips of `upstream` into a fleet: those that differ from what is stored."""

    def __init__(self, store: Store, fleet: str, upstream: Upstream, since: str, rejects: Rejects) -> None:
        self._store, self._fleet, self._upstream, self._since, self._rejects = store, fleet, upstream, since, rejects
        # The number of documents that were loaded.
        self.loaded, self._line_numbers = 0, itertools.count(1)
        # The drivers that the other service listed last, and those whose trips were deleted or changed.
        self._listed, self._touched = dict[str, None](), set[str]()
        self._lists_due, self._needs_copy = 0.0, True
        self._cursor_name = f"{ids_of_cursors(fleet)['$gte']}{upstream.url}"

    def run(self, *, is_followed: bool) -> Iterator[None]:
        """Copy, once or, if the service is followed, for ever. Yields after each round.

        The change feed comes before the lists. So what changes while these are read comes afterwards.
        """
        while True:
            stored = get_resume_token(self._store, self._cursor_name)
            has_feed = is_followed and self._apply_changes(stored.token.decode() if stored else None)
            if self._needs_copy or not has_feed:
                self._copy()
            elif monotonic() >= self._lists_due:
                self._load_drivers()
            yield
            if not is_followed:
                return
            sleep(FEED_SECONDS if has_feed else LISTS_SECONDS)

    def _copy(self) -> None:
        """Load the drivers and trips in the lists that are new or were changed."""
        self._load_drivers()
        with make_bar("drivers", len(self._listed)) as bar:
            lists = self._upstream.map(lambda driver: self._upstream.find_trips(driver, self._since), self._listed)
            self._load(importer.TRIPS, self._upstream.map(self._read_trip, self._find_changed(lists, bar)))
        self._needs_copy = False

    def _load_drivers(self) -> None:
        """Load the drivers in the list that are new or were changed. Delete those who lost their trips and are gone."""
        records = self._upstream.portal.call(self._upstream.find_drivers)
        sources = self._store.drivers.find({"_id": ids_of_fleet(self._fleet)}, {"_id": 0, "fleet": 0})
        stored = {driver["driver_id"]: driver for driver in sources}
        changed = [record for record in records if not _are_equal(record, stored.get(_get_id(record, "driver_id")))]
        self._load(importer.DRIVERS, map(self._make_line, changed))
        self._listed = dict.fromkeys(filter(None, (_get_id(record, "driver_id") for record in records)))
        gone = (self._touched & stored.keys()) - self._listed.keys()
        gone -= {*self._store.trips.distinct("driver_id", {"fleet": self._fleet, "driver_id": {"$in": [*gone]}})}
        if gone:
            delete_drivers(self._store, self._fleet, sorted(gone))
        self._touched -= gone
        self._lists_due = monotonic() + LISTS_SECONDS

    def _find_changed(self, lists: Iterable[list[Any] | None], bar: Any) -> Iterator[Listed | None]:
        """Yield the trips in the lists that are not stored, or have another summary form. None is a pause."""
        for records in lists:
            stored = self._find_stored(_get_id(record, "trip_id") for record in records or ())
            for record in records or ():
                trip = stored.get(_get_id(record, "trip_id"), NOT_STORED)
                if not _are_equal(record, json.loads(trip["summary"])):
                    yield record, trip["tracking_id"]
            bar.update(records is not None)
            yield None

    def _apply_changes(self, cursor: str | None) -> bool:
        """Apply the change feed from a cursor on. Returns whether the other service has a feed.

        Without a cursor, only deletions are applied: the lists have all the rest, and are read next. The cursor is
        stored after what it covers.
        """
        begins, has_more = cursor is None, True
        self._needs_copy |= begins
        while has_more:
            page = self._upstream.portal.call(self._upstream.get_changes, cursor)
            if page is None:
                # The cursor is invalid if the other service was restored from a backup.
                return cursor is not None and self._apply_changes(None)
            self._apply(page["changes"], deletions_only=begins)
            if page["cursor"] != cursor:
                token = ResumeToken(page["cursor"].encode(), now_ms())
                save_resume_token(self._store, token, name=self._cursor_name)
            cursor, has_more = page["cursor"], page["has_more"]
        return True

    def _apply(self, changes: list[Document], *, deletions_only: bool) -> None:
        """Apply a page of the change feed. Read the list of drivers if that may have changed."""
        latest = {change["trip_id"]: change for change in changes}
        stored = self._find_stored(latest)
        deleted = [change for change in latest.values() if change["deleted"]]
        trip_ids = [change["trip_id"] for change in deleted if change["trip_id"] in stored]
        if trip_ids:
            delete_trips(self._store, self._fleet, trip_ids)
        since_ms = midnight(max(self._since, get_first_date()))
        trips = [] if deletions_only else [change["trip"] for change in latest.values() if not change["deleted"]]
        trips = [trip for trip in trips if trip["trip_id"] in stored or trip["trip_start_time"] >= since_ms]
        listed = [(trip, stored.get(trip["trip_id"], NOT_STORED)["tracking_id"]) for trip in trips]
        self._load(importer.TRIPS, self._upstream.map(self._read_trip, listed))
        self._touched |= {trip["driver_id"] for trip in (*stored.values(), *deleted)}
        if not deletions_only and (deleted or {trip["driver_id"] for trip in trips} - self._listed.keys()):
            self._load_drivers()

    def _find_stored(self, trip_ids: Iterable[str]) -> dict[str, Document]:
        match = {"_id": {"$in": [make_id(self._fleet, trip_id) for trip_id in trip_ids]}}
        return {trip["trip_id"]: trip for trip in self._store.trip_details.find(match, STORED_TRIP)}

    def _load(self, file_type: importer.FileType, lines: Iterable[Line | None]) -> None:
        doubts, seconds = _DoubtfulTrips(), importer.BATCH_SECONDS
        counts = importer.load_lines(self._store, self._fleet, lines, file_type, self._rejects, doubts, seconds)
        self.loaded += sum(counts)
        for sentence in doubts.describe():
            echo(f"{self._upstream.url}: {sentence}", err=True)

    async def _read_trip(self, listed: Listed) -> Line | None:
        """Return the line of a trip in import format, or None if the trip is gone."""
        record, tracking_id = listed
        trip_id = _get_id(record, "trip_id")
        try:
            # Without a valid identifier, the record is rejected for that.
            found = await self._upstream.find_details(trip_id) if trip_id else [record]
        except UnexpectedResponse as error:
            self._rejects.add(self._make_line(record), error.message)
            return None
        trips = [{**trip, "tracking_id": tracking_id} if isinstance(trip, dict) else trip for trip in found]
        return self._make_line(trips[0]) if trips else None

    def _make_line(self, record: Any) -> Line:
        content = json.dumps(record).encode()
        return Line(next(self._line_numbers), content, oversized=len(content) > MAX_LINE_BYTES)


def _get_id(record: Any, name: str) -> str:
    """Return the identifier of a record, or an empty text if it has no valid one."""
    try:
        return str(IDENTIFIER.deserialize(record[name]))
    except (ValidationError, LookupError, TypeError):
        return ""


def _are_equal(record: Any, stored: Any) -> bool:
    """Return whether a record is the same JSON as the stored one, whatever the order of fields. 1 and 1.0 differ.

    If none is stored, which is None, no record equals it, not even null.
    """
    return record is not None and json.dumps(record, sort_keys=True) == json.dumps(stored, sort_keys=True)
