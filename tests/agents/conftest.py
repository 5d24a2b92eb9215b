"""A service of a fleet over HTTP in this process, and the SDK's own client of the tools."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp import Client

from scripts.mcp_server.client import open_service
from scripts.mcp_server.server import create_server
from tests.factories import epoch_ms, make_driver, make_event, make_event_summary, make_trip
from tests.resilience.processes import Agents

LAST_WEEK, WEEK_BEFORE = "2026-03-09", "2026-03-02"


@pytest.fixture
def url(serve, service) -> str:
    """The URL of the service."""
    return serve(service)


@pytest.fixture
def agents(url, tmp_path) -> Iterator[Agents]:
    """A process that serves the tools over HTTP."""
    with Agents(tmp_path, "agents").ask(url) as process:
        yield process


def call_tool(url: str, key: str, tool: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    """Call a tool with the SDK's client, which checks the data against the schema; return the data and the text."""

    async def run() -> Any:
        async with Client(create_server(open_service(url, key))) as client:
            return await client.call_tool(tool, arguments)

    result = asyncio.run(run())
    (content,) = result.content
    assert result.is_error or json.loads(content.text) == result.structured_content
    return None if result.is_error else result.structured_content, content.text


@pytest.fixture
def call(url, service) -> Callable[..., Any]:
    """Call a tool that succeeds: `call("find_drivers", search="ann")` returns the data."""

    def run(tool: str, **arguments: Any) -> Any:
        data, text = call_tool(url, service.key("f1"), tool, arguments)
        assert data, text
        return data

    return run


@pytest.fixture
def fail(url, service) -> Callable[..., str]:
    """Call a tool that fails; return the message. `key` and `at`, a URL, are those of the fleet by default."""

    def run(tool: str, key: str | None = None, at: str | None = None, **arguments: Any) -> str:
        data, text = call_tool(at or url, service.key("f1") if key is None else key, tool, arguments)
        assert data is None, text
        return text

    return run


@pytest.fixture
def fleet(load) -> None:
    """Ann got worse, mostly by two trips; Bob got better; Cem drove in one week; Dee drove in autumn."""
    brake = make_event(epoch_ms("2026-03-11T08:05"))
    phone = {"phone_use_count": 2, "phone_use_time_seconds": 180}
    trips = [
        make_trip(f"{WEEK_BEFORE}T08:00", "ann"),
        make_trip(f"{LAST_WEEK}T07:00", "ann", trip_id="calm"),
        make_trip(f"{LAST_WEEK}T08:00", "ann", trip_id="call", event_summary=make_event_summary(**phone)),
        make_trip(
            "2026-03-11T08:00",
            "ann",
            trip_id="brake",
            event_summary=make_event_summary(hard_brake_count=3),
            events=[brake],
        ),
        make_trip(f"{WEEK_BEFORE}T08:00", "bob", event_summary=make_event_summary(hard_brake_count=1)),
        make_trip(f"{LAST_WEEK}T08:00", "bob"),
        make_trip(f"{LAST_WEEK}T08:00", "cem", event_summary=make_event_summary(**phone)),
        make_trip("2025-09-02T08:00", "dee"),
    ]
    names = {
        "ann": ("Ann", "Ødegård", None),
        "bob": ("Bob", "Dvořák", "Van 1"),
        "cem": ("Cem", None, "Van 2"),
        "dee": (None, None, None),
    }
    drivers = [
        make_driver(driver_id, first_name=first, last_name=last, alias=alias, email="secret@example.com")
        for driver_id, (first, last, alias) in names.items()
    ]
    load(*trips, drivers=drivers)
