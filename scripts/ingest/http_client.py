"""Requests to another service: several at a time, repeated after failures, and limited in time and size."""

import contextlib
import dataclasses
import datetime
import json
import sys
from asyncio import sleep, timeout
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from typing import Any, NamedTuple

import click
from werkzeug.http import parse_date

from app.config import API
from app.store import Document
from scripts.command_line.output import echo

# Requests at the same time. A few make up for the distance of the service, and leave room for its other clients.
REQUESTS = 4
# How long to wait for the next bytes of a response, and for all of it.
PATIENCE_SECONDS, RESPONSE_SECONDS = 30.0, 60.0
# The largest response: its bytes, packed and unpacked, and its values. A parsed value takes up to 200 bytes, most of
# them far more than its text. No line of records.MAX_RECORD_BYTES that is a valid trip has as many values.
MAX_RESPONSE_BYTES, MAX_RESPONSE_VALUES = 32_000_000, 1_300_000
# The wait before a request is repeated doubles each time, unless the service asks for another one.
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


class TooLarge(click.ClickException):
    """A response has more bytes or values than any of such a service."""


class UnexpectedResponse(click.ClickException):
    """The service responds with something that the interface does not have."""


class Request(NamedTuple):
    """A request: the path under /api/v1, and the parameters. That for a trip also has what identifies the trip."""

    path: str
    params: Mapping[str, str | int]
    trip_id: str = ""
    tracking_id: str | None = None


class Response(NamedTuple):
    """A response: its status, its headers, and its content; of one that is too large the beginning."""

    status: int
    headers: Any
    content: bytearray


@dataclasses.dataclass
class HttpClient:
    """A client of the service at `url`. It repeats a request until there is a response, and waits for `Retry-After`.

    Raises click.ClickException if there is no response; for a service that `is_followed`, only before the first one.

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

    def fetch(self, requests: Iterable[Request], found: deque[Request]) -> Iterator[tuple[Request, Response]]:
        """Make requests, a few at a time, and yield the responses as they come.

        Requests that the caller finds in the responses, and adds to `found`, are made before the others.
        """
        pending, others = dict[Future[Response], Request](), iter(requests)
        while True:
            while len(pending) < REQUESTS and (request := found.popleft() if found else next(others, None)):
                pending[self.portal.start_task_soon(self._get, request)] = request
            if not pending:
                return
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()

    def get(self, request: Request) -> Response:
        """Make one request, and return its response."""
        response: Response = self.portal.call(self._get, request)
        return response

    async def _get(self, request: Request) -> Response:
        """Return the response to a request, whatever its status."""
        waits_since, failures, backoff = None, 0, FIRST_BACKOFF_SECONDS
        while True:
            response = await self._reach(request)
            status = response.status
            if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
                waits_since = monotonic() if waits_since is None else waits_since
                if monotonic() - waits_since > MAX_WAITS_SECONDS and not self.is_followed:
                    raise click.ClickException(f"{self.url} asks to wait for more than a day (status {status}).")
                self._pause(response, backoff)
            else:
                failures += status >= HTTPStatus.INTERNAL_SERVER_ERROR
                if status < HTTPStatus.INTERNAL_SERVER_ERROR or failures == TRIES:
                    return response
                if failures == 1:
                    self._say(f"fails (status {status}). Trying again ...")
                await sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF_SECONDS)

    async def _reach(self, request: Request) -> Response:
        """Return a response of the service, not of a proxy. Raises click.ClickException if there is none for long."""
        failed_at, backoff = None, FIRST_BACKOFF_SECONDS
        while True:
            if self.resume_at > monotonic():
                await sleep(self.resume_at - monotonic())
            began_at = monotonic()
            try:
                response = await self._try(request)
            except (self.failure, TimeoutError) as error:
                if self.client.is_closed:
                    raise
                problem = f"{type(error).__name__} {self._quote(str(error))}".rstrip(" .")
            else:
                if response.status not in UNREACHED:
                    self.has_responded = True
                    return response
                problem = f"status {response.status}"
            if failed_at is None:
                failed_at = began_at
                self._say(f"does not respond ({problem}). Trying again ...")
            if monotonic() - failed_at > PATIENCE_SECONDS and not (self.is_followed and self.has_responded):
                raise click.ClickException(f"{self.url} did not respond for {PATIENCE_SECONDS:.0f} seconds: {problem}.")
            await sleep(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF_SECONDS)

    async def _try(self, request: Request) -> Response:
        """Make a request once. Raises `failure`, and TimeoutError if the response does not end in time."""
        url, content = f"{self.url}{API}/{request.path}", bytearray()
        async with timeout(RESPONSE_SECONDS), self.client.stream("GET", url, params=request.params) as response:
            encoding = response.headers.get("Content-Encoding", "identity")
            # A proxy may send an error in another encoding.
            if response.status_code == HTTPStatus.OK and encoding.lower() not in ("gzip", "identity"):
                raise self.make_error(request, response.status_code, f"Content-Encoding {encoding}")
            # The library unpacks a gzip in small pieces.
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > MAX_RESPONSE_BYTES:
                    break
        return Response(response.status_code, response.headers, content)

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

    def parse(self, request: Request, response: Response) -> Document:
        """Return the object of a response. Raises TooLarge, and UnexpectedResponse, also for any status but 200."""
        status = response.status
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise Refused(f"{self.url} refuses the key in MIRROR_KEY (status {status}).")
        content, limit = response.content, ""
        if len(content) > MAX_RESPONSE_BYTES:
            limit = f"{MAX_RESPONSE_BYTES // 1_000_000} MB"
        elif sum(map(content.count, (b",", b"[", b"{"))) > MAX_RESPONSE_VALUES:
            limit = f"{MAX_RESPONSE_VALUES:,} values"
        if limit:
            raise TooLarge(f"{self.url} responds with more than {limit} for {API}/{request.path}.")
        # NaN and the like pass here, so that an invalid record is rejected, and not the others of its page.
        with contextlib.suppress(ValueError, RecursionError):
            if status == HTTPStatus.OK and isinstance(found := json.loads(content), dict):
                return found
        quoted = response.headers.get("Location") or content.decode(errors="replace")
        raise self.make_error(request, status, quoted)

    def make_error(self, request: Request, status: int, content: str) -> UnexpectedResponse:
        """Return an error that quotes the content of a response."""
        problem = f'status {status} for {API}/{request.path}, "{self._quote(content)}"'
        return UnexpectedResponse(f"{self.url} does not respond as a Driver Analytics API: {problem}")

    def _quote(self, text: str) -> str:
        """Return the beginning of a text, with escape sequences for control characters."""
        # A page for developers may repeat the headers of the request.
        return json.dumps(text.replace(self.key, "[redacted]")[:QUOTED_CHARS])[1:-1]


@contextlib.contextmanager
def open_upstream(url: str, key: str, *, is_followed: bool) -> Iterator[HttpClient]:
    """Yield a client of the service at `url`. Redirects are not followed, so the key goes to no other address."""
    # Imported here, because these libraries are those of an extra.
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
        yield HttpClient(url, key, is_followed, portal, client, httpx2.RequestError)
