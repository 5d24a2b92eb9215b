"""The HTTP client of the service, and the messages of its failures. Each says what to change."""

import contextlib
import copy
import datetime
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from zoneinfo import ZoneInfo

import anyio
import httpx2
from mcp.server.mcpserver import Context, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, TypeAdapter, ValidationError

from scripts.command_line.output import MAX_NAME_LENGTH, to_json

API = "/api/v1"
VERSION = version("driver-analytics-api")
TIMEOUT_SECONDS = 10.0
CONNECT_TIMEOUT_SECONDS = 3.0
# For a whole request: the client's own timeouts apply to each part that it receives.
TOTAL_TIMEOUT_SECONDS = 20.0
DEFAULT_WAIT_SECONDS = 10
# Those that TLS trusts. To read them takes as long as many requests. They hold nothing of a key.
AUTHORITIES = httpx2.create_ssl_context()
# The service takes request lines of up to 8,190 bytes.
MAX_TARGET_BYTES = 8_000
# The largest page.
PAGE_SIZE = 100
# Of a list by cursor, how many pages a call reads, of which some may be empty.
MAX_LIST_PAGES = 20

INVALID_SETTING = (
    "DRIVER_ANALYTICS_URL or DRIVER_ANALYTICS_KEY is missing or has an invalid value. Tell the user to correct it in "
    "the configuration of this MCP server. The URL is the address of the service, such as http://127.0.0.1:8000, "
    "without a user or password. The operator of the service issues keys: driver-analytics keys issue --fleet ID."
)
UNEXPECTED_RESPONSE = (
    "The response at the address in DRIVER_ANALYTICS_URL does not have the expected fields. Tell the user that it may "
    "not be a Driver Analytics API, or that this program and the service may have different versions."
)
# What to do about an error response with the status, after its message.
ADVICE: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "The API key, in DRIVER_ANALYTICS_KEY or in the header Authorization, is missing, wrong, "
    "expired or revoked. Calling again does not help. Tell the user to set a valid key, which the operator of the "
    "service issues: driver-analytics keys issue --fleet ID.",
    HTTPStatus.FORBIDDEN: "The API key opens one driver, and this is about the whole fleet. "
    "Calling again does not help. find_drivers returns the driver; use driver_summary, explain_score, list_trips, "
    "list_events and describe_trip for this driver. For other drivers, tell the user to set a key of the fleet.",
    HTTPStatus.NOT_FOUND: "If this is about a driver, use find_drivers and copy the driver_id exactly; a key of one "
    "driver opens no other driver. If it is about a group, use list_groups; a key of one driver opens none. If it is "
    "about a path, tell the user that DRIVER_ANALYTICS_URL is the address of the service without a path, or that this "
    "program and the service have different versions.",
}
# The statuses of the service, or of a proxy in front of it, after which a later request may succeed.
TEMPORARY = frozenset({429, 502, 503, 504})

# Without those that are None.
Params = Mapping[str, Any]
# An object of a response. The schemas of the service have its fields.
Json = dict[str, Any]
Reply = TypeVar("Reply")


class InvalidInput(ToolError):
    """The service rejects a parameter. The message tells the agent why."""


class FleetOfKey(BaseModel):
    """The fleet of a key: which day it is in its time zone, and what it does with implausible trips."""

    today: datetime.date
    time_zone: ZoneInfo
    implausible_trips: str


class ServiceError(ToolError):
    """The service refuses a request, with `status`, or gives no usable response: 503. The message says what to do."""

    def __init__(
        self, message: str, status: int = HTTPStatus.SERVICE_UNAVAILABLE, wait_seconds: int = DEFAULT_WAIT_SECONDS
    ) -> None:
        super().__init__(message)
        self.status, self.wait_seconds = status, wait_seconds


class ApiClient:
    """Makes requests to the service at `url` with an API key. Either may be empty or wrong: each request then fails."""

    def __init__(self, client: httpx2.AsyncClient, url: str, key: str) -> None:
        self._client, self._url, self._key = client, url.strip().rstrip("/").removesuffix(API), key.strip()
        self._info: FleetOfKey | None = None

    async def get_info(self) -> FleetOfKey:
        """Return what the service says of the fleet of the key. Raises ServiceError."""
        if self._info is None:
            self._info = await self.get(FleetOfKey, "fleet")
        return self._info

    async def get_today(self) -> datetime.date:
        """Return which day it is in the time zone of the fleet. Raises ServiceError."""
        return (await self.get_info()).today

    async def get(self, reply: type[Reply], *path: str, params: Params | None = None, fields: str = "") -> Reply:
        """Return the response, or these fields (a field mask) of it, as a model or Json.

        `path` has the unencoded segments after /api/v1. Raises InvalidInput or ServiceError.
        """
        if not (is_url(self._url) and is_key(self._key)):
            raise ServiceError(INVALID_SETTING)
        # Encoded dots keep a client from reading the segments `.` and `..` as another path.
        segments = [quote(segment, safe="").replace(".", "%2E") for segment in path]
        given = {name: value for name, value in (params or {}).items() if value is not None}
        target = f"{'/'.join([API, *segments])}?{urlencode(given, doseq=True)}"
        if len(target) > MAX_TARGET_BYTES:
            raise InvalidInput("Correct the arguments. They are too long.")
        headers = {"Authorization": f"APIKEY {self._key}", "X-Fields": fields}
        try:
            with anyio.fail_after(TOTAL_TIMEOUT_SECONDS):
                response = await self._client.get(f"{self._url}{target}", headers=headers)
        except (httpx2.RequestError, httpx2.InvalidURL, TimeoutError) as error:
            raise ServiceError(
                f"No service responds at the address in DRIVER_ANALYTICS_URL ({str(error) or type(error).__name__}). "
                "Tell the user to start it (driver-analytics serve), or to correct DRIVER_ANALYTICS_URL. Then call the "
                "tool again."
            ) from None
        if response.status_code != HTTPStatus.OK:
            raise _make_failure(response, given)
        try:
            return TypeAdapter(reply).validate_json(response.content)
        except ValidationError:
            raise ServiceError(UNEXPECTED_RESPONSE) from None


