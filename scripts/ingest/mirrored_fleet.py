"""The copy that `mirror` makes of another service: which of its drivers and trips are loaded, and which are gone."""

import itertools
import json
from collections import deque
from collections.abc import Generator, Iterable
from time import monotonic
from typing import Any

import click
from marshmallow import ValidationError

from app.store import Document, Store
from schemas.driver import Driver
from schemas.fields import Identifier
from schemas.identity import match_ids
from schemas.trip import TripSummary
from scripts.command_line.batches import batches
from scripts.command_line.output import echo, make_bar
from scripts.ingest import loader, upstream
from scripts.ingest.doubts import Doubts
from scripts.ingest.http_client import HttpClient, Request, Response, TooLarge, UnexpectedResponse
from scripts.ingest.known_fields import KnownFields
from scripts.ingest.records import DRIVERS, MAX_RECORD_BYTES, TOO_LONG, TRIPS, Record, RecordType, Rejected, Rejects
from scripts.materialize.write_sources import DELETIONS_PER_TRANSACTION, delete_drivers

# The most drivers, whose identifiers are in memory.
MAX_DRIVERS = 500_000
STORED_TRIP = {"_id": 0, "trip_id": 1, "driver_id": 1, "tracking_id": 1, "summary": 1}
NOT_STORED: Document = {"summary": "null", "tracking_id": None}
IDENTIFIER, DRIVER, TRIP_SUMMARY = Identifier(), Driver(), TripSummary()


