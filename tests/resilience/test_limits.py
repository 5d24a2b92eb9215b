"""The rate limit, counted by four workers in a storage that they share."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.resilience.fleet import TODAY, issue_key
from tests.resilience.load import Client

LIMIT, PERIOD_SECONDS = 500, 20
THREADS, CALLS = 20, 1000
# Every request counts, whatever its result: a success, an error, an unknown path.
PATHS = ["/drivers", "/drivers?limit=0", f"/driver/nobody/trips?start_date={TODAY}", "/nothing"]
NOT_COUNTED = [
    ("GET", "/healthz", True),
    ("GET", "/drivers", False),
    ("OPTIONS", "/drivers", True),
    ("POST", "/drivers", True),
]


@pytest.fixture
def service(store, make_service):
    """A service of four workers."""
    settings = {"RATE_LIMIT": f"{LIMIT} per {PERIOD_SECONDS} seconds", "WEB_CONCURRENCY": "4", "MONGODB_URI": store.uri}
    with make_service(**settings, AUTH_FAILURE_LIMIT="1000000 per minute") as result:
        yield result


@pytest.fixture
def keys(store):
    """Two keys of a fleet that has made no calls yet, and one of another."""
    fleet = f"limited-{time.time_ns()}"
    return [issue_key(store.uri, fleet), issue_key(store.uri, fleet)], issue_key(store.uri, f"{fleet}-not")


def call(service, keys, calls):
    """Make the calls with the keys in turn, over one connection a thread; return the responses."""

    def run(thread):
        client = Client(service.address, keys[thread % len(keys)])
        result = [client.get(PATHS[n % len(PATHS)]) for n in range(thread, calls, THREADS)]
        client.close()
        return result

    with ThreadPoolExecutor(THREADS) as pool:
        return [response for result in pool.map(run, range(THREADS)) for response in result]


def not_counted(service, key):
    """Make calls that are not to count."""
    for method, path, with_key in NOT_COUNTED:
        headers = {"Authorization": f"APIKEY {key}"} if with_key else {}
        response = httpx.request(method, f"http://127.0.0.1:{service.port}/api/v1{path}", headers=headers)
        assert response.status_code in (200, 204, 401, 405)


def ended(response):
    return response.started + response.seconds


def test_exactly_the_limit_of_calls_passes_and_it_reopens_after_retry_after(service, keys, report):
    mine, other = keys
    not_counted(service, mine[0])
    responses = call(service, mine, CALLS)
    not_counted(service, mine[0])
    passed = [response for response in responses if response.status != 429]
    refused = [response for response in responses if response.status == 429]
    assert max(map(ended, responses)) < min(response.started for response in responses) + PERIOD_SECONDS, (
        "the machine is too slow"
    )

    assert Counter(response.status for response in passed).keys() == {200, 400, 404}
    assert (len(passed), len(refused)) == (LIMIT, CALLS - LIMIT)
    # It is read after the request was counted, and others may have been counted meanwhile.
    remaining = [int(response.headers["X-RateLimit-Remaining"]) for response in passed]
    assert (min(remaining), max(remaining) < LIMIT) == (0, True)
    for response in responses:
        check_headers(response)

    untouched = service.get("/drivers", other)
    assert (untouched.status, untouched.headers["X-RateLimit-Remaining"]) == (200, str(LIMIT - 1))

    # No request passes before the limit reopens; after Retry-After, requests pass.
    reopens_at, waited = max(ended(response) + wait(response) for response in refused), [refused[-1]]
    while waited[-1].status == 429:
        refused.append(waited[-1])
        time.sleep(0.2)
        waited.append(service.get("/drivers", mine[0]))
    reopened = waited[-1]
    assert reopened.started <= reopens_at + 1
    assert min(response.started for response in passed) + PERIOD_SECONDS <= ended(reopened)
    last = max(response.started for response in refused)
    assert all(ended(response) + wait(response) >= last for response in refused)
    report(
        f"rate limit of {LIMIT} in {PERIOD_SECONDS} s: {CALLS:,} requests of 2 keys over {THREADS} threads, 4 workers: "
        f"{len(passed)} passed; Retry-After ends within {reopens_at - ended(reopened):+.1f} s of when it reopened"
    )


def wait(response):
    """Return the seconds that a refusal says to wait."""
    seconds = int(response.headers["Retry-After"])
    assert 1 <= seconds <= PERIOD_SECONDS + 1
    return seconds


def check_headers(response):
    """Assert that the headers of the limit are there, and agree."""
    headers = response.headers
    remaining, reset = headers["X-RateLimit-Remaining"], int(headers["X-RateLimit-Reset"])
    state = re.fullmatch(r'"fleet";r=(\d+);t=(\d+)', headers["RateLimit"])
    assert headers["X-RateLimit-Limit"] == str(LIMIT)
    assert headers["RateLimit-Policy"] == f'"fleet";q={LIMIT};w={PERIOD_SECONDS}'
    assert state[1] == remaining
    assert ("Retry-After" in headers) is (response.status == 429)
    assert headers.get("Retry-After", state[2]) == state[2]
    # Of the clock, which may have been set since, more than the time of the response.
    assert abs(reset - time.time() - int(state[2])) <= PERIOD_SECONDS
