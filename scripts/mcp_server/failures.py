"""The failures of tools. Each message says what to change."""

import datetime
import math
import re
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx2

from scripts.mcp_server.text import quote_data

DEFAULT_WAIT_SECONDS = 10
# A reason of the service for its own clients, who repeat a parameter; a tool has a list.
REPEAT_HINT = re.compile(r" ?Repeat \w+ for several values\b.*")
UNKNOWN_PATH = "There is no such path"

NO_KEY = (
    "The environment variable DRIVER_ANALYTICS_KEY has no API key. Tell the user to set it in the configuration of "
    "this MCP server. The operator of the service issues keys: driver-analytics keys issue --fleet ID."
)
REFUSED_KEY = (
    "The service refuses the API key in DRIVER_ANALYTICS_KEY: it is wrong, expired or revoked. Calling again does not "
    "help. Tell the user to set a valid key, which the operator of the service issues: driver-analytics keys issue "
    "--fleet ID."
)
INVALID_SETTING = (
    "DRIVER_ANALYTICS_URL or DRIVER_ANALYTICS_KEY has an invalid value. Tell the user to correct it: the URL is the "
    "address of the service, such as http://127.0.0.1:8000."
)
USER_IN_URL = (
    "DRIVER_ANALYTICS_URL has a user or password before an @. The service takes the API key alone. Tell the user to "
    "remove them: the URL is the address of the service, such as http://127.0.0.1:8000."
)
INVALID_RESPONSE = (
    "The body of the response cannot be decoded: it is not what its Content-Encoding says. Tell the user that a proxy "
    "in front of the service may change responses."
)
# The statuses with which a proxy says that the service does not respond now.
TEMPORARY = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class ToolFailure(Exception):
    """A tool cannot answer. The message tells the agent, or through it the user, what to change."""


class UnknownRecord(ToolFailure):
    """The service responds with 404."""


class InvalidInput(ToolFailure):
    """The service rejects the input. `reasons` has those of each parameter of the API."""

    def __init__(self, message: str, reasons: dict[str, str]) -> None:
        super().__init__(message)
        self.reasons = reasons


def make_failure(response: httpx2.Response, error: dict[str, Any], requests: int) -> ToolFailure:
    """Return the failure of an error response of the service, the last of so many requests of a call of a tool."""
    status, message = response.status_code, quote_data(str(error.get("message", "")))
    if status == HTTPStatus.UNAUTHORIZED:
        return ToolFailure(REFUSED_KEY)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return _make_limit_failure(response, message, requests)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return ToolFailure(f"The database hangs: {message}. {_wait(response)}")
    if status == HTTPStatus.NOT_FOUND:
        return _make_unknown(str(error.get("message", "")))
    if status == HTTPStatus.BAD_REQUEST:
        reasons = {
            name: REPEAT_HINT.sub("", " ".join(map(str, texts))).strip()
            for name, texts in dict(error.get("errors") or {}).items()
        }
        return InvalidInput(f"The service rejects the input: {message}", reasons)
    request_id = quote_data(str(error.get("request_id", "")))
    return ToolFailure(
        f"The service failed with status {status}: {message}. Calling again may not help. Tell the user to report "
        f"request_id {request_id} to the operator of the service."
    )


def make_temporary_failure(response: httpx2.Response, address: str) -> ToolFailure:
    """Return the failure of a response of a proxy in front of the service."""
    return ToolFailure(
        f"The service at {address} does not respond now (status {response.status_code} of a proxy in front of it). "
        f"This is a temporary failure. {_wait(response)}"
    )


def _make_limit_failure(response: httpx2.Response, message: str, requests: int) -> ToolFailure:
    limit = response.headers.get("X-RateLimit-Limit")
    if limit is None:
        # Every response to a valid key has the limit.
        return ToolFailure(f"{REFUSED_KEY} After many attempts the service responds: {message}.")
    if limit.isascii() and limit.isdecimal() and requests > int(limit):
        return ToolFailure(
            f"The fleet's rate limit is too small for this call: {message}. The call needs more than {limit} requests, "
            "so the same input fails again. Ask for less: fewer drivers (limit, min_distance_miles, skip) or a shorter "
            "window. Or tell the user that the operator can raise RATE_LIMIT."
        )
    return ToolFailure(f"The fleet's rate limit is exceeded: {message}. {_wait(response)}")


def _make_unknown(message: str) -> ToolFailure:
    if message.startswith(UNKNOWN_PATH):
        return UnknownRecord(
            "The service does not have a path that this tool needs. Tell the user that this program and the service "
            "may have different versions, or that DRIVER_ANALYTICS_URL has a path too many."
        )
    found = quote_data(REPEAT_HINT.sub("", message).rstrip("."))
    several = " Give each driver in an element of driver_ids of its own." if REPEAT_HINT.search(message) else ""
    return UnknownRecord(
        f"The service found nothing: {found}. Use find_drivers to get a valid driver_id, and copy it exactly.{several}"
    )


def _wait(response: httpx2.Response) -> str:
    return f"Wait {_get_seconds(response)} seconds, then call the tool again with the same input."


def _get_seconds(response: httpx2.Response) -> int:
    """Return the seconds of Retry-After, which has a number or a date."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return int(text[:9])
    try:
        wait = parsedate_to_datetime(text) - datetime.datetime.now(datetime.UTC)
    except (TypeError, ValueError, OverflowError):
        return DEFAULT_WAIT_SECONDS
    return max(1, math.ceil(wait.total_seconds()))
