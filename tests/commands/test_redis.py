"""The rate limit, counted in Redis by the service as a process of its own."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import redis

from tests.service_process import run_service, wait_until
from tests.store_contents import issue_key

pytestmark = pytest.mark.large

LIMIT, PERIOD_SECONDS = 30, 3600
# More than the limit, whatever passed uncounted.
CALLS = 50


@pytest.fixture(scope="module")
def live(redis_server, mongod_uri, tmp_path_factory):
    """The service as in production, and its database."""
    settings = {
        "RATE_LIMIT": f"{LIMIT} per hour",
        "RATELIMIT_STORAGE_URI": redis_server.uri,
        "LOG_LEVEL": "ERROR",
    }
    with run_service(mongod_uri, tmp_path_factory.mktemp("live"), "redis", **settings) as result:
        yield result


@pytest.fixture
def call(live):
    """Make calls of a fleet with two keys, from eight threads: `call("f1", times=3)` returns the responses."""
    process, db = live

    def call(fleet, times=1):
        keys = [issue_key(db, fleet), issue_key(db, fleet)]

        def get_drivers(number):
            headers = {"Authorization": f"APIKEY {keys[number % 2]}"}
            return client.get(f"http://{process.bind}/api/v1/drivers", headers=headers)

        # A connection a request reaches every worker.
        limits = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(limits=limits) as client, ThreadPoolExecutor(8) as pool:
            return list(pool.map(get_drivers, range(times)))

    return call


def statuses(responses):
    return [response.status_code for response in responses]


def test_the_limit_is_exact_over_workers_threads_and_keys(call):
    result = statuses(call("busy", CALLS))
    assert (result.count(200), result.count(429)) == (LIMIT, CALLS - LIMIT)


def test_while_it_is_down_calls_are_served_uncounted(call, redis_server):
    call("patient")
    redis_server.stop()
    try:
        responses = call("patient", CALLS)
    finally:
        redis_server.start()
    assert statuses(responses) == [200] * CALLS
    assert not any("X-RateLimit-Limit" in response.headers for response in responses)


def test_once_it_is_back_calls_are_counted(call, redis_server):
    call("back", LIMIT)
    redis_server.stop()
    redis_server.start()
    wait_until(lambda: "X-RateLimit-Limit" in call("back")[0].headers)
    assert 429 in statuses(call("back", CALLS))


def test_scripts_that_redis_lost_are_loaded_again(call, redis_server):
    call("flushed")
    with redis.Redis(port=redis_server.port) as client:
        client.script_flush()
    responses = call("flushed", CALLS)
    assert statuses(responses).count(200) == LIMIT - 1
