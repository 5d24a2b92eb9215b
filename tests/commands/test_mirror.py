"""driver-analytics mirror, from a stand-in for the original service and from another instance of this one."""

import functools
import json
import signal
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from pymongo import MongoClient

from app.store import Store
from schemas.periods import midnight
from scripts.ingest import loader, mirror
from scripts.lifecycle.erase import erase_driver
from scripts.materialize.fleet_settings import set_settings
from scripts.mongodb.collections import prepare_collections
from tests.conftest import Service
from tests.factories import make_driver, make_event, make_trip
from tests.fleet_states import differences, empty
from tests.original_service import KEY, Original, drop, respond
from tests.service_process import COMMAND, ServiceProcess, free_port
from tests.store_contents import everything, load

TRIPS = [
    make_trip(
        f"2026-03-{1 + n % 15:02}T08:00", f"d/{n % 3}", trip_id=f"t{n}/é", distance_miles=n / 7, events=[make_event(n)]
    )
    for n in range(12)
]
DRIVERS = [
    make_driver(f"d/{n}", alias=f"Ä {n}", first_travel_date="2025-01-01", last_travel_date="2026-03-17")
    for n in range(4)
]
FIRST_DATE = "2025-09-18"
FEED, LISTS = mirror.FEED_SECONDS, mirror.LISTS_SECONDS


@pytest.fixture
def original(clock):
    """The original service, with a few drivers and trips."""
    original = Original()
    original.load(*TRIPS, drivers=DRIVERS)
    return original


@pytest.fixture
def other(mongod_uri, clock):
    """Another instance of this service, with the same drivers and trips."""
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["other"]))
        load(client["other"], *TRIPS, drivers=DRIVERS)
        yield Service(client["other"])
        client.drop_database("other")


@pytest.fixture
def here(mongod, clock):
    """This service."""
    return Service(mongod)


@pytest.fixture
def run(command, serve, waits, no_authorities, monkeypatch, tmp_path):
    """Mirror a service: `run(original)` returns what the command printed and its exit status."""
    monkeypatch.chdir(tmp_path)

    @functools.cache
    def get_url(service):
        return serve(service)

    def run(service, *words, status=0, url=None, key=None):
        monkeypatch.setenv("MIRROR_KEY", key or (KEY if isinstance(service, Original) else service.key("f1")))
        result = command("mirror", "--from", url or get_url(service), "--fleet", "f1", *words)
        assert result.exit_code == status, result.output
        return result

    return run


def assert_same(one, other, trips=TRIPS, drivers=DRIVERS):
    """Compare the responses for drivers and trips, and if both have them, for summaries."""
    ids = {trip["trip_id"] for trip in trips}
    paths = ["/drivers", *(f"/trip/trip_id/{quote(trip_id, safe='')}" for trip_id in ids)]
    for driver in drivers:
        driver_id = quote(driver["driver_id"], safe="")
        paths += [f"/driver/{driver_id}/trips?start_date={date}" for date in (FIRST_DATE, "2026-03-09")]
        if isinstance(one, Service):
            days = [f"daily?start_date=2026-03-{day:02}" for day in range(1, 16)]
            windows = [*days, "weekly?start_date=2026-03-02", "weekly?start_date=2026-03-09"]
            paths += [f"/driver-aggregate/{window}&driver_id={driver_id}" for window in windows]
    for path in paths:
        assert one.get(path).json == other.get(path).json, path


def read_rejects(tmp_path):
    return [json.loads(line) for line in (tmp_path / "mirror.rejected.ndjson").read_text().splitlines()]


def test_another_instance_is_copied_and_a_second_run_writes_nothing(run, other, here):
    assert run(other).stdout.endswith(": 16 loaded, 0 rejected\n")
    assert_same(other, here)
    before = everything(here.db), here.store.fleets.find_one()
    assert run(other).stdout.endswith(": 0 loaded, 0 rejected\n")
    assert (everything(here.db), here.store.fleets.find_one()) == before
    assert differences(here.db) == []


