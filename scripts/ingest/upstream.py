"""The service that `mirror` reads: its endpoints for drivers and trips and, where it has one, its change feed.

It may be the original service. So nothing is sent or expected but what docs/clients.md lists as published, except for
the change feed.
"""

import contextlib
import dataclasses
from collections import deque
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

from marshmallow import ValidationError

from app.store import Document
from schemas.date_params import get_first_date
from schemas.page import ChangePage
from schemas.periods import DAY, UTC, date_of, get_today, get_zone
from scripts.ingest.http_client import HttpClient, Params, Refused, Request, Response, UnexpectedResponse
from scripts.ingest.known_fields import KnownFields

# Each change is checked by itself.
CHANGE_PAGE = ChangePage(exclude=["changes"])
PAGE_LIMIT = 100
# The deletions on a page of the change feed are one transaction.
CHANGES_LIMIT = 500
MAX_PAGES = 1_000_000
# The cursor is in the line of a request, for which servers have 8,190 bytes.
MAX_CURSOR_CHARS = 8_000


@dataclasses.dataclass(frozen=True)
class ListRequest(Request):
    """A request for a page of the drivers, or of a driver's trips in summary form. `records` is the name of either."""

    records: str

    def get_next(self) -> "ListRequest":
        """Return the request for the page after this one."""
        return dataclasses.replace(self, params={**self.params, "page": int(self.params["page"]) + 1})


@dataclasses.dataclass(frozen=True)
class DetailsRequest(Request):
    """A request for a trip in detail form. `tracking_id` is that of the stored trip."""

    trip_id: str
    tracking_id: str | None


DRIVERS = ListRequest("drivers", {"limit": PAGE_LIMIT, "page": 1}, "drivers")


def get_time_zone(client: HttpClient) -> ZoneInfo:
    """Return the time zone of the service's dates. The original service has UTC, and no endpoint that says so."""
    # Responses of this service link to its description.
    if client.links_description:
        request = Request("fleet", {})
        with contextlib.suppress(UnexpectedResponse):
            return get_zone(client.parse(request, client.get(request)).get("time_zone")) or UTC
    return UTC


def request_trips(driver_id: str, since_ms: int, zone: ZoneInfo) -> ListRequest:
    """Return the request for the driver's first trips since a time (epoch ms). `zone` is that of the service.

    A time before the first date that the service allows means that date.
    """
    start_date = max(date_of(since_ms, zone), str(get_first_date(get_today(zone), DAY)))
    params: Params = {"start_date": start_date, "limit": PAGE_LIMIT, "page": 1}
    return ListRequest(f"driver/{quote(driver_id, safe='')}/trips", params, "trips")


def request_details(trip_id: str, tracking_id: str | None) -> DetailsRequest:
    """Return the request for a trip."""
    return DetailsRequest(f"trip/trip_id/{quote(trip_id, safe='')}", {}, trip_id, tracking_id)


def list_drivers(client: HttpClient) -> Iterator[list[Any]]:
    """Yield the drivers, page by page."""
    found = deque[ListRequest]()
    for request, response in client.fetch([DRIVERS], found):
        records, following = read_list(client, request, response)
        found.extend(following)
        yield records


def read_list(client: HttpClient, request: ListRequest, response: Response) -> tuple[list[Any], list[ListRequest]]:
    """Return the records of a page, and the request for the next page if there is one.

    There are none for an unknown driver.
    """
    if response.status == HTTPStatus.NOT_FOUND and request != DRIVERS:
        return [], []
    page, following = client.parse(request, response), request.get_next()
    records, next_page = page.get(request.records), page.get("next_page") or 0
    if not isinstance(records, list) or len(records) > PAGE_LIMIT or next_page not in (0, following.params["page"]):
        raise client.make_error(request, response.status, f"no page of {request.records}")
    if next_page and (not records or next_page > MAX_PAGES):
        raise client.make_error(request, response.status, "a list without an end")
    return records, [following] if next_page else []


def read_details(client: HttpClient, request: DetailsRequest, response: Response) -> list[Any]:
    """Return the trip in detail form; none if it is gone. Raises TooLarge or UnexpectedResponse."""
    if response.status == HTTPStatus.NOT_FOUND:
        return []
    records = client.parse(request, response).get("trips")
    if not isinstance(records, list):
        raise client.make_error(request, response.status, "no page of trips")
    if records and isinstance(records[0], dict) and records[0].get("trip_id", request.trip_id) != request.trip_id:
        raise client.make_error(request, response.status, "another trip")
    return records[:1]


def get_changes(client: HttpClient, known: KnownFields, cursor: str | None) -> Document | None:
    """Return a page of the change feed, or None without a feed or for an invalid cursor.

    It has the schema ChangePage, but its changes may be any values.
    """
    request = Request("changes", {"limit": CHANGES_LIMIT, **({"cursor": cursor} if cursor else {})})
    response = client.get(request)
    try:
        page = client.parse(request, response)
        changes = page.pop("changes", None)
        known.keep(CHANGE_PAGE, page)
        page = cast(Document, CHANGE_PAGE.load(page))
    except (Refused, UnexpectedResponse, ValidationError):
        return None
    is_usable = isinstance(changes, list) and len(changes) <= CHANGES_LIMIT
    return {**page, "changes": changes} if is_usable and 0 < len(page["cursor"]) <= MAX_CURSOR_CHARS else None
