"""Keys and report links that are sent wherever one may send them: none is in the log."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from pymongo import MongoClient

from app.config import API, Config
from app.report_links import ReportLinkSigner
from app.store.api_keys import make_key
from tests.resilience.fleet import FLEET, MONDAY, issue_key
from tests.resilience.processes import DATABASE
from tests.resilience.raw import exchange, first_response

REQUESTS, CLIENTS = 6_000, 8
# What is found of a secret that was cut somewhere.
PIECE = 12
HEADERS = ["Authorization", "X-Fields", "X-Request-ID", "Cookie", "Host", "Accept", "Accept-Encoding", "If-None-Match"]
HEADERS += ["User-Agent", "Referer", "Origin", "X-Forwarded-For", "Content-Type", "X-Api-Key"]
VALUES = ["APIKEY {}", "apikey {}", "Bearer {}", "{}", "APIKEY  {} ", "APIKEY {0},{0}", "APIKEY x{}", "x={}; y", '"{}"']
PATHS = ["/{}", f"/driver/{{}}/trips?start_date={MONDAY}", "/trip/trip_id/{}", "/trip/{}/x", "/report/{}"]
PATHS += ["/report/{}x", "/drivers?limit={}", "/drivers?{}=1", "/drivers?{0}&{0}", "/docs/{}", "//{}"]
PATHS += ["/report?report_time={}"]
SPELLINGS = [str, str, str, quote, lambda secret: "".join(f"%{ord(letter):x}" for letter in secret[:3]) + secret[3:]]
METHODS = ["GET"] * 8 + ["HEAD", "OPTIONS", "POST"]
# What gunicorn refuses: request lines and header lines.
ODD_LINES = ["get {}", "{1} {0} HTTP/1.1", "GET {0} HTTP/{1}", "GET {0} {1}", "GET {0} HTTP/1.1 {1}"]
ODD_LINES += ["GET /{1} x HTTP/1.1", "GET http://{1}@{1}.example{0} HTTP/1.1", "GET {0}\0 HTTP/1.1"]
ODD_HEADERS = ["{}", "{} : x", ": {}", "Content-Length: {}", "Transfer-Encoding: {}", "X: {}\0", " {}", "Expect: {}"]
ODD_HEADERS += ["X-{}: x", "{}\x7f: x"]


def make_request(rng, secrets):
    """Return a request as bytes, with secrets anywhere in it; of five, one is malformed."""
    pick, secret = rng.choice, rng.choice(secrets)
    target = API + pick(PATHS).format(pick(SPELLINGS)(secret))
    names = rng.sample(HEADERS, pick([0, 1, 2, len(HEADERS)]))
    lines = [
        f"{pick(METHODS)} {target} HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {pick(VALUES).format(pick(secrets))}" for name in names),
    ]
    if rng.random() < 0.1:
        lines[0] = pick(ODD_LINES).format(target, secret)
    if rng.random() < 0.1:
        lines.append(pick(ODD_HEADERS).format(secret))
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def hits(log, secrets):
    """Return the lines of a log that contain a piece of what is secret in keys and links, in whichever case."""
    parts = [secret.rpartition(".")[2] if "." in secret else secret[3:33] for secret in secrets]
    pieces = {text[at : at + PIECE].casefold() for text in parts for at in range(len(text) - PIECE + 1)}
    # To look for each piece in the whole log takes half as long as to match a pattern of all pieces.
    folded = log.casefold()
    found = [piece for piece in pieces if piece in folded]
    return [line[:2000] for line in log.splitlines() if any(piece in line.casefold() for piece in found)]


def test_no_secret_is_in_the_log(store, make_service, report):
    fleet = f"{FLEET}-secrets"
    key, secret_key = issue_key(store.uri, fleet), "resilience"
    with MongoClient(store.uri) as client:
        db = client[DATABASE]
        key_id = db["keys"].find_one({"fleet": fleet})["key_id"]
        # The log names an invalid document.
        invalid = {"fleet": fleet, "report_date": str(MONDAY), "trip_id": key}
        db["reports"].insert_one(invalid, bypass_document_validation=True)
    signer = ReportLinkSigner(Config(secret_key=secret_key))
    links = [signer.build_url("", fleet, str(MONDAY), file, key_id, 2**50) for file in ("csv", "page")]
    secrets = [key, make_key(), *(link.rpartition("/")[2] for link in links)]
    limits = dict.fromkeys(("RATE_LIMIT", "AUTH_FAILURE_LIMIT"), "1000000000 per minute")
    with make_service(MONGODB_URI=store.uri, LOG_LEVEL="DEBUG", SECRET_KEY=secret_key, **limits) as service:

        def send(seed):
            rng, statuses = random.Random(seed), Counter()
            for _ in range(REQUESTS // CLIENTS):
                response = first_response(exchange(service.address, make_request(rng, secrets), half_close=True))
                statuses[response and response.status] += 1
            return statuses

        with ThreadPoolExecutor(CLIENTS) as pool:
            statuses = sum(pool.map(send, range(CLIENTS)), Counter())
        statuses[service.get(f"/driver/{key}/trips?start_date={MONDAY}", key).status] += 1
    log = service.log_text()
    parts = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items(), key=str))
    report(f"secrets in {statuses.total():,} requests to the running service ({parts}): 0 in {len(log):,} bytes of log")
    assert {200, 400, 401, 404, 405, 500} <= statuses.keys()
    assert '"event":"invalid document"' in log
    assert hits(log, secrets) == []
