"""Implausible trips: counted in every sum of a fleet, or left out of all of them, and named in lists all the same."""

import gzip
import itertools

import pytest

from app.store import Store
from app.store.reports import read_file
from scripts.lifecycle import fleets
from scripts.materialize import fleet_settings
from tests.conftest import Service
from tests.factories import make_driver, make_event_summary, make_trip
from tests.fleet_states import differences
from tests.following import Following, make_source
from tests.store_contents import contents, load

BROKEN = {
    "mean_speed": {"distance_miles": 90_000.0, "highway_miles": 80_000.0},
    "part_longer_than_trip": {"event_summary": make_event_summary(phone_use_time_seconds=900_000)},
    "event_rate": {"event_summary": make_event_summary(hard_brake_count=361)},
}
# d0 has such trips among others, d1 has only such trips, d2 has none.
PLAUSIBLE = [
    make_trip(
        f"2026-{day}T08:00", driver, trip_id=f"{driver} {day}", event_summary=make_event_summary(hard_brake_count=1)
    )
    for day, driver in itertools.product(("02-20", "03-02", "03-03", "03-05"), ("d0", "d2"))
]
IMPLAUSIBLE = [
    make_trip(f"2026-{day}T10:00", driver, trip_id=f"{driver} {day} {kind}", **fields)
    for (kind, fields), day, driver in itertools.product(BROKEN.items(), ("02-20", "03-03", "03-04"), ("d0", "d1"))
]
DATES = {"first_travel_date": "2026-01-01", "last_travel_date": "2026-03-09"}
DRIVERS = [make_driver(f"d{n}", **DATES) for n in range(3)]
EACH = "driver_id=d0&driver_id=d1&driver_id=d2"
SUMS = [
    *(f"/driver-aggregate/daily?start_date=2026-03-0{day}&{EACH}" for day in (3, 4)),
    f"/driver-aggregate/weekly?start_date=2026-03-02&{EACH}",
    f"/driver-aggregate/monthly?start_date=2026-02-01&{EACH}",
    "/driver-aggregate/window?start_date=2026-02-19&end_date=2026-03-04",
    *(f"/driver/d{n}/score?start_date=2026-02-01&interval={name}" for n in range(3) for name in ("day", "month")),
    *(f"/ranking?period=week&start_date=2026-03-02{order}" for order in ("", "&order=best", "&behaviour=phone_use")),
    *(f"/fleet-aggregate?start_date=2026-02-01&interval={name}" for name in ("day", "month")),
]
LISTS = [
    "/driver/d1/trips?start_date=2026-02-01",
    "/trip/trip_id/d0%2003-03%20mean_speed",
    "/changes?limit=100",
    "/drivers",
]


@pytest.fixture
def set_policy(command):
    """Say what f1 does with implausible trips."""
    return lambda policy: command("fleets", "set", "--fleet", "f1", "--implausible-trips", policy)


def read(db, fleet, paths=SUMS):
    """Return the responses, those about the whole fleet without the number of implausible trips."""
    responses = [Service(db).get(path, fleet=fleet).json for path in paths]
    for series in (response.get("series", []) for response in responses):
        for interval in series:
            interval.get("fleet_summary", {}).pop("implausible_trip_count", None)
    return responses


def test_left_out_they_are_in_no_sum(mongod, set_policy, clock):
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE, drivers=DRIVERS)
    load(mongod, *PLAUSIBLE, drivers=DRIVERS, fleet="f2")
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE, drivers=DRIVERS, fleet="f3")
    counted = read(mongod, "f1")
    assert (
        set_policy("leave-out").stdout
        == "f1: summaries and scores leave out implausible trips; 18 such trips changed\n"
    )
    assert read(mongod, "f1") == read(mongod, "f2") != counted
    assert set_policy("count").exit_code == 0
    assert read(mongod, "f1") == read(mongod, "f3") == counted


def test_left_out_they_are_in_lists_and_details_and_in_the_feed_as_before(mongod, set_policy, clock):
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE)
    lists = read(mongod, "f1", LISTS)
    set_policy("leave-out")
    assert [page | {"cursor": 0} for page in read(mongod, "f1", LISTS)] == [page | {"cursor": 0} for page in lists]


@pytest.mark.parametrize("policy", ["leave-out", "count"])
def test_whichever_way_trips_come_sums_are_those_of_an_import(command, mongod, set_policy, write_lines, policy):
    set_policy(policy)
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE, drivers=DRIVERS)
    expected = contents(mongod)
    set_policy("count")
    following = Following(mongod)
    following.catch_up()
    mongod.trips.replace_one({"_id": "f1/d0 03-02"}, make_source(PLAUSIBLE[2] | BROKEN["mean_speed"]))
    following.catch_up()
    set_policy(policy)
    command("import", "--fleet", "f1", "--trips", str(write_lines("trips", *PLAUSIBLE)))
    assert contents(mongod) == expected
    assert differences(mongod) == []