class MirroredFleet:
    """Loads the drivers and trips of another service that differ from what is stored in a fleet."""

    def __init__(self, store: Store, fleet: str, client: HttpClient, since_ms: int, rejects: Rejects) -> None:
        self.store, self.fleet, self.client, self._rejects = store, fleet, client, rejects
        self.since_ms, self._numbers, self.known_fields = since_ms, itertools.count(1), KnownFields()
        # The number of documents that were loaded, when the list of drivers was, and whether all lists are read next.
        self.loaded, self.read_at, self.lists_are_due = 0, 0.0, True
        # The drivers that the other service listed last, and those whose trips were deleted or changed.
        self.listed, self._touched = dict[str, None](), set[str]()

    def load_all(self) -> None:
        """Load the drivers and trips that are new or were changed."""
        self.load_drivers()
        with make_bar("drivers", len(self.listed)) as bar:
            self.load_trips(self._request_lists(bar))
        self.lists_are_due = False

    def _request_lists(self, bar: Any) -> Generator[Request]:
        zone = upstream.get_time_zone(self.client)
        for driver_id in self.listed:
            yield upstream.request_trips(driver_id, self.since_ms, zone)
            bar.update(1)

    def load_trips(self, requests: Iterable[Request]) -> None:
        """Load the requested trips, and those in the requested lists that are new or were changed."""
        self._load(TRIPS, self._read_trips(requests))

    def load_drivers(self) -> None:
        """Load the drivers in the list that are new or were changed. Delete those who lost their trips and are gone."""
        self.listed.clear()
        self._load(DRIVERS, self._read_drivers())
        for driver_ids in batches(sorted(self._touched - self.listed.keys()), DELETIONS_PER_TRANSACTION):
            drove = self.store.trips.distinct("driver_id", {"fleet": self.fleet, "driver_id": {"$in": driver_ids}})
            if gone := {*driver_ids}.difference(drove):
                delete_drivers(self.store, self.fleet, sorted(gone))
                self._touched -= gone
        self.read_at = monotonic()

    def _read_drivers(self) -> Generator[Record | Rejected]:
        """Yield the drivers in the list who are new or were changed. All are added to `listed`."""
        for records in upstream.list_drivers(self.client):
            for record in records:
                self.known_fields.keep(DRIVER, record)
            driver_ids = [_get_id(record, "driver_id") for record in records]
            self.listed.update(dict.fromkeys(filter(None, driver_ids)))
            if len(self.listed) > MAX_DRIVERS:
                raise click.ClickException(f"{self.client.url} has more than {MAX_DRIVERS:,} drivers.")
            sources = self.store.drivers.find(match_ids(self.fleet, driver_ids), {"_id": 0, "fleet": 0})
            stored = {driver["driver_id"]: driver for driver in sources}
            for record, driver_id in zip(records, driver_ids, strict=True):
                if not are_equal(record, stored.get(driver_id)):
                    yield self._make_record(record)

    def _read_trips(self, requests: Iterable[Request]) -> Generator[Record | Rejected]:
        """Yield the requested trips, and those in the requested lists that are new or were changed."""
        found = deque[Request]()
        for request, response in self.client.fetch(requests, found):
            if request.trip_id:
                yield from self._read_trip(request, response)
            else:
                yield from self._find_changed_trips(request, response, found)

    def _find_changed_trips(
        self, request: Request, response: Response, found: deque[Request]
    ) -> Generator[Record | Rejected]:
        """Add requests to `found`: for the trips on a page that are new or were changed, and for the next page.

        Yields the records without a valid identifier, which will be rejected.
        """
        records, following = upstream.read_list(self.client, request, response)
        for record in records:
            self.known_fields.keep(TRIP_SUMMARY, record)
        trip_ids = [_get_id(record, "trip_id") for record in records]
        stored = self.find_stored(trip_ids)
        for record, trip_id in zip(records, trip_ids, strict=True):
            trip = stored.get(trip_id, NOT_STORED)
            if not trip_id:
                yield self._make_record(record)
            # The date of the request begins earlier than --since, if the service has another time zone.
            elif not _starts_before(record, self.since_ms) and not are_equal(record, json.loads(trip["summary"])):
                found.append(upstream.request_details(trip_id, trip["tracking_id"]))
        if following:
            found.append(following)

    def touch(self, driver_ids: Iterable[str]) -> None:
        """Remember drivers whose trips were deleted or changed. Without trips, and not listed, they will be deleted."""
        self._touched.update(self.store.drivers.distinct("driver_id", match_ids(self.fleet, driver_ids)))

    def reject(self, record: Any, reason: str) -> None:
        """Add a record to those that are rejected."""
        self._rejects.add(next(self._numbers), _encode(record), reason)

    def find_stored(self, trip_ids: Iterable[str]) -> dict[str, Document]:
        """Return the stored ones of these trips, by trip_id."""
        return {
            trip["trip_id"]: trip for trip in self.store.trip_details.find(match_ids(self.fleet, trip_ids), STORED_TRIP)
        }

    def _load(self, record_type: RecordType, records: Generator[Record | Rejected]) -> None:
        doubts, seconds = Doubts("trip {trip_id}"), loader.BATCH_SECONDS
        counts = loader.load(self.store, self.fleet, record_type, records, self._rejects, doubts, seconds)
        self.loaded += sum(counts)
        for sentence in filter(None, [*doubts.describe(self.store, self.fleet), self.known_fields.describe_new()]):
            echo(f"{self.client.url}: {sentence}", err=True)

    def _read_trip(self, request: Request, response: Response) -> list[Record | Rejected]:
        """Return a trip in import format, or none if the trip is gone."""
        try:
            records = upstream.read_details(self.client, request, response)
        except (TooLarge, UnexpectedResponse) as error:
            return [Rejected(next(self._numbers), _encode({"trip_id": request.trip_id}), error.message)]
        for record in records:
            self.known_fields.keep(TRIPS.schema, record)
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


def are_equal(record: Any, stored: Any) -> bool:
    """Return whether a record is the same JSON as the stored one, whatever the order of fields. 1 and 1.0 differ.

    If none is stored, which is None, no record equals it, not even null.
    """
    return record is not None and json.dumps(record, sort_keys=True) == json.dumps(stored, sort_keys=True)
