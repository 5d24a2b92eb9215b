"""What the shipped proxies pass on, what they refuse, and what they write down."""

import json
import re
import socket
import subprocess

import pytest

from tests.factories import make_driver
from tests.resilience.fleet import MONDAY, issue_key
from tests.resilience.load import API
from tests.resilience.processes import ROOT, Service, program, run_command
from tests.resilience.proxies import SHIPPED, Proxy
from tests.service_process import wait_until

BOTH = pytest.mark.parametrize("proxy", SHIPPED, indirect=True, scope="module")
LINE_BYTES = 8190


@pytest.fixture(scope="module")
def key(store, tmp_path_factory):
    """A key of a fleet that has a driver with a slash in its id."""
    path = tmp_path_factory.mktemp("slash") / "drivers.ndjson"
    path.write_text(json.dumps(make_driver("a/b")))
    run_command("import", "--fleet", "slash", "--drivers", path, uri=store.uri)
    return issue_key(store.uri, "slash")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("proxies")


@pytest.fixture(scope="module")
def service(store, redis_server, folder):
    settings = {"MONGODB_URI": store.uri, "RATELIMIT_STORAGE_URI": redis_server.uri}
    settings |= {"TRUSTED_PROXIES": "127.0.0.1", "AUTH_FAILURE_LIMIT": "3 per hour"}
    with Service(folder, **settings) as result:
        yield result


@pytest.fixture(scope="module")
def proxy(request, service, folder):
    """A proxy before the same instance twice."""
    with Proxy(folder / request.param, request.param, (service, service)) as result:
        yield result


@pytest.fixture
def dead(proxy, service):
    """The proxy, without a service behind it."""
    service.kill()
    wait_until(lambda: proxy.get("/healthz").status == 503)
    yield proxy
    service.start()
    wait_until(proxy.responds)


def send(server, line, *headers):
    """Return the complete response to a request line sent unchanged."""
    with socket.create_connection(server.address, timeout=30) as client:
        client.sendall("\r\n".join([line, "Host: h", "Connection: close", *headers, "", ""]).encode())
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def logged(proxy):
    """Return all that a proxy has written down."""
    return "".join(log.read_text() for log in proxy.log.parent.glob("*.log"))


@BOTH
@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/driver/a%2Fb/trips?start_date={MONDAY}", 200),
        (f"/driver/a%2fb/trips?start_date={MONDAY}", 200),
        (f"/driver/a/b/trips?start_date={MONDAY}", 404),
        (f"/driver//trips?start_date={MONDAY}", 404),
        ("//drivers", 404),
        ("/drivers/", 404),
        ("/drivers/../drivers", 404),
        ("/drivers", 200),
    ],
)
def test_a_path_arrives_as_it_was_sent(proxy, key, path, status):
    response = send(proxy, f"GET {API}{path} HTTP/1.1", f"Authorization: APIKEY {key}")
    assert response.startswith(f"HTTP/1.1 {status} ")
    assert "x-request-id: " in response.lower()


@BOTH
def test_the_longest_request_line_arrives(proxy, key):
    line = f"GET {API}/drivers?x={{}} HTTP/1.1"
    response = send(proxy, line.format("x" * (LINE_BYTES - len(line) + 2)), f"Authorization: APIKEY {key}")
    assert '"error":"ValidationError"' in response


@BOTH
@pytest.mark.parametrize("line", ["GET /a b HTTP/1.1", "NONSENSE", f"GET /{'x' * 40_000} HTTP/1.1"])
def test_invalid_http_is_refused_without_naming_the_proxy(proxy, line):
    response = send(proxy, line)
    assert re.match(r"HTTP/1.1 4(00|14) ", response)
    assert not re.search(r"haproxy|nginx/|gunicorn", response, re.IGNORECASE)


@BOTH
def test_no_response_reveals_a_version(proxy):
    assert not re.search(r"gunicorn|nginx/|haproxy", send(proxy, f"GET {API}/healthz HTTP/1.1"), re.IGNORECASE)


