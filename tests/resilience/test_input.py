"""Any input gets no 5xx and the one error body, and no request occupies a thread for long."""

import contextlib
import re
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from limits import parse

from app.config import API
from schemas.error import ErrorBody, Problem
from tests.conftest import Service as InProcess
from tests.resilience.fleet import FLEET, MONDAY, TODAY, issue_key, make_drivers, make_trips
from tests.resilience.raw import Connection
from tests.resilience.wsgi import call_app
from tests.service_process import wait_until
from tests.store_contents import load

# The assertion names what failed.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

IN_PROCESS, SERVED = 10_000, 5_000
AT_A_TIME, WORKERS = 20, 2
# CPU time of the thread that responds: the machine may be busy with other things. The longest took a tenth.
CPU_SECONDS = 1.0
STATUSES = {200, 204, 304, 400, 401, 403, 404, 405, 429}
# What gunicorn says by itself: malformed, or too long, or of a transfer coding that it does not know.
REFUSALS = {400, 414, 417, 431, 501}
PLAIN, PROBLEM = set(ErrorBody().fields), set(Problem().fields)

ROUTES = [
    "/drivers",
    "/driver/{}/trips",
    "/trip/trip_id/{}",
    "/trip/tracking_id/{}",
    "/trip/{}/{}",
    "/report",
    "/report/{}",
]
ROUTES += [
    "/driver-aggregate/daily",
    "/driver-aggregate/weekly",
    "/driver-aggregate/monthly",
    "/driver/{}/score",
    "/ranking",
    "/healthz",
    "/livez",
    "/openapi.json",
    "/docs",
    "/docs/{}",
]
ROUTES += ["/{}", "", "/", "//drivers", "/drivers/", "/Drivers", "/driver/{}", "/.{}", "/../drivers", "/%2e%2e/drivers"]
NAMES = [
    "limit",
    "page",
    "start_date",
    "end_date",
    "interval",
    "period",
    "order",
    "min_distance_miles",
    "driver_id",
    "report_time",
    "driver_id[]",
    "driver_id[$ne]",
    "$where",
    "page[$gt]",
]
NAMES += ["limit.", "", "_id", "fleet", "X-Fields", "start_date[]", "__proto__", "limit%00", "fields", "callback"]
REAL = [
    "d01",
    "t017",
    "k02",
    str(MONDAY),
    str(TODAY),
    f"{MONDAY}T00:00:00",
    "1",
    "2",
    "100",
    "101",
    "0",
    "-1",
    "+1",
    "01",
]
NASTY = [
    "",
    "null",
    "NaN",
    "Infinity",
    "-0",
    "1e309",
    "1.0",
    "0x10",
    "9" * 400,
    "1" * 30,
    "-" + "9" * 40,
    "١٢٣",
    "１",
    "²",
    " 1",
    "1 ",
]
NASTY += [
    "$ne",
    "{$gt:''}",
    '{"$gt":""}',
    "';sleep(9);'",
    "[]",
    "[object Object]",
    "true",
    "../../etc/passwd",
    "%00",
    "\x00",
]
NASTY += [
    "a" * 128,
    "a" * 129,
    "é" * 64,
    "é" * 65,
    "\udcff",
    "\ud800",
    "\u202e",
    "\ufeff",
    "%ff%fe",
    "%",
    "%%",
    "%2",
    "%u0041",
]
NASTY += ["20240101", "2024-W01-1", "2024-02-30", "0000-00-00", "9999-12-31", "10000-01-01", "2024-7-1", "-2024-01-01"]
NASTY += [
    "{{7*7}}",
    "${jndi:ldap://x}",
    "<script>",
    "\r\nSet-Cookie: x=1",
    ".",
    "..",
    "a/b",
    "a\\b",
    "\t",
    "\x7f",
    "\x85",
    "\u2028",
]
BOMBS = [
    "{" * 8000,
    "{" * 8000 + "}" * 8000,
    "a{" * 8000,
    "a{" * 8000 + "}" * 8000,
    "trips{" * 4000 + "}" * 4000,
    "x," * 30_000,
]
BOMBS += [
    "trips{events{event_data{" * 900,
    "*," * 9000,
    "," * 60_000,
    "}" * 60_000,
    ":" * 60_000,
    " " * 60_000,
    "é" * 60_000,
]
BOMBS += [
    "{" + "a{b}," * 9000 + "c}",
    "trips{" + ",".join(f"f{n}" for n in range(9000)) + "}",
    "a" * 60_000,
    "drivers{*},*" * 5000,
]
MASKS = [
    "{count}",
    "trips{trip_id}",
    "{",
    "}",
    "{}",
    "*",
    "{*}",
    "count,,limit",
    "trips{events{event_data{a{b}}}}",
    "$where",
    "\x00",
]
HEADERS = [
    "X-Fields",
    "Accept",
    "Accept-Encoding",
    "If-None-Match",
    "X-Request-ID",
    "Authorization",
    "Host",
    "Cookie",
    "Origin",
]
HEADERS += [
    "Content-Type",
    "Content-Length",
    "Transfer-Encoding",
    "Range",
    "If-Modified-Since",
    "X-Forwarded-For",
    "Forwarded",
]
HEADERS += [
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Original-URL",
    "X-HTTP-Method-Override",
    "Expect",
    "Date",
    "TE",
    "Via",
]
VALUES = [
    "*",
    "*/*;q=0",
    "application/geo+json;q=0.5, */*",
    "application/problem+json",
    "gzip;q=0",
    "identity;q=0, *;q=0",
]
VALUES += [
    "zstd, gzip, br;q=1e9",
    'W/"x", "y"',
    '"' * 5000,
    "text/html;" * 5000,
    "q=" * 5000,
    "gzip," * 9000,
    "bytes=0-0",
    "chunked",
]
VALUES += [
    "application/geo+json;q=nan",
    "application/geo+json;q=-1",
    "application/geo+json;" + "a=b;" * 5000,
    "APIKEY " * 99,
    "-1",
]

