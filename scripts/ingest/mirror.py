"""`driver-analytics mirror`: copies the drivers and trips of another service with this interface."""

import itertools
import json
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

import click
from marshmallow import ValidationError

from app.config import API, Config, is_base_url
from app.store import Document, Store
from app.store.fleets import get_time_zone
from schemas.date_params import get_first_date
from schemas.fields import Identifier
from schemas.page import TripChange
from schemas.periods import DAY, UTC, get_today, midnight, now_ms
from schemas.stored import make_id
from schemas.trip import TripSummary
from scripts.batches import batches
from scripts.ingest import loader, upstream
from scripts.ingest.http_client import HttpClient, Request, Response, TooLarge, UnexpectedResponse, connect
from scripts.ingest.known_fields import KnownFields
from scripts.ingest.loader import DRIVERS, TRIPS, Record, RecordType, Rejected
from scripts.ingest.plausibility import Doubts
from scripts.ingest.rejects import MAX_RECORD_BYTES, TOO_LONG, Rejects
from scripts.ingest.resume_tokens import ResumeToken, get_resume_token, name_cursor, save_resume_token
from scripts.ingest.upstream import DetailsRequest, ListRequest
from scripts.materialize.sources import describe_errors
from scripts.materialize.write_sources import DELETIONS_PER_TRANSACTION, delete_drivers, delete_trips
from scripts.options import DATE, FLEET, REJECTS
from scripts.output import echo, make_bar
from scripts.signals import end_on_signals

# How often the change feed is read, and how often lists are.
FEED_SECONDS, LISTS_SECONDS = 10.0, 600.0
# The most drivers, whose identifiers are in memory, and the most rejected records, of each of which a hash is.
MAX_DRIVERS = MAX_REJECTS = 500_000
STORED_TRIP = {"_id": 0, "trip_id": 1, "driver_id": 1, "tracking_id": 1, "summary": 1}
NOT_STORED: Document = {"summary": "null", "tracking_id": None}
IDENTIFIER, TRIP_SUMMARY, CHANGE = Identifier(), TripSummary(), TripChange()


@click.command()
@click.option("--from", "url", metavar="URL", required=True, help="The other service.")
@FLEET
@click.option("--since", type=DATE, help="Only trips from this date on. By default six months.")
@click.option("--follow", "is_followed", is_flag=True, help="Keep running, and apply what changes.")
@REJECTS
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
    url, key = url.rstrip("/").removesuffix(API), Config.from_environment().mirror_key
    if not is_base_url(url):
        raise click.UsageError("Give --from as https://api.example.com.")
    if not key or not all("!" <= character <= "~" for character in key):
        raise click.ClickException("Set MIRROR_KEY to an API key of the other service.")
    if is_followed:
        end_on_signals()
    rejected = _RejectedRecords((rejects or Path()) / "mirror.rejected.ndjson", is_pipe=is_followed)
    with connect(url, key, is_followed=is_followed) as client, loader.open_fleet(fleet) as store, rejected:
        zone = get_time_zone(store, fleet)
        if since and since > str(get_today(zone)):
            raise click.UsageError("Give --since as a date up to today.")
        # Whoever gives no date wants all: a trip before 1970 is none of the last six months.
        since_ms = max(0, midnight(since, zone)) if since else 0
        copy = Mirror(store, fleet, client, since_ms, rejected)
        with loader.naming_new_fleet(store, fleet):
            pause_seconds = copy.run()
        rejected.finish()
        echo(f"{url}: {copy.loaded} loaded, {rejected.describe()}")
        while is_followed:
            sleep(pause_seconds)
            pause_seconds = copy.run()
            rejected.finish()
    if rejected.count:
        raise SystemExit(1)


class _RejectedRecords(Rejects):
    """The rejected records. One that is read again and again is listed once."""

    def __init__(self, path: Path, *, is_pipe: bool) -> None:
        super().__init__(path, is_pipe=is_pipe)
        self._known = set[int]()

    def add(self, number: int, content: bytes, reason: str, hint: str = "") -> None:
        """Write a rejected record. Raises click.ClickException if there are too many."""
        if (known := hash(content)) not in self._known:
            self._known.add(known)
            super().add(number, content, reason, hint)
        if len(self._known) > MAX_REJECTS:
            raise click.ClickException(f"More than {MAX_REJECTS:,} records are invalid. The first: {self.first}")