def test_the_original_service_is_copied_with_the_fewest_requests(run, original, here):
    original.load(
        *[make_trip(trip_id=f"m{n}", driver_id="d/1") for n in range(110)],
        make_trip(f"{FIRST_DATE}T00:00", "d/1", trip_id="first"),
        make_trip("2025-09-17T23:59", "d/1", trip_id="too old"),
        drivers=[make_driver(f"more{n:03}") for n in range(100)],
    )
    result = run(original, "--since", "2020-01-01")
    assert (result.stderr.splitlines()[-1], original.counts()) == (
        "f1: a new fleet",
        "drivers=2 fleet=1 trips=105 trip=123",
    )
    assert here.get("/trip/trip_id/too%20old").json["count"] == 0
    assert_same(original, here, [*TRIPS, {"trip_id": "first"}], [])
    run(original)
    assert original.counts() == "drivers=2 fleet=1 trips=105"


@pytest.mark.parametrize("zones", [("UTC", "America/Denver"), ("Pacific/Kiritimati", "UTC"), ("Pacific/Niue", "UTC")])
@pytest.mark.parametrize("today", ["2026-03-18T00:30Z", "2026-03-18T23:30Z"])
def test_each_service_has_dates_in_its_own_time_zone(run, other, here, clock, zones, today):
    clock.move_to(today)
    for service, zone in zip((other, here), zones, strict=True):
        set_settings(service.store, "f1", time_zone=zone)
    hours = [make_trip(f"2026-03-09T{hour:02}:30", "d/1", trip_id=f"h{hour}") for hour in range(24)]
    load(other.db, *hours)
    run(other)
    assert differences(here.db) == []
    assert here.db.trips.count_documents({}) == len(TRIPS) + len(hours)
    empty(here.db)
    set_settings(here.store, "f1", time_zone=zones[1])
    run(other, "--since", "2026-03-09")
    first = here.db.trips.find_one(sort=[("trip_start_time", 1)])
    expected = [
        trip for trip in (*TRIPS, *hours) if trip["trip_start_time"] >= midnight("2026-03-09", ZoneInfo(zones[1]))
    ]
    assert here.db.trips.count_documents({}) == len(expected)
    assert first["trip_start_time"] == min(trip["trip_start_time"] for trip in expected)


def test_what_changed_is_replaced_what_is_gone_stays_and_a_tracking_id_is_kept(run, original, here):
    load(here.db, {**TRIPS[0], "tracking_id": "job"}, TRIPS[1])
    del original.trips["t1/é"]
    moved = {**TRIPS[2], "driver_id": "d/0", "trip_start_time": TRIPS[2]["trip_start_time"] - 86_400_000}
    original.load({**TRIPS[0], "distance_miles": 9.5}, moved, drivers=[{**DRIVERS[3], "email": "new@example.com"}])
    run(original)
    assert [trip["tracking_id"] for trip in here.db.trips.find({"distance_miles": 9.5})] == ["job"]
    assert here.get("/trip/trip_id/t1%2F%C3%A9").json["count"] == 1
    assert_same(original, here, [TRIPS[0], TRIPS[2]], [DRIVERS[3]])
    assert differences(here.db) == []


def test_the_groups_of_the_other_service_are_left_out_and_those_set_here_stay(run, original, here):
    load(here.db, drivers=[make_driver("d/1", groups=["here"])])
    for alias in "AB":
        original.load(drivers=[make_driver("d/1", alias=alias, groups=["there"])])
        run(original)
        assert f'"alias":"{alias}"' in here.db.driver_periods.find_one({"groups": ["here"]})["json"]
    assert differences(here.db) == []


def test_what_disappears_while_it_is_read_is_skipped(run, original, here):
    empty = json.dumps({"count": 0, "current_page": 1, "next_page": None, "limit": 5, "trips": []})
    original.faults += [("driver/d%2F1/", respond(404)), ("trip/", respond(404)), ("trip/", respond(200, empty))]
    assert run(original).stdout.endswith(": 10 loaded, 0 rejected\n")
    assert run(original).stdout.endswith(": 6 loaded, 0 rejected\n")
    assert_same(original, here)


# An event as another service may send it, and as it is stored.
ODD_EVENT = {**make_event(1773129600000), "event_type": 2.0, "event_data": None, "severity": {"level": "high"}}
EVENT = {**make_event(1773129600000), "event_type": 2, "event_data": {}}
LEFT_OUT = ": Left out what this service does not know: "