text = st.text(max_size=12) | st.sampled_from(NASTY) | st.sampled_from(REAL) | st.sampled_from(REAL)


def utf8(value):
    return value.encode("utf-8", "surrogatepass")


def escape(value):
    """Return UTF-8 percent-encoded: what must be, and as much else as a client likes."""
    return "".join(chr(byte) if chr(byte).isalnum() or byte in b"-._~" else f"%{byte:02X}" for byte in utf8(value))


def latin(value):
    """Return text as a server hands it on: bytes as Latin-1, without what ends a line."""
    return re.sub(r"[\r\n]", " ", utf8(value).decode("latin-1"))


# As sent by a careful client, or by one that encodes nothing but what would end the request line.
part = text.map(escape) | text.map(escape) | text.map(lambda value: re.sub(r"[\s#?\x00-\x1f]", "+", latin(value)))
pair = st.tuples(st.sampled_from(NAMES) | part, part).map("=".join)
# A request that would be valid without what is added to it.
valid = st.sampled_from(
    [
        "/drivers?limit=5",
        f"/driver/d03/trips?start_date={MONDAY}",
        "/trip/tracking_id/k02?page=1",
        f"/driver-aggregate/daily?start_date={MONDAY}&driver_id=d01&driver_id=d02",
        f"/driver-aggregate/weekly?start_date={MONDAY}&driver_id=d01",
        f"/driver-aggregate/monthly?start_date={MONDAY.replace(day=1)}&driver_id=d01",
        f"/driver/d01/score?start_date={MONDAY}&interval=day",
        f"/ranking?period=week&start_date={MONDAY}&min_distance_miles=5",
    ]
)
valid_targets = st.tuples(st.sampled_from(ROUTES), part, st.lists(pair, max_size=4)).map(
    lambda drawn: drawn[0].replace("{}", drawn[1]) + ("?" if drawn[2] else "") + "&".join(drawn[2])
)
bent = st.tuples(valid, pair).map("&".join)
target = st.one_of(valid_targets, bent, valid).map(lambda path: API + path)
mask = st.sampled_from(MASKS) | st.sampled_from(BOMBS) | st.text("{},*:ab ._$", max_size=30)
header = st.one_of(
    st.tuples(st.just("X-Fields"), mask.map(latin)),
    st.tuples(st.sampled_from(HEADERS), (st.sampled_from(VALUES) | text).map(latin)),
)
method = st.sampled_from(["GET"] * 12 + ["HEAD", "OPTIONS", "POST", "DELETE", "PROPFIND", "$"])
requests = st.tuples(target, st.lists(header, max_size=3), method, st.sampled_from([True] * 7 + [False]))


