"""The tools over HTTP: the SDK's Streamable HTTP, without sessions, with the key of each request.

Each request has a connection and a client of the service of its own. Nothing is kept from one to the next.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar
from urllib.parse import urlsplit

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import INVALID_REQUEST
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.client_ip import get_client_ip
from app.config import Config
from app.logs import choose_request_id
from scripts.mcp_server.client import API, ServiceError, is_key, open_service
from scripts.mcp_server.server import create_server

# The proxies request the same path of the service.
PATH, HEALTH_PATH = "/mcp", f"{API}/healthz"
SCHEMES = ("bearer", "apikey")
CHALLENGE = 'Bearer realm="fleet", APIKEY realm="fleet"'
NO_KEY = "Send an API key in one header: 'Authorization: Bearer KEY'. The operator of the service issues keys."
# The arguments of a call are some kilobytes at most.
MAX_BODY_BYTES = 2**20
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
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


def make_server(url: str, address: str, config: Config) -> uvicorn.Server:
    """Return the server of the application, which logs as LOG_LEVEL says (`create_app`)."""
    settings = uvicorn.Config(
        create_app(url, address, config),
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=config.log_level.lower(),
        headers=HEADERS,
        proxy_headers=False,
        server_header=False,
        backlog=BACKLOG,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    return uvicorn.Server(settings)


def create_app(url: str, address: str, config: Config) -> Starlette:
    """Return the ASGI application: the tools for the service at `url`, and a health check of this process.

    `address` is the one on which it is served. Of the settings it uses PUBLIC_BASE_URL, CORS_ORIGINS and
    TRUSTED_PROXIES.
    """
    server = create_server()
    names = [name for name in (*LOOPBACK, urlsplit(config.public_base_url).hostname) if name]
    security = TransportSecuritySettings(
        allowed_hosts=[address, *names, *(f"{name}:*" for name in names)], allowed_origins=[*config.cors_origins]
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=security,
    )
    app.add_route(HEALTH_PATH, _get_health)
    app.add_middleware(KeyMiddleware, url=url, config=config)
    if config.cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=config.cors_origins, allow_methods=["POST"], allow_headers=["*"]
        )
    return app


async def _get_health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


class KeyMiddleware:
    """Gives a request for the tools a client of the service with its key, as `state.api`, or refuses it."""

    def __init__(self, app: ASGIApp, url: str, config: Config) -> None:
        self._app, self._url, self._proxies = app, url, config.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, or whatever else the server sends."""
        request = Request(scope) if scope["type"] == "http" and scope["path"].startswith(PATH) else None
        response = self._app
        if request and request.method != "POST":
            # A stream of notifications, of which there are none, would not end.
            response = Response(status_code=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
        elif request and not (key := _get_key(request.headers)):
            response = _refuse(HTTPStatus.UNAUTHORIZED, NO_KEY, {"WWW-Authenticate": CHALLENGE})
        elif request:
            async with open_service(self._url, key, self._get_headers(request)) as api:
                try:
                    await api.get_info()
                    request.state.api = api
                except ServiceError as error:
                    response = _make_refusal(error)
                with contextlib.suppress(ClientDisconnect):
                    await response(scope, watch_request(scope, receive), send)
                return
        await response(scope, receive, send)

    def _get_headers(self, request: Request) -> dict[str, str]:
        """Return what the service is to know of a request: its id, and the client, of an IPv6 network an address."""
        peer = request.client.host if request.client else ""
        client = get_client_ip(peer, request.headers.get("X-Forwarded-For", ""), self._proxies)
        return {
            "X-Request-ID": choose_request_id(request.headers.get("X-Request-ID", "")),
            "X-Forwarded-For": client.partition("/")[0],
        }


def _get_key(headers: Headers) -> str:
    """Return the key of a request, or an empty text unless it has one valid header Authorization."""
    values = headers.getlist("Authorization")
    scheme, _, key = (values[0] if len(values) == 1 else "").partition(" ")
    return key.strip() if scheme.lower() in SCHEMES and is_key(key.strip()) else ""


def _make_refusal(error: ServiceError) -> Response:
    """Return the response to a key that the service does not accept, or not now."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        return _refuse(error.status, str(error), {"WWW-Authenticate": CHALLENGE})
    status = error.status if error.status == HTTPStatus.TOO_MANY_REQUESTS else HTTPStatus.SERVICE_UNAVAILABLE
    return _refuse(status, str(error), {"Retry-After": str(error.wait_seconds)})


def _refuse(status: int, message: str, headers: Mapping[str, str]) -> Response:
    error = {"code": INVALID_REQUEST, "message": message}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status, headers)


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


def watch_request(scope: Scope, receive: Receive) -> Receive:
    """Return what receives the parts of a request. It notes when the last one came, and if the client leaves before."""
    is_complete = False

    async def receive_part() -> Message:
        nonlocal is_complete
        message = await receive()
        if not is_complete and message["type"] == "http.disconnect":
            raise ClientDisconnect
        if not is_complete and not message.get("more_body"):
            is_complete = True
            Connection.end_waiting(tuple(scope["client"]))
        return message

    return receive_part
