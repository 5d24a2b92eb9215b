"""Keys and report links that are sent wherever one may send them: none is in the log."""

import random
import threading
from collections import Counter
from urllib.parse import quote

import pytest
from flask import request
from limits import parse
from pymongo import MongoClient
from pymongo.errors import ServerSelectionTimeoutError

from app.config import API, Config
from app.report_links import ReportLinkSigner
from app.store.api_keys import make_key
from tests.conftest import Service as InProcess
from tests.resilience.fleet import FLEET, MONDAY, issue_key
from tests.resilience.processes import DATABASE
from tests.resilience.raw import Connection
from tests.resilience.wsgi import call_app

IN_PROCESS, SERVED = 20_000, 10_000
CLIENTS = 8
# What is found of a secret that was cut somewhere.
PIECE = 12
HEADERS = ["Authorization", "X-Fields", "X-Request-ID", "Cookie", "Host", "Accept", "Accept-Encoding", "If-None-Match"]
HEADERS += ["User-Agent", "Referer", "Origin", "X-Forwarded-For", "Forwarded", "Content-Type", "X-Api-Key", "Via"]
SCHEMES = ["APIKEY {}", "apikey {}", "Bearer {}", "Basic {}", "{}", "APIKEY  {} ", "APIKEY {0},{0}", "APIKEY x{}"]
PATHS = ["/{}", "/driver/{}/trips", f"/driver/{{}}/trips?start_date={MONDAY}", "/trip/trip_id/{}", "/trip/{}/x"]
PATHS += ["/report/{}", "/report/{}x", "/drivers?limit={}", "/drivers?{}=1", "/drivers?{0}&{0}", "/docs/{}", "//{}"]
PATHS += [f"/driver-aggregate/daily?start_date={MONDAY}&driver_id={{}}", "/report?report_time={}", "/healthz?x={}"]
SPELLINGS = [str, str, str, quote, lambda secret: "".join(f"%{ord(letter):x}" for letter in secret[:3]) + secret[3:]]


class Sending:
    """Makes up requests with secrets in them: a target, header lines, a method and a body."""

    def __init__(self, secrets, seed):
        self.secrets, self.rng = secrets, random.Random(seed)

    def target(self):
        pick, secret = self.rng.choice, self.rng.choice(self.secrets)
        return API + pick(PATHS).format(pick(SPELLINGS)(secret)) if self.rng.random() < 0.7 else f"{API}/drivers"

    def headers(self):
        header_lines = []
        for name in self.rng.sample(HEADERS, self.rng.choice([0, 1, 2, len(HEADERS)])):
            form = self.rng.choice(SCHEMES if name == "Authorization" else ["{}", "x={}; y", '"{}"', "{0}, {0}"])
            header_lines.append((name, form.format(self.rng.choice(self.secrets))))
        if self.rng.random() < 0.1:
            header_lines.append((f"X-{self.rng.choice(self.secrets)}", "x"))
        return header_lines

    def method(self):
        return self.rng.choice(["GET"] * 8 + ["HEAD", "OPTIONS", "POST"])

    def body(self):
        return self.rng.choice([b"", b"", b"{}", b'{"key": "%s"}']).replace(
            b"%s", self.rng.choice(self.secrets).encode()
        )


def pieces(secrets):
    """Return all pieces of what is secret in keys and links, in lower case."""
    parts = [secret.rpartition(".")[2] if "." in secret else secret[3:33] for secret in secrets]
    return {text[at : at + PIECE].casefold() for text in parts for at in range(len(text) - PIECE + 1)}


def hits(log, secrets):
    """Return the lines of a log that contain a piece of a secret, in whichever case."""
    # To look for each piece in the whole log takes half as long as to match a pattern of all pieces.
    folded = log.casefold()
    found = [piece for piece in pieces(secrets) if piece in folded]
    return [line[:2000] for line in log.splitlines() if any(piece in line.casefold() for piece in found)]


def links(secret_key, key_id, fleet):
    """Return links as the service makes them."""
    signer = ReportLinkSigner(Config(secret_key=secret_key))
    return [
        signer.build_url("", fleet, str(MONDAY), file, key_id, 2**50).rpartition("/")[2] for file in ("csv", "page")
    ]