@BOTH
def test_a_request_id_is_passed_on_or_generated(proxy):
    assert ": mine-1\r\n" in send(proxy, f"GET {API}/healthz HTTP/1.1", "X-Request-ID: mine-1")
    assert re.search(r"x-request-id: [0-9a-f-]{32,36}\r\n", send(proxy, f"GET {API}/healthz HTTP/1.1").lower())


@BOTH
def test_a_client_cannot_forge_its_address(proxy):
    statuses = [
        send(proxy, f"GET {API}/drivers HTTP/1.1", f"X-Forwarded-For: 192.0.2.{n}", f"Forwarded: for=192.0.2.{n}")[9:12]
        for n in range(5)
    ]
    assert statuses[3:] == ["429"] * 2


@BOTH
def test_without_an_instance_the_response_is_503_with_the_error_body(dead):
    head, _, body = send(dead, f"GET {API}/drivers HTTP/1.1", "X-Request-ID: mine-2").partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503 ")
    assert "retry-after: 1" in head.lower()
    expected_body = (
        '{"message":"The service does not respond. Try again.","error":"ServiceUnavailable","request_id":"mine-2"}'
    )
    assert body == expected_body


@BOTH
def test_while_the_store_is_down_the_proxy_passes_on_the_responses_of_the_service(proxy, store):
    store.server.pause()
    try:
        # Long enough for a probe to find out.
        result = [proxy.get("/healthz") for _ in range(12)]
        assert {(response.status, response.json["status"]) for response in result} == {(503, "unavailable")}
        assert proxy.get("/livez").status == 200
    finally:
        store.repair()
        wait_until(proxy.responds)


@BOTH
@pytest.mark.parametrize("link", ["WyI-c2VjcmV0.c2ln", "WyJhY21lIl0.c2ln", "WyLDhyJd.c2ln", ".eJyLVkpU.c2ln"])
def test_no_log_contains_a_report_link_as_a_request_id(proxy, link):
    send(proxy, f"GET {API}/healthz HTTP/1.1", f"X-Request-ID: {link}")
    after = f"after-{link[:3].lower()}"
    send(proxy, f"GET {API}/healthz HTTP/1.1", f"X-Request-ID: {after}")
    wait_until(lambda: f"request_id={after}" in logged(proxy))
    assert link not in logged(proxy)


@BOTH
def test_no_log_contains_a_key_outside_a_path(proxy, key):
    send(proxy, f"{key} {API}/drivers HTTP/1.1", "X-Request-ID: odd")
    send(proxy, f"GET {API}/drivers HTTP/1.1", f"X-Request-ID: {key}")
    send(proxy, f"GET {API}/drivers HTTP/1.1", "X-Request-ID: after")
    wait_until(lambda: "request_id=after" in logged(proxy))
    assert key not in logged(proxy)


@BOTH
def test_no_log_contains_a_key_a_link_or_a_query(dead, key):
    for path in (f"/report/canary{'x' * 9}", "/drivers?canary=1"):
        send(dead, f"GET {API}{path} HTTP/1.1", f"Authorization: APIKEY {key}", "X-Request-ID: last")
    wait_until(lambda: logged(dead).count("request_id=last") == 2)
    assert not re.search(f"canary|{key}", logged(dead))


@BOTH
def test_no_log_of_successful_requests_contains_a_secret(proxy, key):
    send(
        proxy, f"GET {API}/driver/canary/trips?canary=1 HTTP/1.1", f"Authorization: APIKEY {key}", "X-Request-ID: well"
    )
    wait_until(lambda: "request_id=well" in logged(proxy))
    assert not re.search(f"canary|{key}", logged(proxy))


def test_the_shipped_configuration_is_valid(tmp_path):
    folder = ROOT / "deploy"
    subprocess.run([program("haproxy"), "-c", "-q", "-f", folder / "haproxy.cfg"], check=True)
    # nginx tries its log files and its pid file, which belong to root.
    (tmp_path / "nginx.conf").write_text((folder / "nginx.conf").read_text().replace("/var/log/nginx", str(tmp_path)))
    subprocess.run(
        [program("nginx"), "-t", "-q", "-c", tmp_path / "nginx.conf", "-g", f"pid {tmp_path}/pid;"], check=True
    )
