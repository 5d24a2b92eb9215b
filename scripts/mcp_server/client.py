"""The HTTP client of the service. Each failure is a message that says what to change."""

import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import anyio
import httpx2

from app.config import API
from scripts.mcp_server.text import quote_data

PACKAGE = "driver-analytics-api"
TIMEOUT_SECONDS = 10.0
CONNECT_TIMEOUT_SECONDS = 3.0
# For a whole request: the client's own timeouts apply to each part that it receives.
TOTAL_TIMEOUT_SECONDS = 20.0
MAX_RESPONSE_BYTES = 10_000_000

USER_INFO = re.compile(r"//[^/]*@")

NO_KEY = (
    "The environment variable DRIVER_ANALYTICS_KEY has no API key. Tell the user to set it in the configuration of "
    "this MCP server. The operator of the service issues keys: driver-analytics keys issue --fleet ID."
)
REFUSED_KEY = (
    "The service refuses the API key in DRIVER_ANALYTICS_KEY: it is wrong, expired or revoked. Calling again does not "
    "help. Tell the user to set a valid key, which the operator of the service issues: driver-analytics keys issue "
    "--fleet ID."
)
UNKNOWN = (
    "Use find_drivers to get a valid driver_id, and copy it exactly. If there is no such path, tell the user to "
    "correct DRIVER_ANALYTICS_URL."
)
WAITING: dict[int, str] = {
    HTTPStatus.TOO_MANY_REQUESTS: "The fleet's rate limit is exceeded",
    HTTPStatus.SERVICE_UNAVAILABLE: "The database hangs",
}
INVALID_SETTING = (
    "DRIVER_ANALYTICS_URL or DRIVER_ANALYTICS_KEY has an invalid value. Tell the user to correct it: the URL is the "
    "address of the service, such as http://127.0.0.1:8000."
)

Params = Mapping[str, str | int | float | Sequence[str]]


class ToolFailure(Exception):
    """A tool cannot answer. The message tells the agent, or through it the user, what to change."""


class UnknownRecord(ToolFailure):
    """The service responds with 404."""


class ApiClient:
    """Makes requests to the service at `url` with an API key. Either may be empty or wrong: each request then fails."""

    def __init__(self, client: httpx2.AsyncClient, url: str, key: str) -> None:
        self._client, self._url, self._key = client, url.rstrip("/").removesuffix(API), key.strip()
        # Messages show the address, without a password in it.
        self._address = quote_data(USER_INFO.sub("//", self._url))

    async def get(self, *path: str, params: Params, fields: str) -> dict[str, Any]:
        """Return these fields (a field mask) of the response. `path` has the unencoded segments after /api/v1.

        Raises UnknownRecord or ToolFailure.
        """
        if not self._key:
            raise ToolFailure(NO_KEY)
        url = "/".join([f"{self._url}{API}", *(quote(segment, safe="") for segment in path)])
        headers = {"Authorization": f"APIKEY {self._key}", "X-Fields": fields}
        try:
            with anyio.fail_after(TOTAL_TIMEOUT_SECONDS):
                response, body = await self._request(url, params, headers)
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeError):
            raise ToolFailure(f"{INVALID_SETTING} The URL is {self._address}.") from None
        except (httpx2.TransportError, TimeoutError) as error:
            raise ToolFailure(
                f"No service responds at {self._address} ({type(error).__name__}). Tell the user to start it "
                "(driver-analytics serve), or to correct DRIVER_ANALYTICS_URL. Then call the tool again."
            ) from None
        return self._parse(response, body)

    async def _request(self, url: str, params: Params, headers: Mapping[str, str]) -> tuple[httpx2.Response, bytes]:
        async with self._client.stream("GET", url, params=dict(params), headers=dict(headers)) as response:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_RESPONSE_BYTES:
                    raise ToolFailure("The response of the service is too long. Ask for a shorter window.")
            return response, bytes(body)

    def _parse(self, response: httpx2.Response, body: bytes) -> dict[str, Any]:
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        if not isinstance(content, dict) or (response.status_code != HTTPStatus.OK and "error" not in content):
            raise ToolFailure(
                f"What responds at {self._address} is not a Driver Analytics API (status "
                f"{response.status_code}). Tell the user to correct DRIVER_ANALYTICS_URL: the address of the service, "
                f"without {API}."
            )
        if response.status_code == HTTPStatus.OK:
            return content
        raise _make_failure(response, content)


@contextlib.asynccontextmanager
async def connect(url: str, key: str) -> AsyncIterator[ApiClient]:
    """Return a client of the service, whose connections are closed at the end."""
    timeout = httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
    headers = {"User-Agent": f"driver-analytics-mcp/{version(PACKAGE)}", "Accept": "application/json"}
    # Redirects are not followed, so the key goes to no other address.
    async with httpx2.AsyncClient(timeout=timeout, headers=headers) as client:
        yield ApiClient(client, url, key)


def _make_failure(response: httpx2.Response, error: dict[str, Any]) -> ToolFailure:
    status, message = response.status_code, quote_data(str(error.get("message", "")))
    if status == HTTPStatus.UNAUTHORIZED:
        return ToolFailure(REFUSED_KEY)
    if status in WAITING:
        seconds = quote_data(response.headers.get("Retry-After", "10")).strip('"')
        return ToolFailure(
            f"{WAITING[status]}: {message}. Wait {seconds} seconds, then call the tool again with the same input."
        )
    if status == HTTPStatus.NOT_FOUND:
        return UnknownRecord(f"The service found nothing: {message}. {UNKNOWN}")
    if status == HTTPStatus.BAD_REQUEST:
        reasons = {name: " ".join(map(str, texts)) for name, texts in dict(error.get("errors") or {}).items()}
        details = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or message
        return ToolFailure(f"The service rejects the input. {details}")
    request_id = quote_data(str(error.get("request_id", "")))
    return ToolFailure(
        f"The service failed with status {status}: {message}. Calling again may not help. Tell the user to report "
        f"request_id {request_id} to the operator of the service."
    )