def test_unknown_fields_and_events_are_left_out_and_named_once_and_whole_numbers_are_integers(run, original, here):
    trip = make_trip("2026-03-10T08:00", "d/0", trip_id="odd", insurance_period=1, events=[EVENT])
    odd = {"fuel_liters": 3.5, **trip, "insurance_period": 1.0, "trip_start_time": 1773129600000.0}
    odd |= {"events": [ODD_EVENT, {**ODD_EVENT, "event_type": 5.0, "event_name": "HARD_CORNERING"}]}
    odd |= {"event_summary": {**trip["event_summary"], "hard_brake_count": 0.0, "x": 1}}
    drivers = [make_driver("d/0", nickname="x"), make_driver("d/1", nickname="y")]
    original.load(odd, {**odd, "trip_id": "odd2"}, drivers=drivers)
    result = run(original)
    assert result.stdout.endswith(": 18 loaded, 0 rejected\n")
    lines = [line.partition(LEFT_OUT)[2] for line in result.stderr.splitlines() if LEFT_OUT in line]
    assert lines == [
        "nickname",
        "fuel_liters, event_summary.x, events.severity, event_type 5 HARD_CORNERING",
    ]
    assert run(original).stdout.endswith(": 0 loaded, 0 rejected\n")
    original.load(trip, {**trip, "trip_id": "odd2"}, drivers=DRIVERS)
    run(original)
    assert_same(original, here, [{"trip_id": "odd"}, {"trip_id": "odd2"}], [])


def test_invalid_records_are_listed_and_the_others_are_loaded(run, original, here, tmp_path):
    original.load(
        make_trip(driver_id="d/1", trip_id="nan", distance_miles=float("nan")),
        make_trip(driver_id="d/1", trip_id="fast", distance_miles=900.0),
        make_trip("2026-03-18T13:00", driver_id="d/1", trip_id="ahead"),
        make_trip(driver_id="d/1", trip_id="period", insurance_period=0),
        drivers=[make_driver("d/1", email=7)],
    )
    original.trips |= {
        "": {**make_trip(driver_id="d/1"), "trip_id": ".."},
        "broken": make_trip(driver_id="d/0", trip_id="broken"),
    }
    original.faults += [("trip/trip_id/broken", respond(500))] * 4
    result = run(original, status=1)
    assert ": 16 loaded, 6 rejected, listed in mirror.rejected.ndjson. The first: line " in result.stdout
    assert "1 loaded, but with a mean speed over 150 mph. The first: trip fast\n" in result.stderr
    reasons = "".join(sorted(row["reason"] for row in read_rejects(tmp_path)))
    for reason in (
        "distance_miles: Must be a finite number.",
        "trip_id: Must not be '.'",
        "trip_end_time: Must not be more than an hour in the future.",
        "email: Must be a string",
        "insurance_period: Must be greater than or equal to 1 and less than or equal to 3.",
        "status 500",
    ):
        assert reason in reasons
    original.trips = {
        name: trip for name, trip in original.trips.items() if name in {trip["trip_id"] for trip in TRIPS} | {"fast"}
    }
    original.load(drivers=DRIVERS)
    run(original)
    assert not (tmp_path / "mirror.rejected.ndjson").exists()
    assert_same(original, here)


NO_RECORDS = [{}, None, 0, "", [], 5, {"trip_id": "\ud800", "driver_id": "\ud800"}]


