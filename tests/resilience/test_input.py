"""Whatever bytes arrive, the service sends no 5xx, only the documented error body, and logs no secret."""

import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.config import API, Config
from app.report_links import ReportLinkSigner
from schemas.error import ErrorBody, Problem
from tests.operations import OF_DATA, OPERATIONS, make_target, parameters_of
from tests.resilience.fleet import FLEET, MONDAY, TODAY, issue_key
from tests.resilience.raw import exchange, first_response
from tests.service_process import wait_until

# The assertion names what failed.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

REQUESTS, AT_A_TIME, WORKERS = 5_000, 20, 2
STATUSES = {200, 204, 304, 400, 401, 403, 404, 405, 429}
# What gunicorn says by itself: malformed, or too long, or of a transfer coding that it does not know.
REFUSALS = {400, 414, 417, 431, 501}
PLAIN, PROBLEM = set(ErrorBody().fields), set(Problem().fields)

ROUTES = [re.sub(r"{\w+}", "{}", path.removeprefix(API)) for path in OPERATIONS]
ROUTES += ["/trip/trip_id/{}", "/trip/tracking_id/{}", "/docs/{}"]
ROUTES += ["/{}", "", "//drivers", "/drivers/", "/.{}", "/../drivers", "/%2e%2e/drivers"]
NAMES = sorted({name for path in OPERATIONS for name in parameters_of(path)})
NAMES += ["driver_id[$ne]", "$where", "limit.", "", "limit%00"]
REAL = ["d01", "t017", "k02", str(MONDAY), str(TODAY), f"{MONDAY}T00:00:00", "1", "100"]
# They stand for a key and for a link to a report, wherever a client may put them.
SECRETS = ["the-key", "the-link"]
NASTY = ["", "NaN", "-0", "1e309", "0x10", "9" * 400, "²", " 1", "$ne", '{"$gt":""}', "../../etc/passwd", "%00", "\x00"]
NASTY += ["a" * 129, "é" * 65, "\udcff", "\u202e", "%ff%fe", "%", "%u0041", "2024-W01-1", "9999-12-31", "10000-01-01"]
NASTY += ["\r\nSet-Cookie: x=1", ".", "..", "a/b", "a\\b", "\x7f"]
MASKS = ["{count}", "trips{trip_id}", "{", "}", "{*}", "a{b}", "{" * 8000, "trips{" * 1000, "," * 8000, "é" * 4000]
HEADERS = ["X-Fields", "Accept", "Accept-Encoding", "If-None-Match", "X-Request-ID", "Authorization", "Host", "Origin"]
HEADERS += ["Content-Length", "Transfer-Encoding", "Range", "If-Modified-Since", "X-Forwarded-For", "Expect"]
VALUES = ["*", "*/*;q=0", "application/problem+json", "application/geo+json;q=nan", "identity;q=0, *;q=0", "chunked"]
VALUES += ['W/"x", "y"', '"' * 5000, "text/html;" * 700, "gzip," * 1500, "bytes=0-0", "APIKEY " * 99, "-1"]

text = st.text(max_size=12) | st.sampled_from(NASTY) | st.sampled_from(REAL + SECRETS) | st.sampled_from(REAL)


def utf8(value):
    return value.encode("utf-8", "surrogatepass")


def escape(value):
    """Return UTF-8 percent-encoded: what must be, and as much else as a client likes."""
    return "".join(chr(byte) if chr(byte).isalnum() or byte in b"-._~" else f"%{byte:02X}" for byte in utf8(value))


def latin(value):
    """Return text whose bytes in Latin-1 are sent, without what ends a line."""
    return re.sub(r"[\r\n]", " ", utf8(value).decode("latin-1"))


