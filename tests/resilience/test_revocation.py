"""A key is revoked while every worker gets requests with it."""

import time

import pytest
from pymongo import MongoClient

from tests.resilience.fleet import FLEET, issue_key
from tests.resilience.load import Load, Request
from tests.resilience.processes import DATABASE, run_command
from tests.service_process import wait_until

WORKERS, CLIENTS = 4, 32
HOLD_SECONDS = 5
ASK = Request("/drivers?limit=100")


@pytest.fixture
def service(store, make_service):
    """A service of several workers, with a high limit for failed authentication."""
    settings = {"WEB_CONCURRENCY": str(WORKERS), "AUTH_FAILURE_LIMIT": "1000000000 per minute"}
    with make_service(MONGODB_URI=store.uri, **settings) as result:
        wait_until(lambda: len(result.children()) == WORKERS)
        yield result


@pytest.fixture
def load(store, service):
    """Clients with a key of their own, and the id of the key; one connection a request, to reach each worker."""
    key = issue_key(store.uri)
    key_id = run_command("keys", "list", "--fleet", FLEET, uri=store.uri).splitlines()[-1].partition("\t")[0]
    expected = {ASK: store.expected[ASK]}
    with Load(service.address, key, expected, clients=CLIENTS, keep_alive=False, pause=0.02) as load:
        wait_until(lambda: len(load.results) > 10 * CLIENTS)
        yield load, key_id


def last_let_in(results, since):
    """Return how long after a moment the last accepted request was sent, in seconds."""
    return max((result.started - since for result in results if result.failure is None), default=0.0)


def test_a_revoked_key_is_refused_by_every_worker_in_time(store, load, report):
    generator, key_id = load
    run_command("keys", "revoke", key_id, uri=store.uri)
    revoked = time.monotonic()
    generator.run_for(HOLD_SECONDS + 1)
    results = generator.stop()
    after = last_let_in(results, revoked)
    report(f"key revoked: {len(results):,} requests to {WORKERS} workers; let in for {max(0, after):.1f} s more")
    assert after < HOLD_SECONDS
    assert {result.failure for result in results} == {None, "401 Unauthorized"}


def test_a_key_that_expires_is_refused_by_every_worker_at_once(store, load, report):
    generator, key_id = load
    expires_at = time.time() + 2 * HOLD_SECONDS
    with MongoClient(store.uri) as client:
        result = client[DATABASE]["keys"].update_one(
            {"key_id": key_id}, {"$set": {"expires_at": int(expires_at * 1000)}}
        )
        assert result.modified_count == 1
    expired = time.monotonic() + expires_at - time.time()
    generator.run_for(2 * HOLD_SECONDS + 1)
    results = generator.stop()
    after = last_let_in(results, expired)
    report(
        f"key expired: {len(results):,} requests to {WORKERS} workers; the last let in was sent {-after:.2f} s before"
    )
    # Its milliseconds are whole.
    assert after < 0.01
    assert {result.failure for result in results} == {None, "401 Unauthorized"}


@pytest.mark.parametrize("path", ["/drivers", "/nothing", "/healthz"])
def test_no_response_reveals_the_version_of_the_server(service, path):
    assert service.get(path).headers.get("Server", "gunicorn") == "gunicorn"