@pytest.mark.parametrize(
    ("path", "name", "responses"),
    [
        ("drivers", "drivers", [NO_RECORDS]),
        ("driver/d%2F1/trips", "trips", [NO_RECORDS]),
        ("trip/", "trips", [[record] for record in NO_RECORDS]),
    ],
)
def test_records_that_are_no_driver_or_trip_are_rejected(run, original, here, path, name, responses):
    original.faults += [(path, respond(200, json.dumps({name: records, "next_page": None}))) for records in responses]
    assert ", 7 rejected, listed in mirror.rejected.ndjson" in run(original, status=1).stdout
    run(original)
    assert_same(original, here)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (respond(401), "refuses the key in MIRROR_KEY (status 401)"),
        (respond(403), "refuses the key in MIRROR_KEY (status 403)"),
        (respond(404), 'does not respond as a Driver Analytics API: status 404 for /api/v1/drivers, "<!doctype html>"'),
        (respond(200), 'status 200 for /api/v1/drivers, "<!doctype html>"'),
        (respond(200, '{"drivers": 1}'), "status 200 for /api/v1/drivers, "),
        (respond(200, '{"drivers": [], "next_page": 3}'), "status 200 for /api/v1/drivers, "),
        (respond(301, Location="https://b.example"), 'status 301 for /api/v1/drivers, "https://b.example"'),
        (respond(400, f"{'-' * 189}{KEY}"), f'status 400 for /api/v1/drivers, "{"-" * 189}[redacted]"'),
    ],
)
@pytest.mark.parametrize("words_of_command", [(), ("--follow",)])
def test_what_is_no_such_service_is_an_error_in_one_line(run, original, fault, words, words_of_command):
    original.faults.append(("drivers", fault))
    result = run(original, *words_of_command, status=1)
    assert (result.stdout, result.stderr.count("\n"), words in result.stderr) == ("", 1, True)
    assert KEY[:8] not in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--since", "2026-03-19"), "a date up to today"),
        (("--from", "https://me:secret@a.example"), "Give --from as https://api.example.com"),
        (("--from", "http://a.example:65536"), "Give --from as"),
    ],
)
def test_options_that_cannot_be_used_are_named(run, original, words, message):
    result = run(original, *words, status=2)
    assert message in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("key", ["with space", "with\nbreak", "ключ"])
def test_a_key_that_no_header_can_have_is_named_and_not_repeated(run, original, key):
    assert run(original, key=key, status=1).stderr == "Error: Set MIRROR_KEY to an API key of the other service.\n"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (respond(429, "Retry-After", **{"Retry-After": "7"}), 7),
        (respond(429, **{"Retry-After": "0"}), 1),
        (respond(429, **{"Retry-After": "soon"}), 1),
        (respond(503, **{"Retry-After": "Wed, 18 Mar 2026 12:00:09 GMT"}), 9),
        (respond(429, **{"Retry-After": f"Wed, 18 Mar {'9' * 20} 12:00:09 GMT"}), 1),
        (respond(503), 1),
        (respond(503, "an error of a proxy", **{"Content-Encoding": "br"}), 1),
        (respond(502), 1),
        (respond(500), 1),
        (drop, 1),
    ],
)
def test_it_waits_as_it_is_told_and_repeats_what_failed(run, original, here, waits, fault, expected):
    original.faults += [(path, fault) for path in ("drivers", "driver/", "trip/")]
    run(original)
    assert waits == [expected] * 3
    assert_same(original, here)


def test_what_was_read_is_stored_while_it_waits(run, original, here, waits, monkeypatch):
    def is_stored():
        count = sum(path.startswith("trip/") for path in original.paths)
        return here.db.trips.count_documents({}) == count - 1

    monkeypatch.setattr(loader, "BATCH_SECONDS", 0.0)
    original.faults.append(("trip/trip_id/t9", respond(429, **{"Retry-After": "60"})))
    waits.until = is_stored
    run(original)
    assert 60 in waits
    assert_same(original, here)


@pytest.mark.parametrize("words", [(), ("--follow",)])
def test_a_service_that_does_not_respond_is_given_up(run, original, waits, words):
    result = run(original, *words, url=f"http://127.0.0.1:{free_port()}", status=1)
    message = result.stderr.splitlines()[-1]
    assert "did not respond for 30 seconds: ConnectError " in message
    assert not message.endswith("..")
    assert 30 <= sum(waits) < 60


def test_a_service_without_a_change_feed_is_read_every_ten_minutes_and_never_given_up(
    run, original, here, waits, tmp_path
):
    changed, invalid = {**TRIPS[0], "distance_miles": 5.5}, make_trip(driver_id="d/0", trip_id="i", distance_miles=-1)
    waits.rounds = [
        lambda: original.load(changed, invalid),
        lambda: original.faults.extend([("drivers", drop)] * 20),
        lambda: waits.append(len(read_rejects(tmp_path))),
    ]
    run(original, "--follow")
    assert (waits.count(LISTS), sum(waits) > 4 * LISTS + 100, waits[-2]) == (4, True, 1)
    del original.trips["i"]
    assert_same(original, here)


