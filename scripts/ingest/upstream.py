"""The service that `mirror` reads: its endpoints for drivers and trips and, where it has one, its change feed.

It may be the original service. So nothing is sent or expected but what docs/clients.md lists as published, except for
the change feed.
"""

import contextlib
import dataclasses
import datetime
import json
import sys
import zlib
from asyncio import sleep, timeout
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote

import click
from marshmallow import EXCLUDE, ValidationError
from werkzeug.http import parse_date

from app.config import API
from app.store import Document
from schemas.date_params import HISTORY
from schemas.page import ChangePage
from schemas.periods import get_today
from scripts.extras import importing_from_extra
from scripts.output import echo

# Requests at the same time. A few make up for the distance of the service, and leave room for its other clients.
REQUESTS = 4
PAGE_LIMIT = 100
# The deletions on a page of the change feed are one transaction.
CHANGES_LIMIT = 500
# How long to wait for the next bytes of a response, and for all of it.
PATIENCE_SECONDS, RESPONSE_SECONDS = 30.0, 60.0
# The largest response: its bytes, packed and unpacked, and its values. A parsed value takes up to 200 bytes, most of
# them far more than its text. No line of rejects.MAX_RECORD_BYTES that is a valid trip has as many values.
MAX_RESPONSE_BYTES, MAX_RESPONSE_VALUES = 32_000_000, 1_300_000
MAX_PAGES = 1_000_000
# The cursor is in the line of a request, for which servers have 8,190 bytes.
MAX_CURSOR_CHARS = 8_000
# The wait after a failure doubles with each further failure.
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 1.0, 15.0
# The bounds of a wait that the service asks for, and of all those of a request.
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS, MAX_WAITS_SECONDS = 1.0, 3_600.0, 86_400.0
# How often a request is made that makes the service fail, for example with 500.
TRIES = 4
# What an error message quotes of a response.
QUOTED_CHARS = 200
# Responses of a proxy that did not reach the service.
UNREACHED = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)


class Refused(click.ClickException):
    """The service refuses the key."""


class UnexpectedResponse(click.ClickException):
    """The service responds with this status, or with something that the interface does not have."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Params = Mapping[str, str | int]


class ListRequest(NamedTuple):
    """A request for a page of the drivers, or of a driver's trips in summary form. `records` is the name of either."""

    path: str
    records: str
    params: Params

    @property
    def next_page(self) -> "ListRequest":
        """The request for the page after this one."""
        return self._replace(params={**self.params, "page": int(self.params["page"]) + 1})


class DetailsRequest(NamedTuple):
    """A request for a trip in detail form. `tracking_id` is that of the stored trip."""

    path: str
    trip_id: str
    tracking_id: str | None
    params: Params = MappingProxyType({})


Request = ListRequest | DetailsRequest
R = TypeVar("R", ListRequest, Request)
DRIVERS = ListRequest("drivers", "drivers", {"limit": PAGE_LIMIT, "page": 1})


def request_trips(driver_id: str, since: str) -> ListRequest:
    """Return the request for the driver's first trips since a date.

    A date before the first one that the service allows means that one.
    """
    params: Params = {"start_date": max(since, get_first_date()), "limit": PAGE_LIMIT, "page": 1}
    return ListRequest(f"driver/{quote(driver_id, safe='')}/trips", "trips", params)


def request_details(trip_id: str, tracking_id: str | None) -> DetailsRequest:
    """Return the request for a trip."""
    return DetailsRequest(f"trip/trip_id/{quote(trip_id, safe='')}", trip_id, tracking_id)


class Response(NamedTuple):
    """A response: its status, its headers, and its content as it was sent."""

    status: int
    headers: Any
    content: bytes | bytearray


