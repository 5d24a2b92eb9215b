"""`driver-analytics mcp`: a server for AI agents."""

import logging
import os
import signal

import click

from scripts.command_line.addresses import listen
from scripts.command_line.output import echo
from scripts.command_line.signals import end_on_signals

DEFAULT_URL = "http://127.0.0.1:8000"


@click.command()
@click.option(
    "--http",
    "address",
    metavar="ADDRESS:PORT",
    help="Serve any number of agents over HTTP at /mcp, each request with its own key.",
)
def mcp(address: str | None) -> None:
    """Serve an AI agent over stdio, with the Model Context Protocol.

    The agent's program starts this command. It makes requests to the service at DRIVER_ANALYTICS_URL, by default
    http://127.0.0.1:8000, with the API key in DRIVER_ANALYTICS_KEY. With --http, the key is that of each request, and
    Ctrl-C or SIGTERM stops the command after it has finished the requests in progress.
    """
    url = os.environ.get("DRIVER_ANALYTICS_URL") or DEFAULT_URL
    if address is None:
        _serve_stdio(url)
    else:
        _serve_http(url, address)


def _serve_stdio(url: str) -> None:
    # Imported here, because its libraries are those of an extra.
    import anyio

    from scripts.mcp_server.client import open_service
    from scripts.mcp_server.server import create_server

    key = os.environ.get("DRIVER_ANALYTICS_KEY", "")
    if not key:
        echo("Warning: DRIVER_ANALYTICS_KEY is not set, so every tool will fail.", err=True)
    # A thread waits for standard input, which only the end of the process interrupts. There is nothing to clean up.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        anyio.run(create_server(open_service(url, key)).run_stdio_async)
    except* BrokenPipeError:
        echo("The client has ended.", err=True)


def _serve_http(url: str, address: str) -> None:
    # Over stdio, the command starts without them.
    from app import logs
    from app.config import Config, is_address
    from scripts.mcp_server.client import is_url
    from scripts.mcp_server.http import make_server

    if not is_address(address):
        raise click.BadParameter("It takes ADDRESS:PORT.", param_hint="--http")
    if not is_url(url.strip()):
        raise click.ClickException("DRIVER_ANALYTICS_URL cannot be used: it takes a URL such as http://127.0.0.1:8000.")
    config = Config.from_environment()
    server = make_server(url, address, config)
    # After the SDK and uvicorn have configured the log in their own way: keys are redacted.
    logs.configure()
    # Its warnings quote requests at any length.
    logging.getLogger("mcp").setLevel(logging.ERROR)
    # uvicorn sends itself the signal again at the end.
    end_on_signals()
    with listen("--http", address) as listener:
        echo(f"Serving agents on http://{address}/mcp")
        server.run(sockets=[listener])
