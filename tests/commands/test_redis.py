"""The rate limit, counted in Redis by the service as a process of its own."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import redis

from tests.served import serving, until
from tests.stores import issue_key

LIMIT, PERIOD_SECONDS = 60, 3600
# More than the limit, whatever passed uncounted.
CALLS = 100


@pytest.fixture(scope="module")
def live(redis_server, mongod_uri, tmp_path_factory):
    """The service as in production, and its database."""
    settings = {
        "RATE_LIMIT": f"{LIMIT} per hour",
        "RATELIMIT_STORAGE_URI": redis_server.uri,
        "LOG_LEVEL": "ERROR",
    }
    with serving(mongod_uri, tmp_path_factory.mktemp("live"), "redis", **settings) as found:
        yield found


@pytest.fixture
def call(live):
    """Make calls of a fleet with two keys, from eight threads: `call("f1", times=3)` returns the answers."""
    served, db = live

    def call(fleet, times=1):
        keys = [issue_key(db, fleet), issue_key(db, fleet)]

        def ask(number):
            headers = {"Authorization": f"APIKEY {keys[number % 2]}"}
            return httpx.get(f"http://{served.bind}/api/v1/drivers", headers=headers)

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(ask, range(times)))

    return call


def statuses(answers):
    return [answer.status_code for answer in answers]


def test_the_limit_is_exact_over_workers_threads_and_keys(call):
    found = statuses(call("busy", CALLS))
    assert (found.count(200), found.count(429)) == (LIMIT, CALLS - LIMIT)


def test_another_fleet_is_not_touched(call):
    call("greedy", LIMIT + 1)
    (answer,) = call("calm")
    assert (answer.status_code, answer.headers["X-RateLimit-Remaining"]) == (200, str(LIMIT - 1))


def test_every_refusal_says_how_long_to_wait(call):
    refused = call("told", CALLS)[-8:]
    assert statuses(refused) == [429] * 8
    assert all(1 <= int(answer.headers["Retry-After"]) <= PERIOD_SECONDS + 1 for answer in refused)


def test_while_it_is_down_calls_are_served_uncounted(call, redis_server):
    call("patient")
    redis_server.stop()
    try:
        answers = call("patient", CALLS)
    finally:
        redis_server.start()
    assert statuses(answers) == [200] * CALLS
    assert not any("X-RateLimit-Limit" in answer.headers for answer in answers)


def test_once_it_is_back_calls_are_counted(call, redis_server):
    call("back", LIMIT)
    redis_server.stop()
    redis_server.start()
    until(lambda: "X-RateLimit-Limit" in call("back")[0].headers)
    assert 429 in statuses(call("back", CALLS))


def test_scripts_that_it_has_lost_are_loaded_anew(call, redis_server):
    call("flushed")
    with redis.Redis(port=redis_server.port) as client:
        client.script_flush()
    answers = call("flushed", CALLS)
    assert statuses(answers).count(200) == LIMIT - 1