@dataclasses.dataclass
class Upstream:
    """The service at `url`. Repeats a request until there is a response, and waits for as long as the service asks.

    Raises click.ClickException if there is none; for a service that `is_followed`, only before its first response. Also
    raises it for a response that is larger than any of such a service.

    Requests are made in the event loop of the `portal`, which runs in a thread of its own. Responses are parsed in the
    thread that wants them, so that only one of them takes memory at a time.
    """

    url: str
    key: str
    is_followed: bool
    portal: Any
    client: Any
    failure: type[Exception]
    has_responded: bool = False
    resume_at: float = 0.0

    def fetch(self, queue: deque[R], others: Iterable[R] = ()) -> Iterator[tuple[R, Response]]:
        """Make requests, a few at a time, and yield the responses as they come.

        Those in the `queue`, to which the caller may add, are made before the `others`.
        """
        pending, rest = dict[Future[Response], R](), iter(others)
        while True:
            while len(pending) < REQUESTS and (request := queue.popleft() if queue else next(rest, None)):
                pending[self.portal.start_task_soon(self._get, request.path, request.params)] = request
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()

    def list_drivers(self) -> Iterator[list[Any]]:
        """Yield the drivers, page by page."""
        queue = deque([DRIVERS])
        for request, response in self.fetch(queue):
            records, following = self.read_list(request, response)
            queue.extend(following)
            yield records

    def read_list(self, request: ListRequest, response: Response) -> tuple[list[Any], list[ListRequest]]:
        """Return the records of a page, and the request for the next page if there is one.

        There are none for an unknown driver.
        """
        if response.status == HTTPStatus.NOT_FOUND and request != DRIVERS:
            return [], []
        page, following = self._parse(request.path, response), request.next_page
        records, next_page = page.get(request.records), page.get("next_page") or 0
        if not isinstance(records, list) or len(records) > PAGE_LIMIT or next_page not in (0, following.params["page"]):
            raise self._make_error(request.path, response.status, f"no page of {request.records}")
        if next_page and (not records or next_page > MAX_PAGES):
            raise self._make_error(request.path, response.status, "a list without an end")
        return records, [following] if next_page else []

    def read_details(self, request: DetailsRequest, response: Response) -> list[Any]:
        """Return the trip in detail form; none if it is gone."""
        if response.status == HTTPStatus.NOT_FOUND:
            return []
        records = self._parse(request.path, response).get("trips")
        if not isinstance(records, list):
            raise self._make_error(request.path, response.status, "no page of trips")
        return records[:1]

    def get_changes(self, cursor: str | None) -> Document | None:
        """Return a page of the change feed (schema ChangePage), or None without a feed or for an invalid cursor."""
        query = {"limit": CHANGES_LIMIT, **({"cursor": cursor} if cursor else {})}
        response = self.portal.call(self._get, "changes", query)
        try:
            page = self._parse("changes", response)
            if isinstance(page.get("changes"), list) and len(page["changes"]) > CHANGES_LIMIT:
                return None
            page = cast(Document, ChangePage().load(page, unknown=EXCLUDE))
        except (Refused, UnexpectedResponse, ValidationError):
            return None
        return page if 0 < len(page["cursor"]) <= MAX_CURSOR_CHARS else None

    async def _get(self, path: str, params: Params) -> Response:
        """Return the response to a request, whatever its status."""
        failed_at, waits_since, backoff, attempt = None, None, FIRST_BACKOFF_SECONDS, 0
        while True:
            attempt += 1
            if self.resume_at > monotonic():
                await sleep(self.resume_at - monotonic())
            began_at = monotonic()
            try:
                response = await self._try(path, params)
            except (self.failure, TimeoutError) as error:
                if self.client.is_closed:
                    raise
                problem = f"{type(error).__name__} {self._quote(str(error))}".rstrip(" .")
            else:
                status = response.status
                self.has_responded |= status not in UNREACHED
                if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
                    waits_since = began_at if waits_since is None else waits_since
                    if began_at - waits_since > MAX_WAITS_SECONDS and not self.is_followed:
                        raise click.ClickException(f"{self.url} asks to wait for more than a day (status {status}).")
                    self._pause(response, backoff)
                    continue
                if status < HTTPStatus.INTERNAL_SERVER_ERROR or (status not in UNREACHED and attempt >= TRIES):
                    return response
                problem = f"status {status}"
            if failed_at is None:
                failed_at = began_at
                self._say(f"does not respond ({problem}). Trying again ...")
            if monotonic() - failed_at > PATIENCE_SECONDS and not (self.is_followed and self.has_responded):
                raise click.ClickException(f"{self.url} did not respond for {PATIENCE_SECONDS:.0f} seconds: {problem}.")
            await sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF_SECONDS)

    async def _try(self, path: str, params: Params) -> Response:
        """Make a request once. Raises `failure`, and TimeoutError if the response does not end in time."""
        content, stream = bytearray(), self.client.stream("GET", f"{self.url}{API}/{path}", params=params)
        async with timeout(RESPONSE_SECONDS), stream as response:
            async for chunk in response.aiter_raw():
                content += chunk
                self._check_size(path, content)
        return Response(response.status_code, response.headers, content)

    def _check_size(self, path: str, content: bytes | bytearray) -> None:
        if len(content) > MAX_RESPONSE_BYTES:
            megabytes = MAX_RESPONSE_BYTES // 1_000_000
            raise click.ClickException(f"{self.url} responds with more than {megabytes} MB for {API}/{path}.")

    def _pause(self, response: Response, backoff: float) -> None:
        """Let all requests wait for as long as the response says, in seconds or as a date."""
        text = response.headers.get("Retry-After", "")
        seconds = float(text) if text.isdecimal() else backoff
        # An OverflowError is a year or a time zone that does not exist.
        with contextlib.suppress(OverflowError):
            if date := parse_date(text):
                seconds = (date - datetime.datetime.now(datetime.UTC)).total_seconds()
        seconds = min(max(seconds, MIN_WAIT_SECONDS), MAX_WAIT_SECONDS)
        if self.resume_at <= monotonic():
            self._say(f"asks to wait for {seconds:.0f} seconds (status {response.status})")
        self.resume_at = max(self.resume_at, monotonic() + seconds)

    def _say(self, text: str) -> None:
        if self.is_followed or sys.stderr.isatty():
            echo(f"{self.url} {text}", err=True)

    def _parse(self, path: str, response: Response) -> Document:
        """Return the object of a response. Raises UnexpectedResponse, also for any status other than 200."""
        status = response.status
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise Refused(f"{self.url} refuses the key in MIRROR_KEY (status {status}).")
        content = self._unpack(path, response)
        if sum(map(content.count, (b",", b"[", b"{"))) > MAX_RESPONSE_VALUES:
            raise click.ClickException(
                f"{self.url} responds with more than {MAX_RESPONSE_VALUES:,} values for {API}/{path}."
            )
        # NaN and the like pass here, so that an invalid record is rejected, and not the others of its page.
        with contextlib.suppress(ValueError, RecursionError):
            if status == HTTPStatus.OK and isinstance(found := json.loads(content), dict):
                return found
        raise self._make_error(path, status, response.headers.get("Location") or content.decode(errors="replace"))

    def _unpack(self, path: str, response: Response) -> bytes | bytearray:
        """Return the content without its Content-Encoding, which is gzip or none."""
        encoding = response.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return response.content
        with contextlib.suppress(zlib.error):
            if encoding == "gzip":
                content = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(response.content, MAX_RESPONSE_BYTES + 1)
                self._check_size(path, content)
                return content
        raise self._make_error(path, response.status, f"Content-Encoding {encoding}")

    def _make_error(self, path: str, status: int, content: str) -> UnexpectedResponse:
        problem = f'status {status} for {API}/{path}, "{self._quote(content)}"'
        return UnexpectedResponse(status, f"{self.url} does not respond as a Driver Analytics API: {problem}")

    def _quote(self, text: str) -> str:
        """Return the beginning of a text, with escape sequences for control characters."""
        # A page for developers may repeat the headers of the request.
        return json.dumps(text.replace(self.key, "[redacted]")[:QUOTED_CHARS])[1:-1]


def get_first_date() -> str:
    """Return the first start_date that the service allows for trips."""
    return str(get_today() - HISTORY)


@contextlib.contextmanager
def connect(url: str, key: str, *, is_followed: bool) -> Iterator[Upstream]:
    """Yield the service at `url`. Redirects are not followed, so the key goes to no other address."""
    with importing_from_extra("mirror", "This command"):
        import httpx2
        from anyio.from_thread import start_blocking_portal
    headers = {"Authorization": f"APIKEY {key}", "Accept": "application/json", "Content-Type": "application/json"}
    # A gzip can be unpacked up to a limit, and cookies would pile up.
    headers["Accept-Encoding"] = "gzip"
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    try:
        client = httpx2.AsyncClient(headers=headers, cookies=no_cookies, timeout=PATIENCE_SECONDS)
    except (OSError, ValueError, ImportError, httpx2.InvalidURL):
        # The message of the error may have the password of a proxy, and does not name the file.
        raise click.ClickException("A proxy (such as HTTPS_PROXY) or SSL_CERT_FILE cannot be used.") from None
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Upstream(url, key, is_followed, portal, client, httpx2.RequestError)
