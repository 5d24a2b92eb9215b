"""The service that `mirror` reads: its endpoints for drivers and trips and, where it has one, its change feed.

It may be the original service. So nothing is sent or expected but what docs/clients.md lists as published, except for
the change feed.
"""

import contextlib
import dataclasses
import datetime
import json
import sys
from asyncio import sleep
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from http import HTTPStatus
from time import monotonic
from typing import Any, TypeVar, cast
from urllib.parse import quote

import click
from marshmallow import ValidationError
from werkzeug.http import parse_date

from app.config import API
from app.store import Document
from schemas.date_params import HISTORY
from schemas.page import ChangePage
from schemas.periods import get_today
from scripts.extras import importing_from_extra
from scripts.output import echo

R = TypeVar("R")

# Requests at the same time. A few make up for the distance of the service, and leave room for its other clients.
REQUESTS = 4
PAGE_LIMIT = 100
# The deletions on a page of the change feed are one transaction.
CHANGES_LIMIT = 500
# How long to wait for a response. A service that does not respond for this long is given up.
PATIENCE_SECONDS = 30.0
# The wait after a failure doubles with each further failure.
FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 1.0, 15.0
# The bounds of a wait that the service asks for.
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 1.0, 3_600.0
# How long to wait for a result before there is a pause.
PAUSE_SECONDS = 0.25
# How often a request is made that makes the service fail, for example with 500.
TRIES = 4
# What an error message quotes of a response.
QUOTED_CHARS = 100
# Responses of a proxy that did not reach the service.
UNREACHED = (HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT)


class Refused(click.ClickException):
    """The service refuses the key."""


