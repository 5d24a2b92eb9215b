"""What the shipped proxies pass on, what they refuse, and what they write down."""

import contextlib
import http.client
import json
import re
import subprocess
import time
import uuid
from urllib.parse import urlencode

import pytest

from tests.factories import make_driver, make_event, make_trip
from tests.resilience.fleet import MONDAY, issue_key, write_file
from tests.resilience.load import API, TIMEOUT_SECONDS, Load, failures
from tests.resilience.processes import ROOT, Service, program, run_command
from tests.resilience.proxies import SHIPPED, Proxy
from tests.resilience.raw import exchange
from tests.service_process import wait_until

BOTH = pytest.mark.parametrize("proxy", SHIPPED, indirect=True, scope="module")
LINE_BYTES = 8190
MAX_HEADER_BYTES = 8_000
# Of 128 bytes, which are 376 characters of a query.
LONG_DRIVERS = [f"{n:04}{'é' * 62}" for n in range(20)]
SERVER_NAMES = re.compile(r"gunicorn|nginx/|haproxy", re.IGNORECASE)


@pytest.fixture(scope="module")
def key(store, tmp_path_factory):
    """A key of a fleet that has a driver with a slash in its id."""
    path = write_file(tmp_path_factory.mktemp("slash") / "drivers", [make_driver("a/b")])
    run_command("import", "--fleet", "slash", "--drivers", path, uri=store.uri)
    return issue_key(store.uri, "slash")


@pytest.fixture(scope="module")
def long_key(store, tmp_path_factory):
    """A key of a fleet whose identifiers have the maximum length; each driver has a trip with an event."""
    trips = [make_trip(f"{MONDAY}T08:00", name, trip_id=f"{name[:4]:x<128}") for name in LONG_DRIVERS]
    lines = [{**trip, "events": [make_event(trip["trip_start_time"])]} for trip in trips]
    path = write_file(tmp_path_factory.mktemp("long") / "trips", lines)
    run_command("import", "--fleet", "long", "--trips", path, uri=store.uri)
    return issue_key(store.uri, "long")


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


def send(proxy, line, *headers):
    """Return the complete response to a request line sent unchanged."""
    lines = [line, "Host: h", "Connection: close", *headers, "", ""]
    return exchange(proxy.address, "\r\n".join(lines).encode()).decode()


def get(proxy, path, *headers):
    """Return the complete response to a request for a path under /api/v1, sent unchanged."""
    return send(proxy, f"GET {API}{path} HTTP/1.1", *headers)


def log_now(proxy):
    """Return all that a proxy has written down, up to a request that is sent here."""
    request_id, written = str(uuid.uuid4()), []
    get(proxy, "/healthz", f"X-Request-ID: {request_id}")

    def is_written():
        written[:] = ["".join(log.read_text() for log in proxy.log.parent.glob("*.log"))]
        return f"request_id={request_id}" in written[0]

    wait_until(is_written)
    return written[0]


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
    ],
)
def test_a_path_arrives_as_it_was_sent(proxy, key, path, status):
    response = get(proxy, path, f"Authorization: APIKEY {key}", "X-Request-ID: mine-1")
    assert response.startswith(f"HTTP/1.1 {status} ")
    assert "x-request-id: mine-1\r\n" in response.lower()
    assert not SERVER_NAMES.search(response)


@BOTH
@pytest.mark.parametrize("line", ["GET /a b HTTP/1.1", "NONSENSE", f"GET /{'x' * 40_000} HTTP/1.1"])
def test_invalid_http_is_refused_without_naming_the_proxy(proxy, line):
    response = send(proxy, line)
    assert re.match(r"HTTP/1.1 4(00|14) ", response)
    assert not SERVER_NAMES.search(response)


