"""The tools over HTTP: who is let in, and that requests share nothing."""

import asyncio
import json
import signal
import socket

import httpx2
import pytest
from limits import parse
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from app.config import Config
from scripts.mcp_server import http
from tests.conftest import Service
from tests.factories import make_driver
from tests.resilience.processes import Agents, accepts
from tests.service_process import free_port, wait_until

ADDRESS = "127.0.0.1:8011"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "find_drivers"}}


@pytest.fixture
def send(url, service):
    """Send a request to /mcp, as an application in this process serves it; return the response.

    `key` is that of the fleet by default, `None` none; `at` is the URL of the service. `settings` are those of Config.
    """

    def run(body=CALL, key=..., *, at=None, headers=None, method="POST", path="/mcp", client=None, **settings):
        sent = dict(HEADERS)
        if key is not None:
            sent["Authorization"] = f"Bearer {service.key('f1') if key is ... else key}"

        async def talk():
            app = http.create_app(at or url, ADDRESS, Config(**settings))
            transport = httpx2.ASGITransport(app, client=client or ("192.0.2.9", 1))
            async with (
                app.router.lifespan_context(app),
                httpx2.AsyncClient(transport=transport, base_url=f"http://{ADDRESS}") as sender,
            ):
                content = json.dumps(body).encode() if isinstance(body, dict | list) else body
                return await sender.request(method, path, content=content, headers=[*sent.items(), *(headers or [])])

        return asyncio.run(talk())

    return run


def test_a_single_request_is_answered_without_a_session(send):
    response = send()
    assert (response.status_code, response.json()["id"]) == (200, 7)
    assert "mcp-session-id" not in response.headers


MAX = http.MAX_BODY_BYTES
REFUSED = [
    pytest.param(401, {"key": None}, "Authorization: Bearer KEY", id="no key"),
    pytest.param(401, {"key": "nonsense"}, "missing, wrong, expired or revoked", id="a wrong key"),
    pytest.param(401, {"key": None, "headers": [(b"Authorization", "Bearer ključ".encode())]}, "KEY", id="not ASCII"),
    pytest.param(401, {"headers": [("Authorization", "Bearer x")]}, "in one header", id="two keys"),
    pytest.param(401, {"key": None, "headers": [("Authorization", "Basic YTpi")]}, "Bearer KEY", id="a password"),
    pytest.param(401, {"key": None, "path": "/mcp%0A"}, "Authorization: Bearer KEY", id="a line break in the path"),
    pytest.param(403, {"headers": [("Origin", "https://evil.example")]}, "Origin", id="a foreign origin"),
    pytest.param(421, {"headers": [("Host", "evil.example")]}, "Host", id="another host"),
    pytest.param(413, {"body": b" " * (MAX + 1)}, "too large", id="too large"),
    pytest.param(405, {"method": "GET"}, "", id="GET"),
    pytest.param(404, {"path": "/other"}, "Not Found", id="another path"),
]


@pytest.mark.parametrize(("status", "request_", "reason"), REFUSED)
def test_a_request_that_is_refused_has_its_status(send, status, request_, reason):
    response = send(**request_)
    assert response.status_code == status
    assert reason in response.text
    assert ("www-authenticate" in response.headers) == (status == 401)


def test_a_body_of_1_mb_is_accepted(send):
    assert send(json.dumps(CALL).encode().ljust(MAX)).status_code == 200


def test_a_host_and_origins_of_the_settings_are_accepted(send):
    headers = [("Host", "api.example.com"), ("Origin", "https://app.example.com")]
    settings = {"public_base_url": "https://api.example.com", "cors_origins": ("https://app.example.com",)}
    response = send(headers=headers, **settings)
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, headers[1][1])


@pytest.mark.parametrize("at", ["http://127.0.0.1:1", None])
def test_a_service_that_does_not_respond_or_that_limits_is_503_or_429_with_retry_after(make_service, serve, send, at):
    limited = make_service(rate_limit=parse("1 per minute"))
    key = limited.key("f1")
    limited.get("/drivers")
    response = send(key=key, at=at or serve(limited))
    assert response.status_code == (503 if at else 429)
    assert "127.0.0.1" not in response.text
    assert 1 <= int(response.headers["retry-after"]) <= 60