class Mirror:
    """Copies the drivers and trips of another service into a fleet: those that differ from what is stored."""

    def __init__(self, store: Store, fleet: str, client: HttpClient, since_ms: int, rejects: Rejects) -> None:
        self._store, self._fleet, self._client, self._rejects = store, fleet, client, rejects
        self._since_ms = since_ms
        # The number of documents that were loaded.
        self.loaded, self._numbers, self._known = 0, itertools.count(1), KnownFields()
        # The drivers that the other service listed last, and those whose trips were deleted or changed.
        self._listed, self._touched = dict[str, None](), set[str]()
        self._lists_due, self._needs_copy = 0.0, True
        self._cursor_name = name_cursor(fleet, client.url)

    def run(self) -> float:
        """Copy what is new or was changed. Returns after how many seconds to do it again if the service is followed.

        The change feed comes before the lists. So what changes while these are read comes afterwards.
        """
        has_feed = self._client.is_followed and self._apply_changes()
        if self._needs_copy or not has_feed:
            self._copy()
        elif monotonic() >= self._lists_due:
            self._load_drivers()
        return FEED_SECONDS if has_feed else LISTS_SECONDS

    def _copy(self) -> None:
        """Load the drivers and trips in the lists that are new or were changed."""
        self._load_drivers()
        with make_bar("drivers", len(self._listed)) as bar:
            self._load(TRIPS, self._read_trips(self._request_lists(bar)))
        self._needs_copy = False

    def _request_lists(self, bar: Any) -> Iterator[Request]:
        zone = upstream.get_time_zone(self._client)
        for driver_id in self._listed:
            yield upstream.request_trips(driver_id, self._since_ms, zone)
            bar.update(1)

    def _load_drivers(self) -> None:
        """Load the drivers in the list that are new or were changed. Delete those who lost their trips and are gone."""
        self._listed.clear()
        self._load(DRIVERS, self._read_drivers())
        gone = sorted(driver for driver in self._touched - self._listed.keys() if not self._has_trips(driver))
        for driver_ids in batches(gone, DELETIONS_PER_TRANSACTION):
            delete_drivers(self._store, self._fleet, driver_ids)
        self._touched.difference_update(gone)
        self._lists_due = monotonic() + LISTS_SECONDS

    def _has_trips(self, driver_id: str) -> bool:
        return self._store.trips.find_one({"fleet": self._fleet, "driver_id": driver_id}, {"_id": 1}) is not None

    def _read_drivers(self) -> Generator[Record | Rejected]:
        """Yield the drivers in the list who are new or were changed. All are added to `_listed`."""
        for records in upstream.list_drivers(self._client):
            for record in records:
                self._known.keep(DRIVERS.schema, record)
            driver_ids = [_get_id(record, "driver_id") for record in records]
            self._listed.update(dict.fromkeys(filter(None, driver_ids)))
            if len(self._listed) > MAX_DRIVERS:
                raise click.ClickException(f"{self._client.url} has more than {MAX_DRIVERS:,} drivers.")
            sources = self._store.drivers.find(self._match(driver_ids), {"_id": 0, "fleet": 0})
            stored = {driver["driver_id"]: driver for driver in sources}
            for record, driver_id in zip(records, driver_ids, strict=True):
                if not _are_equal(record, stored.get(driver_id)):
                    yield self._make_record(record)

    def _read_trips(self, requests: Iterable[Request]) -> Generator[Record | Rejected]:
        """Yield the requested trips, and those in the requested lists that are new or were changed."""
        found = deque[Request]()
        for request, response in self._client.fetch(requests, found):
            if isinstance(request, ListRequest):
                yield from self._find_changed_trips(request, response, found)
            elif isinstance(request, DetailsRequest):
                yield from self._read_trip(request, response)

    def _find_changed_trips(
        self, request: ListRequest, response: Response, found: deque[Request]
    ) -> list[Record | Rejected]:
        """Add requests to `found`: for the trips on a page that are new or were changed, and for the next page.

        Returns the records without a valid identifier, which will be rejected.
        """
        records, following = upstream.read_list(self._client, request, response)
        for record in records:
            self._known.keep(TRIP_SUMMARY, record)
        trip_ids = [_get_id(record, "trip_id") for record in records]
        stored = self._find_stored(trip_ids)
        for record, trip_id in zip(records, trip_ids, strict=True):
            trip = stored.get(trip_id, NOT_STORED)
            # The date of the request begins earlier than --since, if the service has another time zone.
            is_wanted = trip_id and not _starts_before(record, self._since_ms)
            if is_wanted and not _are_equal(record, json.loads(trip["summary"])):
                found.append(upstream.request_details(trip_id, trip["tracking_id"]))
        found.extend(following)
        return [self._make_record(record) for record, trip_id in zip(records, trip_ids, strict=True) if not trip_id]

    def _apply_changes(self) -> bool:
        """Apply the change feed from the stored cursor on. Returns whether the other service has a feed.

        Without a cursor, the lists are read next: they have the drivers, and the trips that the feed does not show yet.
        The cursor is stored after what it covers.
        """
        stored, known, empty_pages = get_resume_token(self._store, self._cursor_name), set[int](), 0
        cursor = stored.token.decode() if stored else None
        page = upstream.get_changes(self._client, self._known, cursor)
        if page is None and cursor:
            # It is invalid if the other service was restored from a backup.
            cursor, page = None, upstream.get_changes(self._client, self._known, None)
        begins = cursor is None
        self._needs_copy |= begins
        while page:
            self._apply([*filter(None, map(self._read_change, page["changes"]))], begins=begins)
            if page["cursor"] != cursor:
                token = ResumeToken(page["cursor"].encode(), now_ms())
                save_resume_token(self._store, self._cursor_name, token)
            if not page["has_more"]:
                return True
            known.add(hash(cursor))
            cursor = page["cursor"]
            empty_pages = 0 if page["changes"] else empty_pages + 1
            if hash(cursor) in known or len(known) > upstream.MAX_PAGES or empty_pages > upstream.MAX_EMPTY_PAGES:
                raise click.ClickException(f"{self._client.url} has a change feed whose cursor does not move on.")
            page = upstream.get_changes(self._client, self._known, cursor)
        return False

    def _read_change(self, change: Any) -> Document | None:
        """Return a change (schema TripChange), or None after it was rejected."""
        self._known.keep(CHANGE, change)
        try:
            return cast(Document, CHANGE.load(change))
        except ValidationError as error:
            self._rejects.add(next(self._numbers), _encode(change), describe_errors(error))
        return None

    def _apply(self, changes: list[Document], *, begins: bool) -> None:
        """Apply a page of the change feed. Read the list of drivers if that may have changed.

        If the feed `begins`, the list of drivers is read anyway, and trips that are stored as they are stay.
        """
        latest = {change["trip_id"]: change for change in changes}
        stored = self._find_stored(latest)
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
        self._load(TRIPS, self._read_trips(details))
        touched = {trip["driver_id"] for trip in (*stored.values(), *deleted)}
        self._touched.update(self._store.drivers.distinct("driver_id", self._match(touched)))
        if not begins and (deleted or {trip["driver_id"] for trip in trips} - self._listed.keys()):
            self._load_drivers()

    def _match(self, identifiers: Iterable[str]) -> Document:
        return {"_id": {"$in": [make_id(self._fleet, identifier) for identifier in identifiers]}}

    def _find_stored(self, trip_ids: Iterable[str]) -> dict[str, Document]:
        return {trip["trip_id"]: trip for trip in self._store.trip_details.find(self._match(trip_ids), STORED_TRIP)}

    def _load(self, record_type: RecordType, records: Generator[Record | Rejected]) -> None:
        doubts, seconds = Doubts(), loader.BATCH_SECONDS
        counts = loader.load(self._store, self._fleet, record_type, records, self._rejects, doubts, seconds)
        self.loaded += sum(counts)
        for sentence in filter(None, [*doubts.describe("trip {trip_id}"), self._known.describe_new()]):
            echo(f"{self._client.url}: {sentence}", err=True)

    def _read_trip(self, request: DetailsRequest, response: Response) -> list[Record | Rejected]:
        """Return a trip in import format, or none if the trip is gone."""
        try:
            records = upstream.read_details(self._client, request, response)
        except (TooLarge, UnexpectedResponse) as error:
            return [Rejected(next(self._numbers), _encode({"trip_id": request.trip_id}), error.message)]
        for record in records:
            self._known.keep(TRIPS.schema, record)
            if isinstance(record, dict):
                record["tracking_id"] = request.tracking_id
        return [self._make_record(record) for record in records]

    def _make_record(self, value: Any) -> Record | Rejected:
        number, content = next(self._numbers), _encode(value)
        if len(content) > MAX_RECORD_BYTES:
            # The beginning is enough, as of a line.
            return Rejected(number, content[: MAX_RECORD_BYTES + 1], TOO_LONG)
        return Record(number, content, value)


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _get_id(record: Any, name: str) -> str:
    """Return the identifier of a record, or an empty text if it has no valid one."""
    try:
        return str(IDENTIFIER.deserialize(record[name]))
    except (ValidationError, LookupError, TypeError):
        return ""


def _starts_before(record: Document, since_ms: int) -> bool:
    start = record.get("trip_start_time")
    return isinstance(start, int) and start < since_ms


def _is_stored(change: Document, trip: Document) -> bool:
    """Return whether the trip of a change is stored in the same summary form and with the same tracking_id, if any."""
    has_its_tracking_id = change["tracking_id"] in (None, trip["tracking_id"])
    return has_its_tracking_id and _are_equal(change["trip"], json.loads(trip["summary"]))


def _are_equal(record: Any, stored: Any) -> bool:
    """Return whether a record is the same JSON as the stored one, whatever the order of fields. 1 and 1.0 differ.

    If none is stored, which is None, no record equals it, not even null.
    """
    return record is not None and json.dumps(record, sort_keys=True) == json.dumps(stored, sort_keys=True)