# As sent by a careful client, or by one that encodes nothing but what would end the request line.
part = text.map(escape) | text.map(escape) | text.map(lambda value: re.sub(r"[\s#?\x00-\x1f]", "+", latin(value)))
pair = st.tuples(st.sampled_from(NAMES) | part, part).map("=".join)
# A request that would be valid without what is added to it.
valid = st.sampled_from([make_target(path, {"driver_id": "d01"}, monday=str(MONDAY), page=1) for path in OF_DATA])
made_up = st.tuples(st.sampled_from(ROUTES), part, st.lists(pair, max_size=4)).map(
    lambda drawn: drawn[0].replace("{}", drawn[1]) + "?" * bool(drawn[2]) + "&".join(drawn[2])
)
target = st.one_of(made_up, st.tuples(valid, pair).map("&".join), valid).map(lambda path: API + path)
mask = st.sampled_from(MASKS) | st.text("{},*:ab ._$", max_size=30)
header = st.one_of(
    st.tuples(st.just("X-Fields"), mask.map(latin)),
    st.tuples(st.sampled_from(HEADERS), (st.sampled_from(VALUES) | st.sampled_from(SECRETS) | text).map(latin)),
)
# As many as gunicorn takes, which is one mask.
masks = mask.map(lambda value: [("X-Fields", latin(value))] * 45)
headers = st.integers(0, 9).flatmap(lambda number: st.lists(header, max_size=3) if number else masks)
method = st.sampled_from(["GET"] * 12 + ["HEAD", "OPTIONS", "POST", "DELETE", "PROPFIND", "$"])
# Bytes put somewhere into a request, most often none.
junk = st.tuples(st.integers(0, 2000), st.sampled_from([b""] * 12 + [b"\0", b"\r", b"\r\n\r\n", b" ", b"\xff", b":"]))
requests = st.tuples(method, target, st.sampled_from([True] * 7 + [False]), headers, junk)
# Hypothesis is to make requests up; to find the smallest of those that fail is not worth its while.
MADE_UP = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}


def written(request, key):
    """Return a request as bytes."""
    verb, path, with_key, more_headers, (at, more) = request
    lines = [("Host", "x"), *([("Authorization", f"APIKEY {key}")] if with_key else []), *more_headers]
    whole = "\r\n".join([f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines)]).encode("latin-1")
    at %= len(whole)
    return whole[:at] + more + whole[at:] + b"\r\n\r\n"


def kind_of(response, has_body):
    """Check a response, and return its kind."""
    if response is None:
        return "connections closed"
    if "x-request-id" not in response.headers:
        assert response.status in REFUSALS
        return f"{response.status} of gunicorn"
    assert response.status in STATUSES
    if response.status >= 400 and has_body:
        shape = PROBLEM if response.headers["content-type"] == "application/problem+json" else PLAIN
        assert set(response.json) == (shape if response.json["error"] == "ValidationError" else shape - {"errors"})
    return str(response.status)


def test_no_bytes_cause_an_internal_error_or_a_secret_in_the_log(store, make_service, report):
    limits = dict.fromkeys(("RATE_LIMIT", "AUTH_FAILURE_LIMIT"), "1000000000 per minute")
    key, kinds = issue_key(store.uri), Counter()
    link = ReportLinkSigner(Config(secret_key="resilience")).build_url(
        "", FLEET, str(MONDAY), "week", "csv", "id", 2**50
    )
    secrets = dict(zip(SECRETS, (key, link.rpartition("/")[2]), strict=True))
    with make_service(MONGODB_URI=store.uri, LOG_LEVEL="DEBUG", WEB_CONCURRENCY=str(WORKERS), **limits) as service:
        wait_until(lambda: len(service.children()) == WORKERS)
        workers = service.children()

        @settings(max_examples=REQUESTS // AT_A_TIME, **MADE_UP)
        @given(st.lists(requests, min_size=AT_A_TIME, max_size=AT_A_TIME))
        def send(some):
            for request in some:
                sent = written(request, key)
                for name, secret in secrets.items():
                    sent = sent.replace(name.encode(), secret.encode())
                response = first_response(exchange(service.address, sent, half_close=True))
                kinds[kind_of(response, not sent.startswith(b"HEAD "))] += 1

        send()
        assert service.children() == workers
    summary = ", ".join(f"{count:,} {name}" for name, count in kinds.most_common())
    report(f"junk over a socket: {kinds.total():,} requests ({summary}), no other; the workers lived on")
    log = service.log_text()
    assert "unhandled exception" not in log
    # Of a key its random part, and of a link its signature.
    assert [text for text in (key[3:33], link.rpartition(".")[2]) if text.lower() in log.lower()] == []
    assert min(kinds[kind] for kind in ("200", "400", "401", "404")) > REQUESTS / 100
