"""The tools over HTTP: the protocol's Streamable HTTP, without sessions, under uvicorn.

Each request has a key of its own, and with it a client of the service of its own. Nothing is kept from one to the next.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pydantic_core
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from app.client_ip import get_client_ip
from app.config import API, Config
from app.logs import choose_request_id
from app.metrics import Metrics
from scripts.mcp_server.client import ServiceError, connect, is_key
from scripts.mcp_server.models import Data
from scripts.mcp_server.server import create_server

# The proxies request the same path of the service.
PATH, HEALTH_PATH = "/mcp", f"{API}/healthz"
SCHEMES = ("bearer", "apikey")
CHALLENGE = 'Bearer realm="fleet", APIKEY realm="fleet"'
# The arguments of a call are some kilobytes at most. Many small values take a hundred times as long as a long text, and
# meanwhile nobody else is served.
MAX_BODY_BYTES = 2**20
MAX_VALUES = 1_000
BODY_SECONDS = 10
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
RESPONSE_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Refusal(Exception):
    """A request that is refused before the SDK sees it."""

    def __init__(self, status: int, message: str, code: int = INVALID_REQUEST, **headers: str) -> None:
        # What follows on the connection may be the rest of a body that nobody reads.
        headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"Connection": "close"}
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
        self.response = JSONResponse(error, status, headers)


def create_router(url: str, address: str, config: Config, log: FilteringBoundLogger, metrics: Metrics) -> Router:
    """Return the ASGI application: the tools for the service at `url`, and a health check of this process.

    `address` is the one on which it is served. Of the settings it uses PUBLIC_BASE_URL, CORS_ORIGINS and
    TRUSTED_PROXIES.
    """
    server = create_server()
    # ToolsEndpoint checks the Host and the Origin, before the key.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)

    @contextlib.asynccontextmanager
    async def run(router: Any) -> AsyncIterator[None]:
        async with connect(url, "none") as api:
            try:
                await api.get(Data, "livez")
            except ServiceError as error:
                log.warning("the service does not respond: requests fail until it does", error=str(error))
        async with server.session_manager.run():
            yield

    cors = Middleware(
        CORSMiddleware, allow_origins=config.cors_origins, allow_methods=["POST"], allow_headers=["*"], max_age=7_200
    )
    return Router(
        [
            Route(PATH, ToolsEndpoint(app, url, address, config), methods=["POST"]),
            Route(HEALTH_PATH, _get_health),
        ],
        redirect_slashes=False,
        lifespan=run,
        middleware=[Middleware(AccessLog, log=log, metrics=metrics), *([cors] if config.cors_origins else [])],
    )


async def _get_health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


class ToolsEndpoint:
    """POST /mcp: checks the Host, the Origin, the key and the body, in this order, and leaves the rest to the SDK."""

    def __init__(self, app: ASGIApp, url: str, address: str, config: Config) -> None:
        self._app, self._url, self._proxies = app, url, config.trusted_proxies
        names = [name for name in (*LOOPBACK, urlsplit(config.public_base_url).hostname) if name]
        settings = TransportSecuritySettings(
            allowed_hosts=[address, *names, *(f"{name}:*" for name in names)], allowed_origins=[*config.cors_origins]
        )
        self._security = TransportSecurityMiddleware(settings)
        # To read the authorities takes as long as many requests. They hold nothing of a key.
        self._authorities = httpx2.create_ssl_context()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        request = Request(scope, receive)
        if response := await self._security.validate_request(request, is_post=True):
            await response(scope, receive, send)
            return
        try:
            await self._respond(request, send)
        except Refusal as refusal:
            await refusal.response(scope, receive, send)
        except ClientDisconnect:
            return

    async def _respond(self, request: Request, send: Send) -> None:
        """Respond with the SDK. Raises Refusal or ClientDisconnect."""
        forwarded_for = request.headers.get("X-Forwarded-For", "")
        request.state.client = get_client_ip(
            request.client.host if request.client else "", forwarded_for, self._proxies
        )
        headers = {"X-Request-ID": request.state.request_id}
        if request.state.client:
            # Of an IPv6 network, its first address.
            headers["X-Forwarded-For"] = request.state.client.partition("/")[0]
        async with connect(self._url, _get_key(request.headers), headers, self._authorities) as api:
            try:
                info = await api.get_info()
            except ServiceError as error:
                raise _make_refusal(error) from None
            request.state.api, request.state.info = api, info
            body = await _read_body(request)
            _check_message(body)
            await self._app(request.scope, _make_receive(body, request.receive), send)


def _get_key(headers: Headers) -> str:
    """Return the key of a request, which has one header Authorization. Raises Refusal."""
    values = headers.getlist("Authorization")
    scheme, _, key = (values[0] if len(values) == 1 else "").partition(" ")
    if scheme.lower() not in SCHEMES or not is_key(key.strip()):
        message = "Send an API key in one header: 'Authorization: Bearer KEY'. The operator of the service issues keys."
        raise Refusal(HTTPStatus.UNAUTHORIZED, message, WWW_Authenticate=CHALLENGE)
    return key.strip()


def _make_refusal(error: ServiceError) -> Refusal:
    """Return the response to a key that the service does not accept, or not now."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        return Refusal(error.status, str(error), WWW_Authenticate=CHALLENGE)
    status = error.status if error.status == HTTPStatus.TOO_MANY_REQUESTS else HTTPStatus.SERVICE_UNAVAILABLE
    return Refusal(status, str(error), Retry_After=str(error.wait_seconds))