async def read_list(api: ApiClient, name: str, *, params: Params, most: int) -> tuple[list[Json], bool]:
    """Return the first rows of a list by cursor, at least `most` of them if a few pages have as many.

    The second value is whether there may be more.
    """
    rows: list[Json] = []
    cursor = None
    for _ in range(MAX_LIST_PAGES):
        page = await api.get(Json, name, params={"limit": PAGE_SIZE, **params, "cursor": cursor})
        rows, cursor = rows + page[name], page["next_cursor"]
        if cursor is None or len(rows) >= most:
            break
    return rows, cursor is not None


def is_url(text: str) -> bool:
    """Return whether a text may be the address of a service."""
    try:
        address = urlsplit(text)
        # A client would send a user in the URL instead of the key. A port out of range raises ValueError.
        return address.scheme in {"http", "https"} and bool(address.hostname) and address.port != 0 and "@" not in text
    except ValueError:
        return False


def is_key(text: str) -> bool:
    """Return whether a text can be sent as a key."""
    return bool(text) and text.isascii() and text.isprintable()


def _make_failure(response: httpx2.Response, params: Params) -> InvalidInput | ServiceError:
    try:
        error = dict(response.json())
    except (ValueError, TypeError):
        error = {}
    status, errors = response.status_code, error.get("errors")
    if status == HTTPStatus.BAD_REQUEST and isinstance(errors, dict):
        reasons = to_json(" ".join(f"{name}: {' '.join(map(str, why))}" for name, why in errors.items()))
        return InvalidInput(f"Correct the arguments. The service rejects the parameters {to_json(params)}: {reasons}.")
    message = to_json(str(error.get("message", response.reason_phrase)))
    failure = f"The service responds with status {status}: {message}."
    if status in TEMPORARY:
        text = response.headers.get("Retry-After", "")
        seconds = int(text) if text.isascii() and text.isdecimal() else DEFAULT_WAIT_SECONDS
        return ServiceError(
            f"{failure} Wait {seconds} seconds, then call again. If that fails again, ask for less.", status, seconds
        )
    if "error" not in error:
        return ServiceError(
            f"{failure} It is not a Driver Analytics API. Tell the user to correct DRIVER_ANALYTICS_URL: the address "
            f"of the service, without {API}."
        )
    report = f"Tell the user to report request_id {to_json(error.get('request_id'))} to the operator of the service."
    return ServiceError(f"{failure} {ADVICE.get(status, report)}", status)


@contextlib.asynccontextmanager
async def open_service(url: str, key: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[ApiClient]:
    """Return a client of the service, whose connections are closed at the end. All its requests have the headers."""
    timeout = httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS)
    own = {"User-Agent": f"driver-analytics-mcp/{VERSION}", "Accept": "application/json"}
    # Redirects are not followed, so the key goes to no other address.
    async with httpx2.AsyncClient(timeout=timeout, headers={**own, **(headers or {})}, verify=AUTHORITIES) as client:
        yield ApiClient(client, url, key)


async def _get_client(context: Context[Any, Any]) -> ApiClient:
    """Return the client of a call. Raises ToolError for an unknown argument, which the SDK would ignore."""
    call = context.request_context.params or {}
    (tool,) = [tool for tool in await context.mcp_server.list_tools() if tool.name == call["name"]]
    known = tool.input_schema["properties"]
    for name in (call.get("arguments") or {}).keys() - known:
        raise ToolError(
            f"Correct the arguments. {to_json(name[:MAX_NAME_LENGTH])}: There is no such argument. There are: "
            f"{', '.join(known)}."
        )
    request = context.request_context.request
    # Over HTTP each call has a client of its own. Over stdio the process has one, and each call asks again what its key
    # opens.
    client: ApiClient = request.state.api if request else copy.copy(context.request_context.lifespan_context)
    return client


# A parameter of a tool that agents do not see.
Api = Annotated[ApiClient, Resolve(_get_client)]
