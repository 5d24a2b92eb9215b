"""The server: its tools, and how their results become text."""

import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError

from scripts.command_line.output import escape_texts, to_json
from scripts.mcp_server.client import UNEXPECTED_RESPONSE, VERSION, ApiClient
from scripts.mcp_server.drivers import driver_summary, find_drivers, list_groups
from scripts.mcp_server.events import list_events
from scripts.mcp_server.fleet import fleet_summary
from scripts.mcp_server.models import NOTICE, Result
from scripts.mcp_server.scores import compare_drivers, explain_score, who_needs_coaching
from scripts.mcp_server.trips import describe_trip, list_trips

TOOLS = (
    fleet_summary,
    find_drivers,
    driver_summary,
    compare_drivers,
    explain_score,
    who_needs_coaching,
    list_trips,
    describe_trip,
    list_events,
    list_groups,
)
# Shorter than the time for which the proxies wait, and most clients.
TOOL_SECONDS = 50
INSTRUCTIONS = """\
Answers questions about one fleet: whether it is getting better, who drove how safely, who got worse and why, which
trips mattered, what happened, and where.
Everything is read-only.

- Scores are 0 to 100; 100 is the best. A score is 100 minus the points that four behaviours cost, each at most its
  weight: phone use, overspeeding, hard braking, rapid acceleration.
- A score is did_not_drive if there was no trip. It is not_known before the last 24 months, which the service does not
  show: the driver may have driven.
- Times and dates are in the time zone of the fleet, which every result names with the date of today. A week is Monday
  to Sunday. A window that ends today is not complete.
- The key may open one driver only. Then find_drivers returns this driver alone, every other driver_id is unknown, and
  who_needs_coaching, fleet_summary and list_groups fail.
- To find out who got worse and why: who_needs_coaching with order=got_worse, then list_trips of a driver for the
  trips that cost most points, then describe_trip.
- {notice}
"""


def create_server(api: contextlib.AbstractAsyncContextManager[ApiClient] | None = None) -> MCPServer[Any]:
    """Return a server whose tools use `api`. Over HTTP they use the client in the state of each request: `api`."""
    server = MCPServer[Any](
        "driver-analytics",
        title="Driver Analytics",
        version=VERSION,
        instructions=INSTRUCTIONS.format(notice=NOTICE),
        lifespan=(lambda server: api) if api else None,
        # Nothing changes while the server runs, so nobody needs a response that does not end.
        subscriptions=False,
        log_level="WARNING",
    )
    for function in TOOLS:
        server.add_tool(
            _present(function), description=inspect.getdoc(function), annotations=ToolAnnotations(read_only_hint=True)
        )
    return server


def _present(function: Callable[..., Awaitable[Result]]) -> Callable[..., Awaitable[CallToolResult]]:
    """Return a tool that calls the function, whose signature and docstring describe it to agents."""

    @functools.wraps(function)
    async def run(**arguments: Any) -> CallToolResult:
        try:
            with anyio.fail_after(TOOL_SECONDS):
                result, info = await function(**arguments), await arguments["api"].get_info()
                data = result.model_dump(mode="json", context={"zone": info.time_zone})
                data["today"] = f"{info.today:%A %Y-%m-%d} ({info.time_zone})"
        except (KeyError, ValidationError):
            raise ToolError(UNEXPECTED_RESPONSE) from None
        except TimeoutError:
            raise ToolError(f"This takes longer than {TOOL_SECONDS} seconds. Ask for a shorter window.") from None
        return CallToolResult(content=[TextContent(text=to_json(data))], structured_content=escape_texts(data))

    return run