async def _read_body(request: Request) -> bytes:
    """Return the body. Raises Refusal if it is too large, or is not complete in time, or ClientDisconnect."""
    body = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body must have at most 1 MB.")
    except TimeoutError:
        message = f"The body must be complete within {BODY_SECONDS} seconds."
        raise Refusal(HTTPStatus.REQUEST_TIMEOUT, message) from None
    return bytes(body)


def _check_message(body: bytes) -> None:
    """Raise Refusal unless the body is a message."""
    if body.count(b",") >= MAX_VALUES:
        raise Refusal(HTTPStatus.BAD_REQUEST, f"The body must have at most {MAX_VALUES} values.")
    try:
        content = pydantic_core.from_json(body)
    except ValueError:
        raise Refusal(HTTPStatus.BAD_REQUEST, "The body must be JSON in UTF-8.", PARSE_ERROR) from None
    message = "The body must be one JSON-RPC 2.0 message. A batch is not supported."
    try:
        parsed = jsonrpc_message_adapter.validate_python(content, by_name=False)
    except ValidationError:
        raise Refusal(HTTPStatus.BAD_REQUEST, message) from None
    # A request whose id is neither a text nor an integer looks like a notification, to which nobody responds.
    if isinstance(parsed, JSONRPCNotification) and "id" in content:
        raise Refusal(HTTPStatus.BAD_REQUEST, message)


def _make_receive(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body that was read already, and then what follows."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


class AccessLog:
    """Gives each request an id, logs a line for it, as the service does, and counts it."""

    def __init__(self, app: ASGIApp, log: FilteringBoundLogger, metrics: Metrics) -> None:
        self._app, self._log, self._metrics = app, log, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request, or whatever else the server sends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, request = time.perf_counter(), Request(scope)
        state, sent = request.state, {"status": 0, "bytes": 0}
        state.request_id = choose_request_id(request.headers.get("X-Request-ID", ""))
        state.client = state.info = None

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent["status"] = message["status"]
                MutableHeaders(scope=message).update({**RESPONSE_HEADERS, "X-Request-ID": state.request_id})
            sent["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_and_count)
        except Exception:
            sent["status"] = HTTPStatus.INTERNAL_SERVER_ERROR
            raise
        finally:
            self._write(request, sent, time.perf_counter() - started)

    def _write(self, request: Request, sent: Mapping[str, int], seconds: float) -> None:
        path, state = request.scope["path"], request.state
        route = path if path in (PATH, HEALTH_PATH) else None
        self._log.info(
            "request",
            request_id=state.request_id,
            method=request.method,
            route=route,
            # None if the client has left.
            status=sent["status"] or None,
            duration_ms=round(seconds * 1000, 1),
            bytes=sent["bytes"],
            fleet=state.info and state.info.fleet,
            scope=state.info and ("driver" if state.info.driver_id else "fleet"),
            client=None if state.info else state.client,
        )
        if sent["status"]:
            self._metrics.count(route, request.method, sent["status"], seconds)
