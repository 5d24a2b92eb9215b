"""driver-analytics mirror, from a service that sends what no such service sends."""

import contextlib
import gzip
import itertools
import json
import select

import pytest
from werkzeug.wrappers import Response

from schemas.trip import TripSummary
from scripts.ingest import http_client, mirror, mirrored_fleet, upstream
from tests.factories import days_ago, make_driver, make_trip
from tests.original_service import KEY, Original, drop, respond
from tests.service_process import measure

MAX_RESIDENT_MB = 1_000_000_000 >> 20
# The kinds of pages: the beginning of a path, and the option with which it is requested.
PAGES = [("drivers", ()), ("driver/", ()), ("changes", ("--follow",))]


@pytest.fixture
def original():
    """The original service, with a driver and a trip."""
    original = Original()
    original.load(make_trip(driver_id="d1", trip_id="t1"), drivers=[make_driver("d1")])
    return original


@pytest.fixture
def run(command, serve, original, clock, waits, no_authorities, monkeypatch, tmp_path):
    """Mirror the service with faults in requests for a path: `run("drivers", fault, ...)` returns click's Result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MIRROR_KEY", KEY)

    def run(path, *faults, words=()):
        original.faults += [(path, fault) for fault in faults]
        return command("mirror", "--from", serve(original), "--fleet", "f1", *words)

    return run


@pytest.fixture
def small_responses(monkeypatch):
    """Low limits on the size of a response."""
    monkeypatch.setattr(http_client, "MAX_RESPONSE_BYTES", 100_000)
    monkeypatch.setattr(http_client, "MAX_RESPONSE_VALUES", 1_000)


@pytest.fixture
def end(run):
    """Do the same with a service with which the command ends; return the one line that it prints."""

    def end(path, *faults, words=()):
        result = run(path, *faults, words=words)
        (line,) = result.stderr.splitlines()
        assert (result.exit_code, result.stdout, line.isprintable()) == (1, "", True)
        return line

    return end


def make_page(**members):
    """Return a function that responds with a page."""
    return respond(200, json.dumps(members))


@pytest.mark.parametrize(("path", "words"), PAGES)
@pytest.mark.parametrize("fault", [respond(200, " " * 100_001), respond(200, f"[{'[],' * 500}[]]")])
def test_a_page_that_is_too_large_ends_it(end, small_responses, path, words, fault):
    assert "responds with more than" in end(path, fault, words=words)


TOO_LARGE = {
    "0 MB": respond(200, " " * 100_001),
    "0 MB, gzip": respond(200, gzip.compress(b" " * 100_001), **{"Content-Encoding": "gzip"}),
    "1,000 values": respond(200, f"[{'[],' * 500}[]]"),
}


@pytest.mark.parametrize("limit", TOO_LARGE)
def test_a_trip_that_is_too_large_is_rejected_and_the_others_are_loaded(run, original, small_responses, limit):
    original.load(make_trip(driver_id="d1", trip_id="t2"))
    result = run("trip/", TOO_LARGE[limit])
    assert (result.exit_code, ": 2 loaded, 1 rejected" in result.stdout) == (1, True)
    assert f"responds with more than {limit.removesuffix(', gzip')} for" in result.stdout


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_a_content_coding_that_was_not_requested_is_not_unpacked(end, coding):
    fault = respond(200, gzip.compress(gzip.compress(b"{}")), **{"Content-Encoding": coding})
    assert f'"Content-Encoding {coding}"' in end("drivers", fault)


def test_a_gzip_response_is_read(run):
    content = gzip.compress(json.dumps({"drivers": [make_driver("packed")], "next_page": None}).encode())
    assert ": 1 loaded" in run("drivers", respond(200, content, **{"Content-Encoding": "GZIP"})).stdout


@pytest.mark.parametrize(("path", "name"), [("drivers", "drivers"), ("driver/", "trips")])
@pytest.mark.parametrize(
    ("get_next", "length", "words"),
    [
        (lambda page: page + 1, 1, "a list without an end"),
        (lambda page: page + 1, 0, "a list without an end"),
        (lambda page: page, 1, "no page of "),
        (lambda page: 1, 1, "no page of "),
        (lambda page: None, 101, "no page of "),
    ],
)
def test_a_list_that_does_not_end_ends_it(end, monkeypatch, path, name, get_next, length, words):
    def list_on(request):
        page = {name: [{}] * length, "next_page": get_next(int(request.args["page"]))}
        return Response(json.dumps(page))

    monkeypatch.setattr(upstream, "MAX_PAGES", 3)
    assert words in end(path, *[list_on] * 9)


def make_changes(cursor):
    """Return a function that responds with a page of the change feed, which is not the last one."""
    return make_page(changes=[], cursor=cursor, has_more=True)


@pytest.mark.parametrize(
    ("cursors", "limit"),
    [("aa", "MAX_PAGES"), ("abab", "MAX_PAGES"), ("abcdefgh", "MAX_PAGES"), ("abcdefgh", "MAX_EMPTY_PAGES")],
)
def test_a_cursor_that_does_not_move_on_ends_it(end, monkeypatch, cursors, limit):
    monkeypatch.setattr(upstream, limit, 5)
    line = end("changes", *map(make_changes, cursors), words=["--follow"])
    assert "has a change feed whose cursor does not move on" in line


@pytest.mark.parametrize(
    "faults",
    [
        [make_changes("a"), respond(400)],
        [make_changes("")],
        [make_changes("c" * 8_001)],
        [make_page(changes=[0] * 501, cursor="a", has_more=True)],
        [make_page(changes={}, cursor="a", has_more=True)],
        [make_page(cursor="a", has_more=True)],
    ],
)
def test_a_change_feed_that_cannot_be_read_counts_as_none(run, waits, faults):
    assert run("changes", *faults, words=["--follow"]).exit_code == 0
    assert waits == [mirror.LISTS_SECONDS]


SUMMARY = {name: make_trip(driver_id="d1", trip_id="new")[name] for name in TripSummary().fields}
CHANGE = {"trip_id": "new", "driver_id": "d1", "tracking_id": None, "deleted": False, "trip": SUMMARY}
INVALID_CHANGES = [None, {}, {**CHANGE, "trip": None}, {**CHANGE, "trip_id": "old"}, {**CHANGE, "tracking_id": 1}]


def test_an_invalid_change_is_rejected_and_the_others_are_applied(run, original, mongod, tmp_path):
    trip = make_page(trips=[make_trip(driver_id="d1", trip_id="new")])
    original.faults.append(("trip/trip_id/new", trip))
    page = make_page(changes=[*INVALID_CHANGES, CHANGE], cursor="a", has_more=False)
    assert run("changes", page, words=["--follow"]).exit_code == 0
    assert mongod.trips.distinct("trip_id") == ["new", "t1"]
    rows = [json.loads(line) for line in (tmp_path / "mirror.rejected.ndjson").read_text().splitlines()]
    assert [json.loads(row["input"]) for row in rows] == INVALID_CHANGES


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n"])
def test_a_response_that_trickles_in_is_given_up(end, monkeypatch, begin):
    def trickle(request):
        connection = request.environ["werkzeug.socket"]
        with contextlib.suppress(OSError):
            connection.sendall(begin)
            while not select.select([connection], [], [], 0.01)[0]:
                connection.sendall(b" ")
        return Response()

    monkeypatch.setattr(http_client, "RESPONSE_SECONDS", 0.05)
    assert "did not respond for 30 seconds: TimeoutError" in end("drivers", *[trickle] * 9)


PUT_OFF = respond(429, **{"Retry-After": "3600"})


def test_a_service_that_does_nothing_but_ask_to_wait_is_given_up_after_a_day(run, waits):
    assert "asks to wait for more than a day (status 429)" in run("trip/", *[PUT_OFF] * 30).stderr
    assert sum(waits) == 25 * 3_600


WAIT = respond(429, **{"Retry-After": "40"})


def test_a_service_that_fails_four_times_ends_it_whatever_is_between(end):
    assert "status 500 for /api/v1/drivers" in end("drivers", *[WAIT, drop, respond(500)] * 4, respond(400))


def test_a_wait_doubles_if_the_service_does_not_say_how_long(run, waits):
    run("drivers", *[respond(503)] * 6)
    assert waits == [1, 2, 4, 8, 15, 15]


@pytest.mark.parametrize(("module", "limit"), [(mirrored_fleet, "MAX_DRIVERS"), (mirror, "MAX_REJECTS")])
def test_more_drivers_or_rejected_records_than_fit_in_memory_end_it(end, monkeypatch, module, limit):
    monkeypatch.setattr(module, limit, 2)
    drivers = [make_driver(f"d{number}", email=number) for number in range(3)]
    line = end("drivers", make_page(drivers=drivers, next_page=None))
    assert ("more than 2 drivers" in line, "More than 2 records are invalid" in line).count(True) == 1


def send_escapes(request):
    """Send what is no response, but clears a terminal."""
    request.environ["werkzeug.socket"].sendall(b"\x1b[2J\r\n\r\n")
    return Response()


@pytest.mark.parametrize(
    "fault", [respond(400, "\x1b[2J\x9b"), respond(301, Location="/\x9b2J"), respond(200, "\x1b"), send_escapes]
)
def test_what_it_quotes_has_no_control_characters(end, fault):
    end("drivers", *[fault] * 9)


def make_junk(size):
    """Return JSON of a size in bytes, with as many values as a response may have, each as large as possible."""
    count = itertools.islice(itertools.count(), (http_client.MAX_RESPONSE_VALUES - 1_000) // 2)
    values = ",".join(f'{{"\U0001f600{number}":"\U0001f600{number}"}}' for number in count)
    return f'[{values},"{"a" * (size - len(values.encode()) - 6)}"]'


@pytest.fixture
def measured(serve, original, mongod_uri, mongod, tmp_path):
    """Mirror the service with the real command; return its exit status and its highest resident memory in MB."""

    def measured():
        settings = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": mongod.name, "MIRROR_KEY": KEY}
        words = ["mirror", "--from", serve(original), "--fleet", "f1"]
        status, most, _ = measure(words, tmp_path, **settings)
        return status, most

    return measured


@pytest.mark.large
def test_a_response_that_unpacks_to_gigabytes_takes_bounded_memory(measured, original, report):
    bomb = gzip.compress(b" " * 2_000_000_000, 1)
    original.faults.append(("drivers", respond(200, bomb, **{"Content-Encoding": "gzip"})))
    status, most = measured()
    report(f"mirror of a response of 2 GB: {most} MB resident")
    assert (status, most < MAX_RESIDENT_MB) == (1, True)


@pytest.mark.large
def test_the_largest_responses_take_bounded_memory(measured, original, mongod, report):
    junk = respond(200, f'{{"trips":[{{"a":{make_junk(31_900_000)}}}]}}')
    place = dict.fromkeys(("latitude", "longitude", "course"), 1.2345678901234567)
    trail = [{"timestamp": 1_000_000_000_000, **place}] * 100_000
    for number in range(0, 12, 2):
        original.load(*[make_trip(days_ago(2), "d1", trip_id=f"large{number + n:02}") for n in range(2)])
        page = {"trips": [{**original.trips[f"large{number:02}"], "trail_path": trail}]}
        large = respond(200, json.dumps(page, separators=(",", ":")))
        original.faults += [(f"trip/trip_id/large{number:02}", large), (f"trip/trip_id/large{number + 1:02}", junk)]
    status, most = measured()
    report(f"mirror of trips of 11 MB and responses of 32 MB: {most} MB resident")
    stored = mongod.trips.count_documents({"trail_path.9": {"$exists": True}})
    assert (status, most < MAX_RESIDENT_MB, stored) == (1, True, 6)


def test_a_trip_in_place_of_another_one_is_rejected(run):
    result = run("trip/", make_page(trips=[make_trip(driver_id="d1", trip_id="t2")]))
    assert (result.exit_code, ": 1 loaded, 1 rejected" in result.stdout, "another trip" in result.stdout) == (
        1,
        True,
        True,
    )


def test_no_cookie_is_kept(run, original):
    def note_cookies(request):
        cookies.append(request.headers.get("Cookie"))
        return Response("{}", 404)

    cookies = list[str | None]()
    original.faults.append(("driver/", note_cookies))
    page = json.dumps({"drivers": [make_driver("d1")], "next_page": None})
    run("drivers", respond(200, page, **{"Set-Cookie": "a=b"}))
    assert cookies == [None]


@pytest.mark.parametrize(
    "faults", [[WAIT] * 3 + [respond(500)] * 3, [drop, WAIT, drop], [respond(502), WAIT, respond(502)]]
)
def test_a_service_that_asks_to_wait_responds_and_does_not_fail(run, faults):
    assert ": 2 loaded" in run("drivers", *faults).stdout


def test_a_service_that_is_followed_may_ask_to_wait_for_longer(run, waits):
    assert run("trip/", *[PUT_OFF] * 30, words=["--follow"]).exit_code == 0
    assert waits.count(3_600) == 30