@pytest.fixture
def change(other):
    """Change the other service: a trail, a summary, a trip of a new driver; and erase a driver."""

    def change():
        new = make_trip(driver_id="new", trip_id="new", tracking_id="job")
        trips = [{**TRIPS[0], "events": []}, {**TRIPS[1], "distance_miles": 5.5}, new]
        load(other.db, *trips, drivers=[make_driver("new", alias="N")])
        for _ in erase_driver(other.store, "f1", "d/2"):
            pass

    return change


def test_a_change_feed_is_followed_from_where_it_was_left(run, other, here, waits, change):
    load(other.db, make_trip(driver_id="moves", trip_id="moved", tracking_id="first"))
    waits.rounds = [change, lambda: load(other.db, make_trip(driver_id="renamed", trip_id="moved"))]
    run(other, "--follow")
    assert waits == [FEED, FEED, FEED]
    assert here.db.trips.find_one({"trip_id": "new"})["tracking_id"] == "job"
    assert here.db.trips.count_documents({"tracking_id": "first"}) == 1
    assert_same(other, here, [*TRIPS, {"trip_id": "new"}, {"trip_id": "moved"}], DRIVERS[:2])
    load(other.db, {**TRIPS[3], "events": []}, {**TRIPS[4], "distance_miles": 7.5})
    run(other, "--follow")
    assert_same(other, here, drivers=DRIVERS[:2])
    # As if the other service was restored from a backup.
    other.store.fleets.update_one({}, {"$set": {"feed_key": "another"}})
    load(other.db, {**TRIPS[6], "distance_miles": 7.5})
    run(other, "--follow")
    assert_same(other, here, drivers=DRIVERS[:2])


def test_a_followed_change_before_since_is_applied_to_a_stored_trip_alone(run, other, here, waits):
    old = make_trip("2026-03-09T08:00", "d/0", trip_id="old")
    load(here.db, TRIPS[0])
    waits.rounds = [lambda: load(other.db, {**TRIPS[0], "distance_miles": 5.5}, old)]
    run(other, "--follow", "--since", "2026-03-10")
    assert here.db.trips.find_one({"trip_id": TRIPS[0]["trip_id"]})["distance_miles"] == 5.5
    assert here.db.trips.count_documents({"trip_id": "old"}) == 0


@pytest.mark.parametrize("step", [31, pytest.param(17, marks=pytest.mark.large)])
def test_killed_at_any_moment_and_repeated_it_ends_as_if_it_was_not(
    run, other, here, waits, change, kills, monkeypatch, step
):
    def follow():
        waits.rounds = [change]
        return run(other, "--follow")

    monkeypatch.setattr(loader, "BATCH_RECORDS", 5)
    list(kills(mirror, follow, 0, step, 50))
    assert_same(other, here, [*TRIPS, {"trip_id": "new"}], DRIVERS[:2])
    assert differences(here.db) == []


@pytest.mark.parametrize(
    ("setting", "value"), [("SSL_CERT_FILE", "nowhere.pem"), ("HTTPS_PROXY", "no-scheme://me:secret@a.example")]
)
def test_a_setting_of_the_client_that_cannot_be_used_is_named(run, original, monkeypatch, setting, value):
    monkeypatch.setenv(setting, value)
    result = run(original, status=1)
    assert (setting in result.stderr, result.stderr.count("\n"), "secret" in result.stderr) == (True, 1, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_that_follows(serve, mongod_uri, mongod, tmp_path, number):
    original = Original()
    original.load(drivers=DRIVERS)
    url = serve(original)
    settings = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": mongod.name, "MIRROR_KEY": KEY}
    words = (COMMAND, "mirror", "--from", url, "--fleet", "f1", "--follow")
    with ServiceProcess(tmp_path, words=words, folder=tmp_path, **settings) as process:
        process.read(1)
        process.process.send_signal(number)
        assert process.process.wait(60) == 0
    assert (process.output, process.errors) == ([f"{url}: 4 loaded, 0 rejected"], "f1: a new fleet\n")
