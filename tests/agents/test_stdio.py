"""The command itself, as an agent's program starts it."""

import asyncio
import datetime
import json
import os
import signal
import subprocess

import pytest
from mcp import Client, StdioServerParameters

from tests.conftest import Service
from tests.factories import make_driver
from tests.service_process import COMMAND
from tests.store_contents import load

TOOLS = ["fleet_summary", "find_drivers", "driver_summary", "compare_drivers", "explain_score", "who_needs_coaching"]
TOOLS += ["list_trips", "describe_trip", "list_events", "list_groups"]
MAX_LIST_CHARACTERS = 23_000
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.fixture
def environment(db, serve):
    """A service of a fleet at the time that it is, and the environment of the command."""
    service = Service(db)
    load(service.db, drivers=[make_driver("d1", first_name="Ann")])
    return {"DRIVER_ANALYTICS_URL": serve(service), "DRIVER_ANALYTICS_KEY": service.key("f1")}


def test_the_sdks_client_lists_the_tools_and_calls_one_over_stdio(environment):
    parameters = StdioServerParameters(command=str(COMMAND), args=["mcp"], env=environment)

    async def talk():
        async with Client(parameters) as client:
            return await client.list_tools(), await client.call_tool("find_drivers", {"search": "ann"})

    listed, result = asyncio.run(talk())
    assert [tool.name for tool in listed.tools] == TOOLS
    tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
    assert len(json.dumps(tools)) <= MAX_LIST_CHARACTERS
    assert all(tool.annotations.read_only_hint and tool.output_schema["properties"] for tool in listed.tools)
    # Inspectors warn about a list of types.
    assert '"type": [' not in json.dumps(tools)
    assert f"{datetime.datetime.now(datetime.UTC):%A %Y-%m-%d}" in result.content[0].text


@pytest.mark.clients
@pytest.mark.parametrize("leave", ["end", "hang up", "terminate"])
def test_the_command_ends_with_its_client_and_without_a_traceback(environment, leave):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([COMMAND, "mcp"], env={**os.environ, **environment}, text=True, **pipes) as process:
        print(json.dumps(INITIALIZE), file=process.stdin, flush=True)
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "driver-analytics"
        if leave == "terminate":
            process.send_signal(signal.SIGTERM)
        if leave == "hang up":
            process.stdout.close()
            print(json.dumps({**INITIALIZE, "id": 2, "method": "ping", "params": {}}), file=process.stdin, flush=True)
        process.stdin.close()
        try:
            process.wait(timeout=20)
        finally:
            process.kill()
        assert "Traceback" not in process.stderr.read()
