"""The tools over HTTP: the SDK's Streamable HTTP, without sessions, with the key of each request.

Each request has a client of the service of its own. Nothing is kept from one to the next.
"""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

import httpx2
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import INVALID_REQUEST
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

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
        # To read the authorities takes as long as many requests. They hold nothing of a key.
        self._authorities = httpx2.create_ssl_context()

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
            async with open_service(self._url, key, self._get_headers(request), self._authorities) as api:
                try:
                    await api.get_info()
                    request.state.api = api
                except ServiceError as error:
                    response = _make_refusal(error)
                await response(scope, receive, send)
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
