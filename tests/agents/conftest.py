"""A service of a fleet over HTTP in this process, and the SDK's own client of the tools."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult
from pymongo.database import Database
from werkzeug.serving import make_server

from scripts.mcp_server.client import connect
from scripts.mcp_server.server import create_server
from scripts.mongodb.memory_store import memory_client
from tests.conftest import Service
from tests.factories import make_driver, make_event_summary, make_trip

# A server that is stopped ends after so many seconds.
POLL_SECONDS = 0.01
LAST_WEEK, WEEK_BEFORE = "2026-03-09", "2026-03-02"


@pytest.fixture
def db() -> Database:
    """An empty database in memory: the tools know the service alone."""
    return memory_client()["test"]


class Servers:
    """Servers of applications, in threads of this process."""

    def __init__(self) -> None:
        self.running: list[tuple[Any, threading.Thread]] = []

    def start(self, service: Service, port: int = 0) -> str:
        """Serve the application of a Service; return its URL."""
        server = make_server("127.0.0.1", port, service.app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS})
        thread.start()
        self.running.append((server, thread))
        return f"http://127.0.0.1:{server.port}"

    def stop(self) -> None:
        """Stop them all."""
        while self.running:
            server, thread = self.running.pop()
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Servers, which are stopped at the end."""
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture
def serve(servers) -> Callable[..., str]:
    """Serve the application of a Service; return its URL."""
    return servers.start


@pytest.fixture
def url(serve, service) -> str:
    """The URL of the service."""
    return serve(service)


def call_tool(url: str, key: str, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """Call a tool with the SDK's client, which checks the data against the tool's schema."""

    async def run() -> CallToolResult:
        async with connect(url, key) as api, Client(create_server(api)) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(run())


@pytest.fixture
def call(url, service) -> Callable[..., tuple[Any, str]]:
    """Call a tool that succeeds: `call("find_drivers", text="ann")` returns the data and the text."""

    def run(tool: str, **arguments: Any) -> tuple[Any, str]:
        result = call_tool(url, service.key("f1"), tool, arguments)
        (content,) = result.content
        assert not result.is_error, content.text
        return result.structured_content, content.text

    return run


@pytest.fixture
def fail(url, service) -> Callable[..., str]:
    """Call a tool that fails; return the message. `key` and `at`, a URL, are those of the fleet by default."""

    def run(tool: str, key: str | None = None, at: str | None = None, **arguments: Any) -> str:
        result = call_tool(at or url, service.key("f1") if key is None else key, tool, arguments)
        (content,) = result.content
        assert result.is_error, content.text
        return content.text

    return run


@pytest.fixture
def fleet(load) -> None:
    """Ann got worse, mostly by two trips; Bob got better; Cem drove in one week; Dee never drove."""
    phone = {"phone_use_count": 2, "phone_use_time_seconds": 180}
    trips = [
        make_trip(f"{WEEK_BEFORE}T08:00", "ann"),
        make_trip(f"{LAST_WEEK}T07:00", "ann", trip_id="calm"),
        make_trip(f"{LAST_WEEK}T08:00", "ann", trip_id="call", event_summary=make_event_summary(**phone)),
        make_trip("2026-03-11T08:00", "ann", trip_id="brake", event_summary=make_event_summary(hard_brake_count=3)),
        make_trip(f"{WEEK_BEFORE}T08:00", "bob", event_summary=make_event_summary(hard_brake_count=1)),
        make_trip(f"{LAST_WEEK}T08:00", "bob"),
        make_trip(f"{LAST_WEEK}T08:00", "cem", event_summary=make_event_summary(**phone)),
    ]
    names = {"ann": ("Ann", "Ødegård", None), "bob": ("Bob", "Stone", "Van 1"), "cem": ("Cem", None, "Van 2")}
    drivers = [
        make_driver(driver_id, first_name=first, last_name=last, alias=alias)
        for driver_id, (first, last, alias) in names.items()
    ]
    load(*trips, drivers=[*drivers, make_driver("dee")])
