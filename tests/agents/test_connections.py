"""Connections to `mcp --http`: each is for one request, and those that wait for it are bounded in number and time."""

import asyncio
import contextlib
import json
import socket

import pytest
import uvicorn
from starlette.requests import ClientDisconnect
from uvicorn.server import ServerState

from scripts.mcp_server import http
from tests.resilience.processes import HOST
from tests.resilience.raw import exchange, first_response

CALL = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "find_drivers"}})
HEAD = f"POST /mcp HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
# More than 1,000 clients: of one that sends nothing, a part of the headers, or a part of the body.
UNFINISHED = [b"", HEAD.encode(), f"{HEAD}Authorization: Bearer x\r\nContent-Length: 99\r\n\r\n{{".encode()] * 335


@pytest.fixture
def key(service):
    """The line of a request with a key of the fleet."""
    return f"Authorization: Bearer {service.key('f1')}\r\n"


def test_a_response_closes_the_connection_also_before_the_body_was_read(agents, key):
    begun = "Content-Length: 1000000\r\n\r\n{"
    requests = {
        f"{HEAD}{key}Content-Length: {len(CALL)}\r\n\r\n{CALL}": 200,
        f"{HEAD}{begun}": 401,
        f"{HEAD}Authorization: Bearer x\r\n{begun}": 401,
        HEAD.replace("/mcp", "/other") + begun: 404,
        HEAD.replace("POST", "PUT") + begun: 405,
        f"{HEAD}{key}Content-Length: 18446744073709551616\r\n\r\n": 413,
        f"{HEAD}Content-Length: x\r\n\r\n": 400,
    }
    for request, status in requests.items():
        response = first_response(exchange(agents.address, request.encode()))
        assert (response.status, response.headers["connection"]) == (status, "close"), request


def test_others_are_served_while_more_connections_than_the_limit_send_no_whole_request(agents, key):
    with contextlib.ExitStack() as clients:
        for content in UNFINISHED:
            clients.enter_context(socket.create_connection(agents.address)).sendall(content)
        for _ in range(3):
            content = exchange(agents.address, f"{HEAD}{key}Content-Length: {len(CALL)}\r\n\r\n{CALL}".encode())
            assert first_response(content).status == 200
    assert "Traceback" not in agents.log_text()


@pytest.mark.parametrize("content", UNFINISHED[:3])
def test_a_connection_without_a_whole_request_is_closed_in_time(monkeypatch, content):
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.05)

    async def read_body(scope, receive, send):
        receive_part = http.watch_request(scope, receive)
        with contextlib.suppress(ClientDisconnect):
            while True:
                await receive_part()

    async def talk():
        config = uvicorn.Config(read_body, log_config=None)
        loop = asyncio.get_running_loop()
        make = lambda: http.Connection(config, ServerState(), {}, loop)  # noqa: E731
        async with await loop.create_server(make, HOST, 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(content)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    asyncio.run(talk())