@BOTH
@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Length": "5"},
        {"Content-Length": "5", "Expect": "100-continue"},
        # 0 and -1, if they are cut to 32 bits.
        {"Content-Length": str(2**32)},
        {"Content-Length": str(2**63 - 1)},
        {"Transfer-Encoding": "chunked"},
    ],
)
def test_a_body_is_refused(proxy, method, headers):
    with contextlib.closing(http.client.HTTPConnection(*proxy.address, timeout=TIMEOUT_SECONDS)) as client:
        client.request(method, f"{API}/livez", b"5\r\nhello\r\n", {"X-Request-ID": "mine-3", **headers})
        response = client.getresponse()
        assert response.status == 413
        assert json.load(response) == {
            "message": "The request must not have a body.",
            "error": "ContentTooLarge",
            "request_id": "mine-3",
        }


@BOTH
@pytest.mark.parametrize("path", [f"{API}/livez", "/mcp"])
@pytest.mark.parametrize("length", ["-1", "+1", "x", "", f"{2**64}"])
def test_an_invalid_length_of_a_body_is_refused(proxy, path, length):
    assert re.match(r"HTTP/1.1 4(00|13) ", send(proxy, f"POST {path} HTTP/1.1", f"Content-Length: {length}"))


@pytest.mark.parametrize("proxy", ["haproxy"], indirect=True, scope="module")
def test_a_body_without_a_header_is_refused_over_http2(proxy):
    words = [program("curl"), "-s", "--http2-prior-knowledge", "-X", "GET", "-T", "-", "-H", "X-Request-ID: mine-4"]
    subprocess.run([*words, f"http://127.0.0.1:{proxy.port}{API}/livez"], input=b"hello", check=False)
    # The stream may be reset before curl has read the response.
    assert re.search(r" GET 413 .* request_id=mine-4$", log_now(proxy), re.MULTILINE)


@BOTH
def test_the_longest_request_line_arrives_with_forty_headers(proxy, key):
    start = f"GET {API}/drivers?x="
    line = f"{start}{'x' * (LINE_BYTES - len(f'{start} HTTP/1.1'))} HTTP/1.1"
    headers = [f"Authorization: APIKEY {key}", *(f"X-{n}: {'x' * 100}" for n in range(40))]
    response = send(proxy, line, *headers)
    assert response.startswith("HTTP/1.1 400 ")
    assert '"error":"ValidationError"' in response


@BOTH
@pytest.mark.parametrize("path", ["/trips", "/events", "/driver-aggregate/window"])
def test_a_list_of_twenty_drivers_with_the_longest_ids_can_be_read_to_its_end(proxy, long_key, path):
    next_page, records = {}, []
    while next_page is not None:
        query = {"start_date": MONDAY, "limit": 7, "driver_id": LONG_DRIVERS, **next_page}
        response = get(proxy, f"{path}?{urlencode(query, doseq=True)}", f"Authorization: APIKEY {long_key}")
        head, _, body = response.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 ")
        assert len(head) < MAX_HEADER_BYTES
        page = json.loads(body)
        records += next(value for value in page.values() if isinstance(value, list))
        next_page = next(({name[5:]: page[name]} for name in ("next_page", "next_cursor") if page.get(name)), None)
    assert len(records) == len({json.dumps(record) for record in records}) == len(LONG_DRIVERS)


@BOTH
def test_a_request_id_is_generated(proxy):
    assert re.search(r"x-request-id: [0-9a-f-]{32,36}\r\n", get(proxy, "/healthz").lower())


@BOTH
@pytest.mark.parametrize("ids", [("mine-6", "<b>"), ("<b>", "mine-6")])
def test_a_second_request_id_is_checked_like_the_first(proxy, ids):
    response = get(proxy, "/livez", *(f"X-Request-ID: {each}" for each in ids))
    assert response.startswith("HTTP/1.1 200 ")
    assert "<b>" not in response + log_now(proxy)


@BOTH
def test_a_client_cannot_forge_its_address(proxy):
    addresses = [f"192.0.2.{n}" for n in range(5)]
    responses = [get(proxy, "/drivers", f"X-Forwarded-For: {each}", f"Forwarded: for={each}") for each in addresses]
    assert [response[9:12] for response in responses[3:]] == ["429", "429"]


