"""The connections of clients to `mcp --http`, each for one request. uvicorn does not limit the time of a request."""

import asyncio
import contextlib
from typing import ClassVar

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

# To send a request. The check of its key takes 20 seconds of this at most.
REQUEST_SECONDS = 30
# To respond, and for the client to read the response.
RESPONSE_SECONDS = 90
# Connections on which a request is not complete. A further one closes the oldest.
MAX_WAITING = 500
# More is refused with 503. Each may need a connection to the service, too.
MAX_CONNECTIONS = 1_000
# So many connections are accepted at a time, before the oldest that wait for a request are closed.
BACKLOG = 100
# As for the service: the time for open requests at the end.
GRACEFUL_SECONDS = 20
# A connection that stayed open would pass what nobody has read of a body on as the next request, perhaps of another
# client of the same proxy.
HEADERS = [("Connection", "close"), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]

Address = tuple[str, int]


class Connection(H11Protocol):  # type: ignore[misc]
    """A connection that is closed unless its request, and then its response, is complete in time.

    It is for uvicorn's setting `http`, and extends two methods that asyncio calls.
    """

    # By the address of the client, the oldest first.
    waiting: ClassVar[dict[Address, "Connection"]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.address: Address = transport.get_extra_info("peername")[:2]
        self.timer = self.abort_after(REQUEST_SECONDS)
        self.waiting[self.address] = self
        if len(self.waiting) > MAX_WAITING:
            self.waiting.pop(next(iter(self.waiting))).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.timer.cancel()
        self.waiting.pop(self.address, None)
        super().connection_lost(exc)

    @classmethod
    def end_waiting(cls, address: Address) -> None:
        """Begin to wait for a response instead: the request is complete."""
        if connection := cls.waiting.pop(address, None):
            connection.timer.cancel()
            connection.timer = connection.abort_after(RESPONSE_SECONDS)

    def abort_after(self, seconds: float) -> asyncio.TimerHandle:
        """Close the connection at once after this time, unless the handle that is returned is cancelled."""
        return asyncio.get_running_loop().call_later(seconds, self.transport.abort)


def make_server(app: ASGIApp, log_level: str) -> uvicorn.Server:
    """Return the server of an application."""
    settings = uvicorn.Config(
        watch_requests(app),
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=log_level.lower(),
        headers=HEADERS,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    return uvicorn.Server(settings)


def watch_requests(app: ASGIApp) -> ASGIApp:
    """Return an application that says when a request is complete, and ends if the client leaves before."""

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        is_complete = scope["type"] != "http"

        async def receive_part() -> Message:
            nonlocal is_complete
            message = await receive()
            if not is_complete and message["type"] == "http.disconnect":
                raise ClientDisconnect
            if not is_complete and not message.get("more_body"):
                is_complete = True
                Connection.end_waiting(tuple(scope["client"]))
            return message

        with contextlib.suppress(ClientDisconnect):
            await app(scope, receive_part, send)

    return respond
