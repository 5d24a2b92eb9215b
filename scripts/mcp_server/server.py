"""The server: its tools, and how their results become text."""

import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError, create_model
from pydantic_core import ErrorDetails

from scripts.mcp_server.client import PACKAGE, ApiClient, InvalidInput
from scripts.mcp_server.drivers import driver_summary, find_drivers
from scripts.mcp_server.fleet import fleet_summary
from scripts.mcp_server.models import NOTICE, Result, shorten_schema
from scripts.mcp_server.scores import compare_drivers, explain_score, who_needs_coaching
from scripts.mcp_server.text import escape_texts, to_json
from scripts.mcp_server.trips import describe_trip, list_trips
from scripts.output import escape

TOOLS = (
    fleet_summary,
    find_drivers,
    driver_summary,
    compare_drivers,
    explain_score,
    who_needs_coaching,
    list_trips,
    describe_trip,
)
# Shorter than the time for which the proxies wait, and most clients.
TOOL_SECONDS = 50
# An agent corrects all of them at once, unless they make no sense.
MAX_REASONS = 10
# Where pydantic words the reason for programmers, by its type of the error.
REASONS = {
    "too_short": "Must have at least {min_length} values",
    "too_long": "Must have at most {max_length} values",
    "list_type": "Must be a list",
    "int_parsing": "Must be a whole number",
    "float_parsing": "Must be a number",
}
INSTRUCTIONS = """\
Answers questions about one fleet: whether it is getting better, who drove how safely, who got worse and why, which
trips mattered.
Everything is read-only.

- Scores are 0 to 100; 100 is the best. A score is 100 minus the points that four behaviours cost, each at most its
  weight: phone use, overspeeding, hard braking, rapid acceleration.
- A score is did_not_drive if there was no trip. It is not_known before the last six months, which the service does not
  show: the driver may have driven.
- Times and dates are in the time zone of the fleet, which every result names with the date of today. A week is Monday
  to Sunday. A window that ends today is not complete.
- The key may open one driver only. Then find_drivers returns this driver alone, every other driver_id is unknown, and
  who_needs_coaching and fleet_summary fail.
- To find out who got worse and why: who_needs_coaching with order=got_worse, then list_trips of a driver for the
  trips that cost most points, then describe_trip.
- {notice}
"""


def create_server(api: contextlib.AbstractAsyncContextManager[ApiClient] | None = None) -> MCPServer[Any]:
    """Return a server whose tools use `api`. Over HTTP they use the client in the state of each request: `api`."""
    return MCPServer(
        "driver-analytics",
        title="Driver Analytics",
        version=version(PACKAGE),
        instructions=INSTRUCTIONS.format(notice=NOTICE),
        tools=[_make_tool(function) for function in TOOLS],
        lifespan=(lambda server: api) if api else None,
        # Nothing changes while the server runs, so nobody needs a response that does not end.
        subscriptions=False,
        log_level="WARNING",
    )


class ExplainingTool(Tool):
    """A tool that says what is wrong with its arguments, in the words of the service."""

    async def run(self, *arguments: Any, **options: Any) -> Any:
        """Run the tool. Raises ToolError: a validation error of the arguments is its cause."""
        try:
            return await super().run(*arguments, **options)
        except UnexpectedToolError:
            raise
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            reasons = " ".join(map(self._explain, error.__cause__.errors(include_url=False)[:MAX_REASONS]))
        raise ToolError(f"Correct the arguments of {self.name}. {escape(reasons)}")

    def _explain(self, error: ErrorDetails) -> str:
        name = ".".join(map(str, error["loc"]))
        if error["type"] == "extra_forbidden":
            return f"{name}: There is no such argument. There are: {', '.join(self.parameters['properties'])}."
        if error["type"] == "missing":
            return f"{name}: Must be given."
        own = REASONS.get(error["type"], "").format_map(error.get("ctx", {}))
        reason = own or error["msg"].removeprefix("Value error, ").replace("Input should", "Must").rstrip(".")
        return f"{name}: {reason}."


@functools.cache
def _make_tool(function: Callable[..., Awaitable[Result]]) -> Tool:
    """Return the tool of a function, whose signature and docstring describe it to agents."""

    @functools.wraps(function)
    async def run(**arguments: Any) -> CallToolResult:
        try:
            with anyio.fail_after(TOOL_SECONDS):
                result, info = await function(**arguments), await arguments["api"].get_info()
                data = result.model_dump(mode="json", context={"zone": info.time_zone})
                data["today"] = f"{info.today:%A %Y-%m-%d} ({info.time_zone})"
        except InvalidInput as error:
            raise ToolError(str(error)) from None
        except TimeoutError:
            raise ToolError(f"This takes longer than {TOOL_SECONDS} seconds. Ask for a shorter window.") from None
        return CallToolResult(content=[TextContent(text=to_json(data))], structured_content=escape_texts(data))

    tool = ExplainingTool.from_function(
        run, description=inspect.getdoc(function), annotations=ToolAnnotations(read_only_hint=True)
    )
    # An unknown argument is an error, so that a misspelt one is not ignored.
    config = {"extra": "forbid", "json_schema_extra": shorten_schema}
    arguments = create_model("Arguments", __base__=tool.fn_metadata.arg_model, __cls_kwargs__=config)
    tool.fn_metadata.arg_model, tool.parameters = arguments, arguments.model_json_schema()
    return tool