class UnexpectedResponse(click.ClickException):
    """The service responds with this status, or with something that the interface does not have."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass
class Upstream:
    """The service at `url`. Repeats a request until there is a response, and waits for as long as the service asks.

    Raises click.ClickException if there is none; for a service that `is_followed`, only before its first response.

    Requests are made in the thread of the `portal`. So a signal, which Python handles in the main thread, interrupts
    none of them halfway.
    """

    url: str
    key: str
    is_followed: bool
    portal: Any
    client: Any
    failure: type[Exception]
    has_responded: bool = False
    resume_at: float = 0.0

    def map(self, get: Callable[[Any], Coroutine[Any, Any, R]], items: Iterable[Any]) -> Iterator[R | None]:
        """Yield the results of `get` for the items as they come, a few at a time. None is a pause, also in `items`."""
        pending = set[Future[R]]()
        for item in items:
            if item is not None:
                pending.add(self.portal.start_task_soon(get, item))
            yield from _collect(pending, 0)
            while len(pending) >= REQUESTS:
                yield from _collect(pending, PAUSE_SECONDS)
        while pending:
            yield from _collect(pending, PAUSE_SECONDS)

    async def find_drivers(self) -> list[Any]:
        """Return all drivers, as the service sends them."""
        return await self._get_records("drivers", "drivers", limit=PAGE_LIMIT)

    async def find_trips(self, driver_id: str, since: str) -> list[Any]:
        """Return the driver's trips since a date in summary form; none for an unknown driver.

        A date before the first one that the service allows means that one.
        """
        path, start_date = f"driver/{quote(driver_id, safe='')}/trips", max(since, get_first_date())
        return await self._get_records(path, "trips", limit=PAGE_LIMIT, start_date=start_date)

    async def find_details(self, trip_id: str) -> list[Any]:
        """Return the trip in detail form; none if it is gone."""
        return await self._get_records(f"trip/trip_id/{quote(trip_id, safe='')}", "trips")

    async def get_changes(self, cursor: str | None) -> Document | None:
        """Return a page of the change feed (schema ChangePage), or None without a feed or for an invalid cursor."""
        try:
            page = await self._get("changes", limit=CHANGES_LIMIT, **({"cursor": cursor} if cursor else {}))
            return cast(Document, ChangePage().load(page))
        except (Refused, UnexpectedResponse, ValidationError):
            return None

    async def _get_records(self, path: str, name: str, **params: str | int) -> list[Any]:
        """Return the records of all pages that there are; none for an unknown identifier in the path."""
        records, number = list[Any](), 1
        while number:
            try:
                page = await self._get(path, **params, page=number)
            except UnexpectedResponse as error:
                if error.status != HTTPStatus.NOT_FOUND or (path == name and number == 1):
                    raise
                return records
            following = page.get("next_page") or 0
            if not isinstance(page.get(name), list) or following not in (0, number + 1):
                raise self._make_error(path, HTTPStatus.OK, f"no page of {name}")
            records += page[name]
            number = following
        return records

    async def _get(self, path: str, **params: str | int) -> Document:
        """Return the object of a response. Raises UnexpectedResponse, also for any status other than 200."""
        failed_at, backoff, attempt = None, FIRST_BACKOFF_SECONDS, 0
        while True:
            attempt += 1
            if self.resume_at > monotonic():
                await sleep(self.resume_at - monotonic())
            began_at = monotonic()
            try:
                response = await self.client.get(f"{self.url}{API}/{path}", params=params)
            except self.failure as error:
                if self.client.is_closed:
                    raise
                problem = f"{type(error).__name__} {error}".rstrip(" .")
            else:
                status = response.status_code
                self.has_responded |= status not in UNREACHED
                if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
                    self._pause(response, backoff)
                    continue
                if status < HTTPStatus.INTERNAL_SERVER_ERROR or (status not in UNREACHED and attempt >= TRIES):
                    return self._parse(path, response)
                problem = f"status {status}"
            if failed_at is None:
                failed_at = began_at
                self._say(f"does not respond ({problem}). Trying again ...")
            if monotonic() - failed_at > PATIENCE_SECONDS and not (self.is_followed and self.has_responded):
                raise click.ClickException(f"{self.url} did not respond for {PATIENCE_SECONDS:.0f} seconds: {problem}.")
            await sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF_SECONDS)

    def _pause(self, response: Any, backoff: float) -> None:
        """Let all requests wait for as long as the response says, in seconds or as a date."""
        text = response.headers.get("Retry-After", "")
        seconds, date = float(text) if text.isdecimal() else backoff, parse_date(text)
        if date:
            seconds = (date - datetime.datetime.now(datetime.UTC)).total_seconds()
        seconds = min(max(seconds, MIN_WAIT_SECONDS), MAX_WAIT_SECONDS)
        if self.resume_at <= monotonic():
            self._say(f"asks to wait for {seconds:.0f} seconds (status {response.status_code})")
        self.resume_at = max(self.resume_at, monotonic() + seconds)

    def _say(self, text: str) -> None:
        if self.is_followed or sys.stderr.isatty():
            echo(f"{self.url} {text}", err=True)

    def _parse(self, path: str, response: Any) -> Document:
        status = response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise Refused(f"{self.url} refuses the key in MIRROR_KEY (status {status}).")
        # NaN and the like pass here, so that an invalid record is rejected, and not the others of its page.
        with contextlib.suppress(ValueError, RecursionError):
            if status == HTTPStatus.OK and isinstance(found := json.loads(response.content), dict):
                return found
        raise self._make_error(path, status, response.headers.get("Location") or response.text)

    def _make_error(self, path: str, status: int, content: str) -> UnexpectedResponse:
        # A page for developers may repeat the headers of the request.
        quoted = content.replace(self.key, "[redacted]")[:QUOTED_CHARS]
        problem = f"status {status} for {API}/{path}, {json.dumps(quoted)}"
        return UnexpectedResponse(status, f"{self.url} does not respond as a Driver Analytics API: {problem}")


def get_first_date() -> str:
    """Return the first start_date that the service allows for trips."""
    return str(get_today() - HISTORY)


def _collect(pending: set[Future[R]], seconds: float) -> Iterator[R | None]:
    """Wait for the first result, for `seconds` at most. Yield what there is and remove it, or yield None."""
    done, _ = wait(pending, timeout=seconds, return_when=FIRST_COMPLETED)
    pending -= done
    yield from [future.result() for future in done] or (None,)


@contextlib.contextmanager
def connect(url: str, key: str, *, is_followed: bool) -> Iterator[Upstream]:
    """Yield the service at `url`. Redirects are not followed, so the key goes to no other address."""
    with importing_from_extra("mirror", "This command"):
        import httpx2
        from anyio.from_thread import start_blocking_portal
    headers = {"Authorization": f"APIKEY {key}", "Accept": "application/json", "Content-Type": "application/json"}
    try:
        client = httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS)
    except (OSError, ValueError, ImportError, httpx2.InvalidURL):
        # The message of the error may have the password of a proxy, and does not name the file.
        raise click.ClickException("A proxy (such as HTTPS_PROXY) or SSL_CERT_FILE cannot be used.") from None
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Upstream(url, key, is_followed, portal, client, httpx2.RequestError)
