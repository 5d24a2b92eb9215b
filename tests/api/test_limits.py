"""The rate limit."""

import pytest
from limits import parse
from limits.storage import MemoryStorage

from app.limits import MAX_KNOWN_WINDOWS, Limiter


@pytest.fixture
def limited(make_service):
    return make_service(rate_limit=parse("3 per minute"))


def test_calls_past_the_limit_are_refused_until_it_reopens(limited, clock):
    answers = [limited.get("/drivers") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json["error"] == "RateLimitExceeded"
    clock.shift(int(answers[-1].headers["Retry-After"]))
    assert limited.get("/drivers").status_code == 200


def test_another_fleet_is_not_touched(limited):
    for _ in range(4):
        limited.get("/drivers")
    assert limited.get("/drivers", fleet="f2").status_code == 200


def test_the_keys_of_a_fleet_share_its_limit(limited):
    limited.get("/drivers")
    limited._keys.clear()
    assert limited.get("/drivers").headers["X-RateLimit-Remaining"] == "1"


@pytest.mark.parametrize(
    "path", ["/nothing", "/drivers?limit=0", "/driver/nobody/trips?start_date=2026-03-01", "/drivers"]
)
def test_every_authenticated_call_counts_whatever_its_status(limited, path):
    for _ in range(3):
        limited.get(path)
    assert limited.get(path).status_code == 429


@pytest.mark.parametrize("method", ["OPTIONS", "POST"])
def test_other_methods_do_not_count(limited, method):
    for _ in range(5):
        limited.get("/drivers", method=method)
    assert limited.get("/drivers").headers["X-RateLimit-Remaining"] == "2"


def test_health_checks_and_failed_authentication_do_not_count(limited):
    for _ in range(5):
        limited.get("/healthz")
        limited.get("/drivers", fleet=None)
    assert limited.get("/drivers").headers["X-RateLimit-Remaining"] == "2"


def test_every_authenticated_answer_says_where_the_fleet_stands(limited, clock):
    limited.get("/drivers")
    clock.shift(10.5)
    headers = limited.get("/nothing").headers
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == ("3", "1")
    assert headers["RateLimit-Policy"] == '"fleet";q=3;w=60'
    wait = int(headers["X-RateLimit-Reset"]) - 1_773_835_210.5
    assert 49.5 <= wait <= 50.5
    assert headers["RateLimit"] == '"fleet";r=1;t=50'
    assert "Retry-After" not in headers


def test_an_answer_without_a_valid_key_says_nothing_of_limits(limited):
    assert not [name for name in limited.get("/drivers", fleet=None).headers.keys() if "ratelimit" in name.lower()]


def test_refusals_carry_the_headers_too(limited):
    for _ in range(3):
        limited.get("/drivers")
    headers = limited.get("/drivers").headers
    assert (headers["X-RateLimit-Remaining"], headers["RateLimit"][:11]) == ("0", '"fleet";r=0')
    assert int(headers["Retry-After"]) >= 60


def test_a_call_over_the_limit_is_refused_before_its_path_or_parameters_are_looked_at(limited):
    for _ in range(3):
        limited.get("/drivers")
    assert [limited.get(path).status_code for path in ("/nothing", "/drivers?limit=0")] == [429, 429]


def test_while_the_storage_is_down_the_service_goes_on(make_service):
    service = make_service(ratelimit_storage_uri="redis://127.0.0.1:1")
    assert [service.get("/drivers", fleet=fleet).status_code for fleet in ("f1", None)] == [200, 401]


class Storage(MemoryStorage):
    """A storage that records what it is asked."""

    STORAGE_SCHEME = ["recorded-memory"]

    def __init__(self):
        super().__init__()
        self.asked = []

    def incr(self, key, expiry, amount=1):
        self.asked.append("incr")
        return super().incr(key, expiry, amount)

    def get_expiry(self, key):
        self.asked.append("get_expiry")
        return super().get_expiry(key)


LIMIT = parse("3 per minute")


@pytest.fixture
def storage(clock):
    return Storage()


def test_a_call_costs_the_worker_that_opened_the_window_one_operation(storage):
    worker = Limiter(storage)
    told = [worker.count(LIMIT, "f1") for _ in range(4)]
    assert [(call.within, call.remaining) for call in told] == [(True, 2), (True, 1), (True, 0), (False, 0)]
    assert storage.asked == ["incr"] * 4


def test_another_worker_asks_once_in_a_window_when_it_closes(storage, clock):
    opener, other = Limiter(storage), Limiter(storage)
    opened = opener.count(LIMIT, "f1")
    clock.shift(10)
    told = [other.count(LIMIT, "f1") for _ in range(2)]
    assert {call.reset_at for call in told} == {opened.reset_at}
    assert storage.asked == ["incr", "incr", "get_expiry", "incr"]


@pytest.mark.parametrize("seconds", [60, 150])
def test_a_window_that_another_worker_opened_anew_is_asked_for_anew(storage, clock, seconds):
    opener, other = Limiter(storage), Limiter(storage)
    for worker in (opener, other, other):
        worker.count(LIMIT, "f1")
    clock.shift(seconds)
    assert other.count(LIMIT, "f1").wait_seconds == opener.count(LIMIT, "f1").wait_seconds >= 60


def test_counts_that_were_lost_open_a_window_of_their_own(storage, clock):
    opener, other = Limiter(storage), Limiter(storage)
    for _ in range(3):
        opener.count(LIMIT, "f1")
    storage.reset()
    clock.shift(30)
    other.count(LIMIT, "f1")
    assert opener.count(LIMIT, "f1").wait_seconds >= 60


def test_the_windows_that_a_worker_knows_are_bounded(storage):
    worker = Limiter(storage)
    for number in range(MAX_KNOWN_WINDOWS + 1):
        worker.count(LIMIT, str(number))
    assert len(worker._windows) <= MAX_KNOWN_WINDOWS


def test_a_storage_that_fails_after_the_count_costs_the_headers_alone(limited, monkeypatch):
    def get_expiry(key):
        raise ConnectionError

    limiter = limited.app.extensions["rate_limiter"]
    limited.get("/drivers")
    limiter._windows.clear()
    monkeypatch.setattr(limiter.storage, "get_expiry", get_expiry)
    answer = limited.get("/drivers")
    assert answer.status_code == 200
    assert "X-RateLimit-Limit" not in answer.headers


def test_a_storage_that_fails_is_told_of_once_a_minute(make_service, log):
    service = make_service(ratelimit_storage_uri="redis://127.0.0.1:1")
    for fleet in ("f1", None, "f1", "f1"):
        service.get("/drivers", fleet=fleet)
    assert len([line for line in log() if "the rate limit's storage fails" in line["event"]]) == 1