def test_failures_count_for_the_client_that_the_trusted_proxy_names(make_service, serve, send):
    proxies = {"trusted_proxies": Config.from_environment({"TRUSTED_PROXIES": "127.0.0.1"}).trusted_proxies}
    limited = make_service(auth_failure_limit=parse("1 per hour"), **proxies)
    at, clients = serve(limited), ["198.51.100.1", "198.51.100.1", "2001:db8::1", "2001:db8::2"]
    statuses = [
        send(key="x", at=at, headers=[("X-Forwarded-For", name)], client=("127.0.0.1", 1), **proxies).status_code
        for name in clients
    ]
    assert statuses == [401, 429, 401, 429]


def test_a_revoked_key_is_refused_at_the_next_request(send, service, store, clock):
    assert send().status_code == 200
    store.keys.delete_many({})
    clock.shift(5)
    assert send().status_code == 401


def test_fleets_share_a_process_and_nothing_else(agents, service, load):
    for fleet, driver in (("f1", "ann"), ("f2", "bob")):
        load(drivers=[make_driver(driver)], fleet=fleet)
    drivers = {service.key("f1"): ["ann"], service.key("f2"): ["bob"], service.key("f1", "ann"): ["ann"]}

    async def find(key, mode):
        url = "http://{}:{}/mcp".format(*agents.address)
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"APIKEY {key}"}, timeout=60) as sender,
            Client(streamable_http_client(url, http_client=sender), mode=mode) as client,
        ):
            assert len((await client.list_tools()).tools) == 10
            results = await asyncio.gather(*(client.call_tool("find_drivers", {}) for _ in range(5)))
        found = [[driver["driver_id"] for driver in result.structured_content["drivers"]] for result in results]
        assert found == [drivers[key]] * 5

    async def talk():
        await asyncio.gather(*(find(key, mode) for key in drivers for mode in ("auto", "legacy")))

    asyncio.run(talk())


def test_no_key_is_logged_wherever_a_client_puts_it(agents, service):
    key = service.key("f1")
    for headers in ({"Authorization": f"Bearer {key}!"}, {"Authorization": f"Bearer {key}", "Host": key}):
        for body in (CALL, {"x": key}, {**CALL, "params": {"name": key}}):
            url = "http://{}:{}/mcp?key={key}".format(*agents.address, key=key)
            assert key not in httpx2.post(url, json=body, headers={**HEADERS, **headers}, timeout=60).text
    assert "POST /mcp" in agents.log_text()
    assert key not in agents.log_text()


@pytest.mark.parametrize(
    ("address", "environment", "reason"),
    [
        ("nonsense", {}, "It takes ADDRESS:PORT"),
        ("203.0.113.1:8011", {}, "Cannot serve on 203.0.113.1:8011: Cannot assign requested address. Set --http to"),
        ("127.0.0.1:{free}", {"DRIVER_ANALYTICS_URL": "localhost"}, "DRIVER_ANALYTICS_URL cannot be used"),
        ("127.0.0.1:{used}", {}, "Address already in use. Stop the program that uses it, or set --http"),
    ],
)
def test_what_keeps_the_command_from_starting_is_one_line(command, monkeypatch, address, environment, reason):
    with socket.create_server(("127.0.0.1", 0)) as used:
        ports = {"used": used.getsockname()[1], "free": free_port()}
        for name, value in environment.items():
            monkeypatch.setenv(name, value.format(**ports))
        output = command("mcp", "--http", address.format(**ports)).output
    assert reason in output.splitlines()[-1]
    assert "Traceback" not in output


def test_sigterm_lets_a_request_end(db, serve, tmp_path):
    service = Service(db)
    agents = Agents(tmp_path, "agents").ask(serve(service))
    list_drivers = service.app.view_functions["drivers.list_drivers"]

    def wait(**path):
        agents.signal(signal.SIGTERM)
        wait_until(lambda: not accepts(agents.address))
        return list_drivers(**path)

    service.app.view_functions["drivers.list_drivers"] = wait
    with agents:
        headers = {**HEADERS, "Authorization": f"APIKEY {service.key('f1')}"}
        response = httpx2.post("http://{}:{}/mcp".format(*agents.address), json=CALL, headers=headers, timeout=60)
        assert response.json()["result"]["structuredContent"]["count"] == 0
    assert agents.process.returncode == 0
