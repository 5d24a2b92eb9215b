"""The rate limit, counted in Redis by two workers."""

import pytest

from tests.service_process import run_service, wait_until
from tests.store_contents import issue_key

LIMIT = 30


@pytest.mark.large
def test_calls_are_served_uncounted_while_redis_is_down_and_counted_again_once_it_is_back(
    redis_server, mongod_uri, tmp_path
):
    settings = {"RATE_LIMIT": f"{LIMIT} per hour", "RATELIMIT_STORAGE_URI": redis_server.uri, "LOG_LEVEL": "ERROR"}
    with run_service(mongod_uri, tmp_path, "redis", **settings) as (process, db):
        key = issue_key(db, "f1")

        def get_statuses():
            return [process.get("/drivers", key)[0] for _ in range(LIMIT + 1)]

        assert get_statuses() == [200] * LIMIT + [429]
        redis_server.stop()
        try:
            assert get_statuses() == [200] * (LIMIT + 1)
        finally:
            redis_server.start()
        wait_until(lambda: 429 in get_statuses())
