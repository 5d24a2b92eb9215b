"""The server: it lists the tools and calls them, over stdio."""

import json
from importlib.metadata import version

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool
from pydantic import ValidationError

from schemas.date_params import get_today
from scripts.mcp_server import coaching, drivers, scores, trips
from scripts.mcp_server.client import PACKAGE, ApiClient, connect
from scripts.mcp_server.failures import InvalidInput, ToolFailure
from scripts.mcp_server.results import NOTICE, Tool

TOOLS = {tool.name: tool for tool in (*drivers.TOOLS, *scores.TOOLS, *coaching.TOOLS, *trips.TOOLS)}
INSTRUCTIONS = """\
Answers questions about the drivers of one fleet: who drove how safely, who got worse and why, which trips mattered.
Everything is read-only.

- Scores are 0 to 100; 100 is the best. A score is 100 minus the points that four behaviours cost: phone use,
  overspeeding, hard braking, rapid acceleration.
- Dates are ISO dates in UTC. A week is Monday to Sunday. Today is {today} (UTC) as this server starts; every result
  has the date of today. Without dates, tools use the last complete week (or day, or month).
- To find out who got worse and why: who_needs_coaching with order=got_worse, then list_trips of a driver for the
  trips that cost most points, then describe_trip.
- {notice}
"""


def create_server(api: ApiClient) -> Server:
    """Return a server whose tools make their requests with `api`."""

    async def list_tools(context: ServerRequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_list_tool(tool) for tool in TOOLS.values()])

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        try:
            return await _call(api, params)
        except ToolFailure as failure:
            text = f"{failure} Today is {get_today()} (UTC)."
            return CallToolResult(content=[TextContent(text=text)], is_error=True)

    instructions = INSTRUCTIONS.format(today=f"{get_today():%A %Y-%m-%d}", notice=NOTICE)
    return Server(
        "driver-analytics",
        title="Driver Analytics",
        version=version(PACKAGE),
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _list_tool(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.arguments.model_json_schema(),
        output_schema=tool.result.model_json_schema(mode="serialization"),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


async def _call(api: ApiClient, params: CallToolRequestParams) -> CallToolResult:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise ToolFailure(f"There is no such tool. The tools are {', '.join(TOOLS)}.")
    try:
        # As JSON, a date has to be an ISO date, and a number is not text.
        arguments = tool.arguments.model_validate_json(json.dumps(params.arguments or {}), strict=True)
    except ValidationError as error:
        reasons = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}." for item in error.errors()]
        expected = ", ".join(tool.arguments.model_fields)
        raise ToolFailure(f"Correct the arguments. {' '.join(reasons)} The arguments are {expected}.") from None
    try:
        result = (await tool.run(api.for_call(), arguments)).shorten()
    except InvalidInput as error:
        reasons = [arguments.explain(name, reason) for name, reason in error.reasons.items()]
        raise ToolFailure(f"Correct the arguments. {' '.join(reasons)}" if reasons else str(error)) from None
    except (KeyError, TypeError, ValidationError):
        raise ToolFailure(
            "The response of the service does not have the expected fields. Tell the user that this program and the "
            "service may have different versions."
        ) from None
    return CallToolResult(
        content=[TextContent(text=result.to_text())], structured_content=result.model_dump(mode="json")
    )


async def serve_stdio(url: str, key: str) -> None:
    """Serve a client on standard input and output until it closes standard input."""
    async with connect(url, key) as api, stdio_server() as (read_stream, write_stream):
        server = create_server(api)
        await server.run(read_stream, write_stream, server.create_initialization_options())