@BOTH
def test_without_an_instance_the_response_is_503_with_the_error_body(dead):
    head, _, body = get(dead, "/drivers", "X-Request-ID: mine-2").partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 503 ")
    assert "retry-after: 1" in head.lower()
    assert json.loads(body) == {
        "message": "The service does not respond. Try again.",
        "error": "ServiceUnavailable",
        "request_id": "mine-2",
    }


@BOTH
def test_while_the_store_is_down_the_proxy_passes_on_the_responses_of_the_service(proxy, store):
    store.server.pause()
    try:
        # Enough for a probe to find out.
        result = [proxy.get("/healthz") for _ in range(12)]
        assert {(response.status, response.json["status"]) for response in result} == {(503, "unavailable")}
        assert proxy.get("/livez").status == 200
    finally:
        store.repair()
        wait_until(proxy.responds)


@pytest.mark.parametrize("kind", SHIPPED)
def test_no_request_fails_while_one_instance_does_not_reach_mongodb(service, store, folder, kind):
    lost = Service(folder, f"lost-{kind}", MONGODB_URI="mongodb://127.0.0.1:1", WEB_CONCURRENCY="1")
    with (
        lost,
        Proxy(folder / f"lost-{kind}", kind, (service, lost)) as proxy,
        Load(proxy.address, store.key, store.expected, clients=2) as load,
    ):
        # HAProxy finds out with its next probe.
        load.recover()
        since = time.monotonic()
        load.more(200)
        assert not failures(load.sent_after(since))


@BOTH
@pytest.mark.parametrize(
    "secret", ["WyI-c2VjcmV0.c2ln", "WyJhY21lIl0.c2ln", "WyLDhyJd.c2ln", ".eJyLVkpU.c2ln", "a key"]
)
def test_no_log_contains_a_link_or_a_key_as_a_request_id(proxy, key, secret):
    secret = key if secret == "a key" else secret
    send(proxy, f"{secret} {API}/drivers HTTP/1.1")
    get(proxy, "/healthz", f"X-Request-ID: {secret}")
    assert secret not in log_now(proxy)


def canary_log(proxy, key):
    """Return the log after requests with a canary in all that is secret."""
    for path in ("/report/canary", "/driver/canary/trips?canary=1", "/drivers?canary=1"):
        get(proxy, path, f"Authorization: APIKEY {key}")
    return log_now(proxy)


@BOTH
def test_no_log_contains_a_key_a_link_or_a_query(proxy, key):
    assert not re.search(f"canary|{key}", canary_log(proxy, key))


@BOTH
def test_no_log_contains_them_while_no_instance_responds(dead, key):
    assert not re.search(f"canary|{key}", canary_log(dead, key))


@BOTH
def test_the_length_0_is_allowed(proxy):
    assert get(proxy, "/livez", "Content-Length: 0").startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize("proxy", ["nginx"], indirect=True, scope="module")
def test_more_headers_than_nginx_has_memory_for_are_refused(proxy):
    response = get(proxy, "/livez", *(f"X-{n}: {'x' * 8000}" for n in range(5)))
    assert response.startswith("HTTP/1.1 431 ")
    assert '"error":"HeadersTooLarge"' in response


def test_the_shipped_configuration_is_valid(tmp_path):
    folder = ROOT / "deploy"
    subprocess.run([program("haproxy"), "-c", "-q", "-f", folder / "haproxy.cfg"], check=True)
    # nginx tries its log files and its pid file, which belong to root.
    (tmp_path / "nginx.conf").write_text((folder / "nginx.conf").read_text().replace("/var/log/nginx", str(tmp_path)))
    subprocess.run(
        [program("nginx"), "-t", "-q", "-c", tmp_path / "nginx.conf", "-g", f"pid {tmp_path}/pid;"], check=True
    )
