"""`driver-analytics mcp`: a server for AI agents."""

import os
import signal

import click

from scripts.extras import importing_from_extra
from scripts.output import echo

DEFAULT_URL = "http://127.0.0.1:8000"


@click.command()
def mcp() -> None:
    """Serve an AI agent over stdio, with the Model Context Protocol.

    The agent's program starts this command. It makes requests to the service at DRIVER_ANALYTICS_URL, by default
    http://127.0.0.1:8000, with the API key in DRIVER_ANALYTICS_KEY.
    """
    with importing_from_extra("mcp", "This command"):
        import anyio

        from scripts.mcp_server.server import create_server
    url, key = os.environ.get("DRIVER_ANALYTICS_URL") or DEFAULT_URL, os.environ.get("DRIVER_ANALYTICS_KEY", "")
    if not key:
        echo("Warning: DRIVER_ANALYTICS_KEY is not set, so every tool will fail.", err=True)
    # A thread waits for standard input, which only the end of the process interrupts. There is nothing to clean up.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        anyio.run(create_server(url, key).run_stdio_async)
    except* BrokenPipeError:
        echo("The client has ended.", err=True)
