"""The HTTP client of the service."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Self
from urllib.parse import quote

import anyio
import httpx2

from app.config import API, MAX_PORT
from scripts.mcp_server.failures import (
    INVALID_RESPONSE,
    INVALID_SETTING,
    NO_KEY,
    TEMPORARY,
    USER_IN_URL,
    ToolFailure,
    UnknownRecord,
    make_failure,
    make_temporary_failure,
)
from scripts.mcp_server.text import quote_data

PACKAGE = "driver-analytics-api"
TIMEOUT_SECONDS = 10.0
CONNECT_TIMEOUT_SECONDS = 3.0
# For a whole request: the client's own timeouts apply to each part that it receives.
TOTAL_TIMEOUT_SECONDS = 20.0
MAX_RESPONSE_BYTES = 10_000_000

Params = Mapping[str, str | int | float | Sequence[str]]


class ApiClient:
    """Makes requests to the service at `url` with an API key. Either may be empty or wrong: each request then fails."""

    def __init__(self, client: httpx2.AsyncClient, url: str, key: str) -> None:
        self._client, self._url, self._key = client, url.strip().rstrip("/").removesuffix(API), key.strip()
        self._requests = 0
        self._address = quote_data(self._url)

    def for_call(self) -> Self:
        """Return a client with the same connections for one call of a tool, which counts its requests."""
        return type(self)(self._client, self._url, self._key)

    async def get(self, *path: str, params: Params, fields: str) -> dict[str, Any]:
        """Return these fields (a field mask) of the response. `path` has the unencoded segments after /api/v1.

        Raises UnknownRecord or ToolFailure.
        """
        if not self._key:
            raise ToolFailure(NO_KEY)
        # The client would send the user instead of the key, and messages show the address.
        if "@" in self._url:
            raise ToolFailure(USER_IN_URL)
        # In a path they would select another one.
        if {".", ".."} & set(path):
            raise UnknownRecord(
                "No identifier is '.' or '..'. Copy a driver_id from find_drivers, or a trip_id from list_trips."
            )
        self._requests += 1
        url = "/".join([f"{self._url}{API}", *(quote(segment, safe="") for segment in path)])
        headers = {"Authorization": f"APIKEY {self._key}", "X-Fields": fields}
        try:
            with anyio.fail_after(TOTAL_TIMEOUT_SECONDS):
                response, body = await self._request(url, params, headers)
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeError):
            raise ToolFailure(f"{INVALID_SETTING} The URL is {self._address}.") from None
        except httpx2.DecodingError:
            raise ToolFailure(INVALID_RESPONSE) from None
        except (httpx2.TransportError, TimeoutError) as error:
            raise ToolFailure(
                f"No service responds at {self._address} ({type(error).__name__}). Tell the user to start it "
                "(driver-analytics serve), or to correct DRIVER_ANALYTICS_URL. Then call the tool again."
            ) from None
        return self._parse(response, body)

    async def _request(self, url: str, params: Params, headers: Mapping[str, str]) -> tuple[httpx2.Response, bytes]:
        if not 0 <= (httpx2.URL(url).port or 0) <= MAX_PORT:
            raise httpx2.InvalidURL("The port is out of range.")
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
            if response.status_code in TEMPORARY:
                raise make_temporary_failure(response, self._address)
            raise ToolFailure(
                f"What responds at {self._address} is not a Driver Analytics API (status "
                f"{response.status_code}). Tell the user to correct DRIVER_ANALYTICS_URL: the address of the service, "
                f"without {API}."
            )
        if response.status_code == HTTPStatus.OK:
            return content
        raise make_failure(response, content, self._requests)


@contextlib.asynccontextmanager
async def connect(url: str, key: str) -> AsyncIterator[ApiClient]:
    """Return a client of the service, whose connections are closed at the end."""
    timeout = httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
    headers = {"User-Agent": f"driver-analytics-mcp/{version(PACKAGE)}", "Accept": "application/json"}
    # Redirects are not followed, so the key goes to no other address.
    async with httpx2.AsyncClient(timeout=timeout, headers=headers) as client:
        yield ApiClient(client, url, key)