def test_killed_at_any_moment_sums_are_those_of_trips_that_are_counted_or_left_out(
    mongod, command, kills, monkeypatch, clock
):
    monkeypatch.setattr(fleet_settings, "TRIPS_PER_TRANSACTION", 2)
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE, drivers=DRIVERS)
    words = ("fleets", "set", "--fleet", "f1", "--implausible-trips", "leave-out")
    of_week = {"fleet": "f1", "driver_id": "d0", "date": {"$gte": "2026-03-02"}, "totals": None}
    for _ in kills(fleets, lambda: command(*words), 4, 7, 20):
        weeks = read(mongod, "f1", [f"/driver-aggregate/weekly?start_date=2026-03-02&{EACH}"])[0]["data"]
        found = {week["driver_info"]["driver_id"]: week.get("driving_summary") for week in weeks}
        (fleet,) = read(mongod, "f1", ["/fleet-aggregate?start_date=2026-03-02&interval=week"])[0]["series"]
        sums = [summary["trip_count"] for summary in found.values() if summary]
        assert fleet["fleet_summary"]["trip_count"] == sum(sums)
        assert found["d2"]["trip_count"] == 3
        assert found["d0"]["trip_count"] == 9 - mongod.trip_details.count_documents(of_week)
    assert found["d0"]["trip_count"] == 3
    assert differences(mongod) == []


def test_verify_names_what_a_killed_change_has_left_and_a_rebuild_ends_it(mongod, command, store):
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE)
    mongod.fleets.update_one({"_id": "f1"}, {"$set": {"implausible_trips": "left_out"}})
    assert "trip_details f1/d1 03-03 mean_speed: differs" in command("rollups", "verify").stdout
    assert command("rollups", "rebuild").exit_code == 0
    assert command("rollups", "verify").exit_code == 0


def test_reports_and_exported_daily_summaries_leave_them_out(command, mongod, set_policy, tmp_path, clock):
    store = Store.of(mongod)
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE, drivers=DRIVERS)
    load(mongod, *PLAUSIBLE, drivers=DRIVERS, fleet="f2")
    set_policy("leave-out")
    files = {}
    for fleet in ("f1", "f2"):
        assert command("reports", "build", "--fleet", fleet, "--report-date", "2026-03-09").exit_code == 0
        assert command("export", "--fleet", fleet, "--out", str(tmp_path / fleet)).exit_code == 0
        days = gzip.decompress((tmp_path / fleet / "daily_summaries.ndjson.gz").read_bytes())
        report = store.reports.find_one({"fleet": fleet})
        files[fleet] = (b"".join(read_file(store, report["csv"])), days)
    assert files["f1"] == files["f2"]


def test_the_fleet_says_how_many_there_are_and_what_its_sums_do_with_them(mongod, set_policy, clock):
    load(mongod, *PLAUSIBLE, *IMPLAUSIBLE)
    for policy, name, count in (("count", "counted", 18), ("leave-out", "left_out", 6)):
        set_policy(policy)
        fleet, weeks = read(mongod, "f1", ["/fleet"])[0], Service(mongod).get("/fleet-aggregate?start_date=2026-03-02")
        summary = weeks.json["series"][0]["fleet_summary"]
        counts = summary["implausible_trip_count"], summary["trip_count"]
        assert (fleet["implausible_trips"], *counts) == (name, 12, count)


@pytest.mark.parametrize(
    ("policy", "effect"),
    [
        (
            "count",
            "count in summaries and scores; `driver-analytics fleets set --fleet f1 --implausible-trips leave-out`",
        ),
        ("leave-out", "are left out of summaries and scores\n"),
    ],
)
def test_an_import_says_how_many_it_loaded_and_what_they_do(command, set_policy, write_lines, policy, effect):
    set_policy(policy)
    path = write_lines("trips.ndjson", *PLAUSIBLE, *IMPLAUSIBLE)
    said = command("import", "--fleet", "f1", "--trips", str(path)).stderr
    assert f"trips.ndjson: implausible trips: {len(IMPLAUSIBLE)}. They {effect}" in said


@pytest.fixture
def received_at(mongod, clock):
    """Do something a minute later, and return when the fleet received its last trip."""

    def received_at(change=lambda: None):
        clock.shift(60)
        change()
        return Service(mongod).get("/fleet").json["last_trip_received_at"]

    return received_at


def test_the_time_of_the_last_trip_moves_when_a_trip_is_stored_changed_or_deleted(command, mongod, received_at):
    load(mongod, drivers=DRIVERS)
    times = [
        received_at(lambda: load(mongod, *PLAUSIBLE)),
        received_at(lambda: load(mongod, {**PLAUSIBLE[0], "distance_miles": 1.0})),
        received_at(lambda: command("erase", "--fleet", "f1", "--driver", "d2", "--yes")),
    ]
    assert times == sorted(set(times))
    assert Service(mongod).get("/fleet", driver="d0").json["last_trip_received_at"] is None


def test_the_time_of_the_last_trip_stays_with_the_same_trips_and_other_settings(
    command, mongod, received_at, set_policy
):
    load(mongod, *PLAUSIBLE)
    before = received_at()
    assert received_at(lambda: load(mongod, *PLAUSIBLE)) == before
    assert received_at(lambda: set_policy("leave-out")) == before
    assert received_at(lambda: command("fleets", "set", "--fleet", "f1", "--time-zone", "Asia/Tokyo")) == before


def test_follow_counts_each_kind_and_logs_the_first_trip(mongod, log):
    following = Following(mongod)
    following.catch_up()
    mongod.trips.insert_many([make_source(trip) for trip in IMPLAUSIBLE])
    following.catch_up()
    (line,) = [line for line in log() if line.get("kind") == "mean_speed"]
    assert (line["fleet"], line["count"], line["first"]) == ("f1", 6, "d0 02-20 mean_speed")
