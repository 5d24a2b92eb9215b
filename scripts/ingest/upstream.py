"""The service that `mirror` reads: its endpoints for drivers and trips and, where it has one, its change feed.

It may be the original service. So nothing is expected but what docs/clients.md lists as published, except for the time
zone and the change feed, without which it is read as well.
"""

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

from marshmallow import ValidationError

from app.store import Document
from schemas.page import ChangePage
from schemas.param_fields import get_first_date
from schemas.periods import DAY, UTC, date_of, get_today, get_zone
from scripts.ingest.http_client import HttpClient, Refused, Request, Response, UnexpectedResponse
from scripts.ingest.known_fields import KnownFields

# Each change is checked by itself.
CHANGE_PAGE = ChangePage(exclude=["changes"])
PAGE_LIMIT = 100
# The deletions on a page of the change feed are one transaction.
CHANGES_LIMIT = 500
MAX_PAGES = 1_000_000
# How many pages of the change feed may follow one another without a change.
MAX_EMPTY_PAGES = 1_000
# The cursor is in the line of a request, for which servers have 8,190 bytes.
MAX_CURSOR_CHARS = 8_000


DRIVERS_REQUEST = Request("drivers", {"limit": PAGE_LIMIT, "page": 1})


def get_time_zone(client: HttpClient) -> ZoneInfo:
    """Return the time zone of the service's dates. The original service has UTC, and no endpoint that says so."""
    request = Request("fleet", {})
    # A gateway may refuse the key for a path that it does not know.
    with contextlib.suppress(Refused, UnexpectedResponse):
        return get_zone(client.parse(request, client.get(request)).get("time_zone")) or UTC
    return UTC


def request_trips(driver_id: str, since_ms: int, zone: ZoneInfo) -> Request:
    """Return the request for the driver's first trips since a time (epoch ms). `zone` is that of the service.

    A time before the first date that the service allows means that date.
    """
    start_date = max(date_of(since_ms, zone), str(get_first_date(get_today(zone), DAY)))
    return Request(f"driver/{quote(driver_id, safe='')}/trips", {**DRIVERS_REQUEST.params, "start_date": start_date})


def request_details(trip_id: str, tracking_id: str | None) -> Request:
    """Return the request for a trip in detail form. `tracking_id` is that of the stored trip."""
    return Request(f"trip/trip_id/{quote(trip_id, safe='')}", {}, trip_id, tracking_id)


def list_drivers(client: HttpClient) -> Iterator[list[Any]]:
    """Yield the drivers, page by page."""
    request: Request | None = DRIVERS_REQUEST
    while request:
        records, request = read_list(client, request, client.get(request))
        yield records


def read_list(client: HttpClient, request: Request, response: Response) -> tuple[list[Any], Request | None]:
    """Return the records of a page, and the request for the next page if there is one.

    There are none for an unknown driver. The path of a list ends with the name of its records.
    """
    name, number = request.path.rpartition("/")[2], int(request.params["page"]) + 1
    if response.status == HTTPStatus.NOT_FOUND and request.path != DRIVERS_REQUEST.path:
        return [], None
    page = client.parse(request, response)
    records, next_page = page.get(name), page.get("next_page") or 0
    if not isinstance(records, list) or len(records) > PAGE_LIMIT or next_page not in (0, number):
        raise client.make_error(request, response.status, f"no page of {name}")
    if next_page and (not records or next_page > MAX_PAGES):
        raise client.make_error(request, response.status, "a list without an end")
    return records, request._replace(params={**request.params, "page": number}) if next_page else None


def read_details(client: HttpClient, request: Request, response: Response) -> list[Any]:
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