@pytest.mark.large
def test_no_secret_is_in_the_log_of_any_request_or_traceback(mongod, capfd, report):
    no_limit = dict.fromkeys(("rate_limit", "auth_failure_limit"), parse("1000000000 per minute"))
    service = InProcess(mongod, secret_key="secret", log_level="DEBUG", **no_limit)
    key = service.key("f1")
    secrets = [key, make_key(), *links("secret", mongod["keys"].find_one()["key_id"], "f1")]
    # Failing views put the whole request into an error: one of their own, and one of the store.
    service.app.view_functions["health.get_health"] = fail(RuntimeError)
    service.app.view_functions["docs.get_page"] = fail(ServerSelectionTimeoutError)
    sending, statuses = Sending(secrets, 1), Counter()
    for _ in range(IN_PROCESS):
        target = sending.rng.choice([f"{API}/healthz", f"{API}/docs"]) if sending.rng.random() < 0.1 else None
        response = call_app(
            service.app, target or sending.target(), sending.headers(), sending.method(), sending.body()
        )
        statuses[response.status] += 1
    log = capfd.readouterr().err
    assert len(log.splitlines()) >= IN_PROCESS
    assert {200, 400, 401, 403, 404, 405, 500, 503} <= statuses.keys()
    assert log.count("Traceback") > IN_PROCESS / 100
    report(f"secrets in {IN_PROCESS:,} requests, {statuses[500]:,} of them failing with a traceback: 0 in the log")
    assert hits(log, secrets) == []


def fail(error):
    """Return a view that raises an error with the whole request."""

    def view(**path):
        parts = [path, request.args, [value for _, value in request.headers], request.get_data()]
        try:
            raise ValueError(parts)
        except ValueError as cause:
            raise error(f"{request.method} {request.path} {parts}") from cause

    return view


def raw(sending):
    """Return a request as bytes; of ten, one is malformed."""
    pick, secret = sending.rng.choice, sending.rng.choice(sending.secrets)
    method, target, body = sending.method(), sending.target(), sending.body()
    if sending.rng.random() < 0.05:
        target = f"http://{secret}@{secret}.example{target}"
    version = "HTTP/1.1"
    lines = [f"{name}: {value}" for name, value in sending.headers()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    if sending.rng.random() < 0.1:
        method = pick([method, method, method.lower(), secret, f"{secret} {method}", ""])
        version = pick([version, f"HTTP/{secret}", secret, f"{version} {secret}", ""])
        target = pick([target, target, quote(target, safe=""), f"{target}\0", target * 200, f"/{secret} x"])
        lines.append(
            pick(
                [
                    f"{secret}",
                    f"{secret} : x",
                    f": {secret}",
                    f"Content-Length: {secret}",
                    f"Transfer-Encoding: {secret}",
                ]
                + [f"X: {secret}\0", f"X: {secret * 300}", f" {secret}", f"Expect: {secret}", f"{secret}\x7f: x"]
            )
        )
    return "\r\n".join([f"{method} {target} {version}", *lines, "", ""]).encode("latin-1") + body


def test_no_secret_is_in_the_log_of_the_running_service(store, make_service, report):
    fleet = f"{FLEET}-secrets"
    key, name = issue_key(store.uri, fleet), "resilience"
    with MongoClient(store.uri) as client:
        db = client[DATABASE]
        key_id = db["keys"].find_one({"fleet": fleet})["key_id"]
        # Invalid documents that are named like a key: of one a traceback is logged, of one its name.
        day = {"driver_id": key, "period": "day", "start_date": str(MONDAY), "trip_count": "broken"}
        for collection, broken in (
            ("driver_periods", day),
            ("reports", {"report_date": str(MONDAY), "trip_id": key}),
        ):
            db[collection].insert_one({"fleet": fleet, **broken}, bypass_document_validation=True)
    secrets = [key, make_key(), *links(name, key_id, fleet)]
    limits = dict.fromkeys(("RATE_LIMIT", "AUTH_FAILURE_LIMIT"), "1000000000 per minute")
    with make_service(MONGODB_URI=store.uri, LOG_LEVEL="DEBUG", SECRET_KEY=name, **limits) as service:
        statuses = flood(service.address, [Sending(secrets, seed) for seed in range(CLIENTS)])
        for _ in range(10):
            for path in (f"/driver/{key}/trips?start_date={MONDAY}", f"/report?report_time={MONDAY}T00:00:00"):
                statuses[service.get(path, key).status] += 1
    log = service.log_text()
    parts = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items(), key=str))
    report(f"secrets in {statuses.total():,} requests to the running service ({parts}): 0 in {len(log):,} bytes of log")
    assert {200, 400, 401, 404, 405, 500} <= statuses.keys()
    assert hits(log, secrets) == []


def flood(address, senders):
    """Send SERVED requests over a connection each; return the number of responses by status."""
    statuses = Counter()

    def run(sending):
        connection = Connection(address)
        for _ in range(SERVED // len(senders)):
            response = connection.send(raw(sending))
            statuses[response and response.status] += 1
        connection.close()

    threads = [threading.Thread(target=run, args=(sending,)) for sending in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses
