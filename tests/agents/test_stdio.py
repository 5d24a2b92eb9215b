"""The command itself, as an agent's program starts it."""

import asyncio
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys

import pytest
from mcp import Client, StdioServerParameters

from scripts.mongodb.memory_store import memory_client
from tests.conftest import Service
from tests.factories import days_ago, make_driver, make_trip
from tests.service_process import COMMAND
from tests.store_contents import load

TOOLS = {
    "find_drivers": {"search": "ann"},
    "driver_summary": {"driver_id": "d1"},
    "compare_drivers": {"driver_ids": ["d1"]},
    "explain_score": {"driver_id": "d1", "start_date": days_ago(3)[:10]},
    "who_needs_coaching": {"period": "month", "date": days_ago(3)[:10]},
    "list_trips": {"driver_id": "d1", "start_date": days_ago(3)[:10]},
    "describe_trip": {"trip_id": "t1"},
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.fixture
def environment(servers):
    """A service of a fleet at the time that it is, and the environment of the command."""
    service = Service(memory_client()["test"])
    load(service.db, make_trip(days_ago(3), trip_id="t1"), drivers=[make_driver("d1", first_name="Ann")])
    return {"DRIVER_ANALYTICS_URL": servers.start(service), "DRIVER_ANALYTICS_KEY": service.key("f1")}


def test_the_sdks_client_lists_and_calls_every_tool_over_stdio(environment):
    parameters = StdioServerParameters(command=str(COMMAND), args=["mcp"], env=environment)

    async def talk():
        async with Client(parameters) as client:
            listed = await client.list_tools()
            return listed, [await client.call_tool(name, arguments) for name, arguments in TOOLS.items()]

    listed, results = asyncio.run(talk())
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    assert all(tool.annotations.read_only_hint and tool.output_schema["properties"] for tool in listed.tools)
    # An agent's program sends all of it to the model.
    assert len(json.dumps(listed.model_dump(mode="json", by_alias=True, exclude_none=True))) <= 16_000
    assert all(f"{datetime.datetime.now(datetime.UTC):%A %Y-%m-%d}" in result.content[0].text for result in results)


@contextlib.contextmanager
def started(environment):
    """Start the command, and have it respond to a client; leaving it makes sure that it has ended."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([COMMAND, "mcp"], env={**os.environ, **environment}, text=True, **pipes) as process:
        print(json.dumps(INITIALIZE), file=process.stdin, flush=True)
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "driver-analytics"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.clients
@pytest.mark.parametrize("leave", ["end", "hang up", "terminate"])
def test_the_command_ends_with_its_client_and_without_a_traceback(environment, leave):
    with started(environment) as process:
        if leave == "terminate":
            process.send_signal(signal.SIGTERM)
        if leave == "hang up":
            process.stdout.close()
            print(json.dumps({**INITIALIZE, "id": 2, "method": "ping", "params": {}}), file=process.stdin, flush=True)
        process.stdin.close()
        process.wait(timeout=20)
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize("module", ["anyio", "scripts.mcp_server.server"])
def test_a_missing_extra_is_named_with_the_way_to_install_it(command, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    output = command("mcp").output
    assert "The extra mcp is not installed" in output
    assert "pip install '/path/to/clone[mcp]'" in output