END = b"\r\n\r\n"
# Bytes put somewhere into a request, most often none.
junk = st.tuples(st.integers(0, 2000), st.sampled_from([b""] * 12 + [b"\0", b"\r", b"\r\n\r\n", b" ", b"\xff", b":"]))


def written(request, key):
    """Return a request as bytes, but for its end."""
    path, headers, verb, with_key = request
    headers = [("Host", "x"), *([("Authorization", f"APIKEY {key}")] if with_key else []), *headers]
    return "\r\n".join([f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]).encode("latin-1")


# Hypothesis is to make requests up; to find the smallest of those that fail is not worth its while.
MADE_UP = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}


def check(response, has_body):
    """Assert that a response of the service is allowed."""
    assert response.status in STATUSES
    if response.status < 400 or not has_body:
        return
    shape = PROBLEM if response.header("content-type") == "application/problem+json" else PLAIN
    members = shape if response.json["error"] == "ValidationError" else shape - {"errors"}
    assert set(response.json) == members


def timed(app, *request):
    """Return the response and the seconds of CPU that it took; where those are many, the least of a few times.

    A full collection of garbage, of which Hypothesis makes much, may fall into any request.
    """
    took = []
    while not took or (min(took) > CPU_SECONDS / 10 and len(took) < 5):
        began = time.thread_time()
        response = call_app(app, *request)
        took.append(time.thread_time() - began)
    return response, min(took)


@pytest.mark.large
def test_every_request_gets_an_allowed_response_in_time(mongod, capfd, report):
    load(mongod, *make_trips(), drivers=make_drivers(), fleet=FLEET)
    no_limit = dict.fromkeys(("rate_limit", "auth_failure_limit"), parse("1000000000 per minute"))
    service = InProcess(mongod, log_level="WARNING", **no_limit)
    key, statuses, longest = ("Authorization", f"APIKEY {service.key(FLEET)}"), Counter(), 0.0

    @settings(max_examples=IN_PROCESS // AT_A_TIME, **MADE_UP)
    @given(st.lists(requests, min_size=AT_A_TIME, max_size=AT_A_TIME))
    def send(some):
        nonlocal longest
        for path, headers, verb, with_key in some:
            response, took = timed(service.app, path, [key, *headers] if with_key else headers, verb)
            longest = max(longest, took)
            statuses[response.status] += 1
            check(response, verb != "HEAD")
            assert took < CPU_SECONDS, (path, headers)

    send()
    summary = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    report(f"junk: {statuses.total():,} requests ({summary}), no other; {longest:.2f} s of CPU for the longest")
    assert "unhandled exception" not in capfd.readouterr().err
    assert statuses.total() >= IN_PROCESS
    assert min(statuses[status] for status in (200, 400, 401, 404)) > IN_PROCESS / 100


def test_no_bytes_cause_an_internal_error(store, make_service, report):
    limits = dict.fromkeys(("RATE_LIMIT", "AUTH_FAILURE_LIMIT"), "1000000000 per minute")
    key, statuses = issue_key(store.uri), Counter()
    with make_service(MONGODB_URI=store.uri, LOG_LEVEL="ERROR", WEB_CONCURRENCY=str(WORKERS), **limits) as service:
        wait_until(lambda: len(service.children()) == WORKERS)
        workers, connection = service.children(), Connection(service.address)

        @settings(max_examples=SERVED // AT_A_TIME, **MADE_UP)
        @given(st.lists(st.tuples(requests, junk), min_size=AT_A_TIME, max_size=AT_A_TIME))
        def send(some):
            for request, (at, more) in some:
                text = written(request, key)
                sent_bytes = text[: at % len(text)] + more + text[at % len(text) :] if more else text
                response = connection.send(sent_bytes + END)
                statuses[kind(response, sent_bytes)] += 1
                if more:
                    # It may have been two requests.
                    connection.close()

        with contextlib.closing(connection):
            send()
        assert service.children() == workers
    summary = ", ".join(f"{count:,} {name}" for name, count in statuses.most_common())
    report(f"junk over a socket: {statuses.total():,} requests ({summary}), no other; the workers lived on")
    assert "unhandled exception" not in service.log_text()
    assert statuses.total() >= SERVED


def kind(response, sent_bytes):
    """Check a response, and return its kind."""
    if response is None:
        return "connections closed"
    if response.header("X-Request-ID") is None:
        assert response.status in REFUSALS
        return f"{response.status} of gunicorn"
    check(response, not sent_bytes.startswith(b"HEAD "))
    return str(response.status)
