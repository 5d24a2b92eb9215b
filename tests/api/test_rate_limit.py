"""The rate limit."""

import time

import pytest
import redis
from limits import parse


@pytest.fixture
def limited(make_service):
    return make_service(rate_limit=parse("3 per minute"))


def test_calls_past_the_limit_are_refused_until_it_reopens(limited, clock):
    *responses, refused = [limited.get("/drivers") for _ in range(4)]
    assert {response.status_code for response in responses} == {200}
    assert (refused.status_code, refused.json["error"]) == (429, "RateLimitExceeded")
    assert (refused.headers["X-RateLimit-Remaining"], refused.headers["RateLimit"][:11]) == ("0", '"fleet";r=0')
    clock.shift(int(refused.headers["Retry-After"]))
    assert limited.get("/drivers").status_code == 200


def test_past_the_limit_of_a_fleet_path_and_parameters_do_not_count_and_another_fleet_is_served(limited):
    for _ in range(3):
        limited.get("/drivers")
    assert [limited.get(path).status_code for path in ("/nothing", "/drivers?limit=0")] == [429, 429]
    assert limited.get("/drivers", fleet="f2").status_code == 200


def test_the_keys_of_a_fleet_share_its_limit(limited):
    limited.get("/drivers")
    limited.keys.clear()
    assert limited.get("/drivers").headers["X-RateLimit-Remaining"] == "1"


@pytest.mark.parametrize(
    "path", ["/nothing", "/drivers?limit=0", "/driver/nobody/trips?start_date=2026-03-01", "/drivers"]
)
def test_every_authenticated_call_counts_whatever_its_status(limited, path):
    for _ in range(3):
        limited.get(path)
    assert limited.get(path).status_code == 429


def test_other_methods_health_checks_and_failed_authentication_do_not_count(limited):
    for _ in range(4):
        limited.get("/drivers", method="OPTIONS")
        limited.get("/drivers", method="POST")
        limited.get("/healthz")
        limited.get("/drivers", fleet=None)
    assert limited.get("/drivers").headers["X-RateLimit-Remaining"] == "2"


def test_every_authenticated_response_has_the_rate_limit_status(limited, clock):
    limited.get("/drivers")
    clock.shift(10.5)
    headers = limited.get("/nothing").headers
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == ("3", "1")
    assert headers["RateLimit-Policy"] == '"fleet";q=3;w=60'
    wait = int(headers["X-RateLimit-Reset"]) - 1_773_835_210.5
    assert 49.5 <= wait <= 50.5
    assert headers["RateLimit"] == '"fleet";r=1;t=50'
    assert "Retry-After" not in headers


def test_a_response_without_a_valid_key_has_no_rate_limit_status(limited):
    assert not [name for name in limited.get("/drivers", fleet=None).headers.keys() if "ratelimit" in name.lower()]


def test_a_window_in_redis_closes_when_its_counter_expires_and_no_request_prolongs_it(make_service, redis_server):
    service = make_service(rate_limit=parse("3 per hour"), ratelimit_storage_uri=redis_server.uri)
    service.get("/drivers", fleet="in-redis")
    with redis.Redis.from_url(redis_server.uri) as client:
        (counter,) = client.keys("*in-redis*")
        client.expire(counter, 100)
        headers = service.get("/drivers", fleet="in-redis").headers
        assert 0 < client.ttl(counter) <= 100
    before, seconds = headers["RateLimit"].split("t=")
    assert (before, 0 < int(seconds) <= 100) == ('"fleet";r=1;', True)
    assert 0 < int(headers["X-RateLimit-Reset"]) - time.time() <= 101


def test_a_failing_storage_is_logged_once_a_minute(make_service, log):
    service = make_service(ratelimit_storage_uri="redis://127.0.0.1:1")
    for fleet in ("f1", None, "f1", "f1"):
        service.get("/drivers", fleet=fleet)
    (line,) = (line for line in log() if line.get("logger") == "flask-limiter")
    assert (line["level"], line["event"]) == ("error", "Redis failed: requests are not counted")
    assert "Connection refused" in line["exception"]


def test_a_client_without_a_forwarded_address_is_limited(make_service):
    service = make_service(auth_failure_limit=parse("1 per minute"))
    client = service.app.test_client()
    statuses = [client.get("/api/v1/drivers", environ_base={"REMOTE_ADDR": ""}).status_code for _ in range(2)]
    assert statuses == [401, 429]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("1 per 10 second", "1 request per 10 seconds is exceeded. Try again in 10 seconds."),
        ("2 per second", "2 requests per second is exceeded. Try again in 1 second."),
    ],
)
def test_the_message_of_a_429_says_which_limit_and_how_long_to_wait(make_service, limit, expected):
    service = make_service(rate_limit=parse(limit), auth_failure_limit=parse(limit))
    messages = [[service.get("/drivers", fleet=fleet) for _ in range(3)][-1].json["message"] for fleet in ("f1", None)]
    assert messages[0] == f"The fleet's limit of {expected}"
    assert messages[1] == f"The limit of {expected.replace(' is', ' without a valid key is')}"


def test_requests_succeed_while_the_storage_is_down(make_service):
    service = make_service(ratelimit_storage_uri="redis://127.0.0.1:1")
    assert [service.get("/drivers", fleet=fleet).status_code for fleet in ("f1", None)] == [200, 401]
