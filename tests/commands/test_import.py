"""driver-analytics import."""

import gzip
import itertools
import json
import os

import pytest

from schemas.trip import TripDetail
from scripts.ingest import loader
from scripts.ingest.records import Rejects
from tests.factories import make_driver, make_event, make_event_summary, make_point, make_trip
from tests.fleet_states import differences
from tests.store_contents import contents, everything, load
from tests.whole_trip import FOCUS, MAX_INT, MIN_INT, WHOLE, altered, make_whole_trip


@pytest.fixture
def load_file(command, mongod):
    """Import one file: `load_file(path)`, `load_file(path, "drivers", status=1)`."""

    def load_file(path, kind="trips", *, status=0, options=()):
        result = command("import", "--fleet", "f1", f"--{kind}", str(path), *options)
        assert result.exit_code == status, result.output
        return result

    return load_file


def rejects_of(path):
    return path.with_name(path.name + ".rejected.ndjson")


def read_rejects(path):
    return [json.loads(line) for line in rejects_of(path).read_text().splitlines()]


def trip_ids(db):
    return sorted(trip["trip_id"] for trip in db.trips.find())


def dates_driven(db):
    days = db.driver_periods.find({"period": "day"})
    return {(day["driver_id"], day["start_date"]): day["trip_count"] for day in days}


def profiles(db):
    """Return the drivers as they are served."""
    found = db.driver_periods.find({"period": "profile"})
    return {profile["driver_id"]: json.loads(profile["json"]) for profile in found}


# tests/unit/test_lines.py has all kinds of files, tests/unit/test_rejected_lines.py all reasons to reject a line.


def test_drivers_and_trips_are_loaded_by_one_command(command, mongod, write_lines):
    drivers = write_lines("drivers.ndjson", {"first_name": "Ada", "driver_id": "d1"})
    trips = write_lines("trips.ndjson.gz", make_trip(driver_id="d1"))
    result = command("import", "--fleet", "f1", "--drivers", str(drivers), "--trips", str(trips))
    assert result.exit_code == 0
    assert result.stdout == "drivers.ndjson: 1 loaded, 0 rejected\ntrips.ndjson.gz: 1 loaded, 0 rejected\n"
    stored = mongod.drivers.find_one({}, {"_id": 0, "fleet": 0})
    assert list(stored.items()) == list(make_driver("d1", first_name="Ada").items())
    dates = dict.fromkeys(("first_travel_date", "last_travel_date"), "2026-03-10")
    assert profiles(mongod) == {"d1": {**stored, **dates}}


def test_rejected_lines_are_listed_and_all_others_are_loaded(command, mongod, write_lines):
    drivers = write_lines("drivers.ndjson", "bad", make_driver("d2"))
    invalid = json.dumps({**WHOLE, "status": "active"})
    trips = write_lines("trips.ndjson", make_trip(trip_id="t1"), "", "é", invalid, make_trip(trip_id="t2"))
    result = command("import", "--fleet", "f1", "--drivers", str(drivers), "--trips", str(trips))
    assert (result.exit_code, mongod.drivers.distinct("driver_id"), trip_ids(mongod)) == (1, ["d2"], ["t1", "t2"])
    first, second = read_rejects(trips)
    assert (first["line"], first["input"]) == (3, "é")
    assert second == {"line": 4, "reason": "status: Unknown field.", "input": invalid}
    assert result.stdout.endswith(
        f"trips.ndjson: 2 loaded, 2 rejected, listed in {rejects_of(trips)}. The first: line 3, "
        f"{json.dumps(first['reason'])}\n"
    )


@pytest.mark.parametrize(("rows", "most"), [("trail_path", 100_000), ("events", 5_000)])
def test_a_trip_with_too_many_points_or_events_is_rejected_and_those_after_it_are_loaded(
    load_file, write_lines, mongod, rows, most
):
    row = json.dumps({"trail_path": make_point, "events": make_event}[rows](1))
    large = altered(rows, "[" + ",".join([row] * (most + 1)) + "]", make_trip(trip_id="large"))
    path = write_lines("trips.ndjson", large, make_trip(trip_id="small"))
    load_file(path, status=1)
    (rejected,) = read_rejects(path)
    assert (rejected["line"], rejected["reason"]) == (1, f"{rows}: Must have at most {most} elements.")
    assert trip_ids(mongod) == ["small"]


# Of two trips a day. The last line of t1 is that of another day, where it makes room for t5, and t2 is corrected.
FULL_DAY = [
    make_trip(trip_id="t1"),
    make_trip(trip_id="t2"),
    make_trip(trip_id="t3"),
    make_trip(trip_id="t2", distance_miles=7.5),
    make_trip(trip_id="t4", driver_id="d2"),
    make_trip("2026-03-11T08:00", trip_id="t1"),
    make_trip(trip_id="t5"),
    make_trip(trip_id="t4"),
]


@pytest.mark.parametrize("batch_records", [1, 3, 100])
def test_the_trips_beyond_the_maximum_of_a_day_are_rejected_by_line_and_all_others_loaded(
    load_file, write_lines, mongod, monkeypatch, batch_records
):
    monkeypatch.setattr("scripts.materialize.trips.MAX_TRIPS_A_DAY", 2)
    monkeypatch.setattr(loader, "BATCH_RECORDS", batch_records)
    path = write_lines("trips.ndjson", *FULL_DAY, "no JSON")
    assert "trips.ndjson: 6 loaded, 3 rejected, listed in" in load_file(path, status=1).stdout
    rows = read_rejects(path)
    assert [row["line"] for row in rows] == [3, 8, 9]
    assert [json.loads(row["input"]) for row in rows[:2]] == [FULL_DAY[2], FULL_DAY[7]]
    assert {row["reason"] for row in rows[:2]} == {"driver_id: Has 2 other trips on this date, which is the maximum."}
    assert dates_driven(mongod) == {("d1", "2026-03-10"): 2, ("d1", "2026-03-11"): 1, ("d2", "2026-03-10"): 1}
    assert mongod.trips.find_one({"trip_id": "t2"})["distance_miles"] == 7.5
    assert differences(mongod) == []


def test_a_trip_beyond_the_maximum_of_a_day_leaves_the_stored_one_as_it_is(load_file, write_lines, mongod, monkeypatch):
    monkeypatch.setattr("scripts.materialize.trips.MAX_TRIPS_A_DAY", 1)
    load_file(write_lines("trips.ndjson", make_trip(trip_id="t1"), make_trip(trip_id="t2", driver_id="d2")))
    before = everything(mongod)
    load_file(write_lines("trips.ndjson", make_trip(trip_id="t2"), make_trip(trip_id="t1")), status=1)
    assert everything(mongod) == before


# What is stored and served.


@pytest.mark.parametrize("db", ["mongod"], indirect=True)
def test_fields_in_any_order_are_served_in_the_contracts_order(service, load_file, write_lines):
    def reverse(value):
        if isinstance(value, dict):
            return {key: reverse(value[key]) for key in reversed(value)}
        return [reverse(item) for item in value] if isinstance(value, list) else value

    load_file(write_lines("trips.ndjson", reverse(WHOLE)))
    trips = service.get("/trip/trip_id/bad").json["trips"]
    assert json.dumps(trips) == json.dumps([{name: WHOLE[name] for name in TripDetail().fields}])


def test_a_focus_area_stands_if_it_is_given_and_follows_from_the_event_summary_if_not(load_file, write_lines, mongod):
    summary = make_event_summary(phone_use_time_seconds=135, hard_brake_count=1, overspeeding_time_seconds=179)
    trip = make_trip(trip_id="without", duration_seconds=1800, distance_miles=10.0, event_summary=summary)
    load_file(write_lines("trips.ndjson", trip, {**trip, "trip_id": "with", "focus_area": FOCUS}))
    served = {trip["trip_id"]: json.loads(trip["focus_area"]) for trip in mongod.trip_details.find()}
    assert served == {"without": {**FOCUS, "is_phone_use": True, "is_hard_brake": True}, "with": FOCUS}
    assert [trip.get("focus_area") for trip in mongod.trips.find().sort("_id")] == [FOCUS, None]


AT_THE_BOUNDS = [
    *itertools.product(["start_latitude", "trail_path.0.latitude"], ["90", "-90", "90.0", "-90.0"]),
    *itertools.product(["end_longitude", "trail_path.1.longitude"], ["180", "-180", "180.0"]),
    *itertools.product(["events.0.event_start_latitude", "events.0.event_end_latitude"], ["90", "-90"]),
    *itertools.product(["events.0.event_start_longitude", "events.0.event_end_longitude"], ["180", "-180"]),
    *itertools.product(["duration_seconds", "distance_miles"], ["0", "0.0", "1e308", "5e-324", f"{MAX_INT}"]),
    *itertools.product(["event_summary.hard_brake_count"], ["0", f"{MAX_INT}"]),
    *itertools.product(["trail_path.0.course"], ["-720.5", f"{MIN_INT}", f"{MAX_INT}", "1e300", "0"]),
    *itertools.product(["insurance_period"], ["1", "2", "3", "null"]),
    *itertools.product(["trail_path", "events"], ["[]"]),
    *itertools.product(["trip_end_time"], [str(WHOLE["trip_start_time"])]),
    *itertools.product(["events.0.event_end_timestamp"], [str(WHOLE["trip_start_time"])]),
    *itertools.product(["trip_start_time"], ["0", "-1", "-62135596800000"]),
    *itertools.product(["tracking_id"], ["null", '"k"', f'"{"é" * 64}"']),
    *itertools.product(["trip_id"], [f'"{"é" * 64}"', f'"{"x" * 128}"', '"..."', '" "', '"a/b"', '"\\ud83d\\ude97"']),
    *itertools.product(["driver_id"], [f'"{"𝄞" * 32}"', '"$where"', '"a.b"', '"\\u00a0"', '"\\u2028"', '"a\\u0301"']),
]


def test_values_at_the_bounds_are_loaded_as_they_are(load_file, write_lines, mongod):
    lines = [altered(*case, make_whole_trip(trip_id=f"t{number}")) for number, case in enumerate(AT_THE_BOUNDS)]
    path = write_lines("trips.ndjson", *lines)
    load_file(path)
    for line in path.read_text().splitlines():
        trip = json.loads(line)
        result = mongod.trips.find_one({"trip_id": trip["trip_id"]}, {"_id": 0, "fleet": 0})
        assert {name: repr(value) for name, value in result.items()} == {n: repr(v) for n, v in trip.items()}


# The rejects file.


def test_another_folder_takes_the_rejects(load_file, write_lines, tmp_path):
    (tmp_path / "out").mkdir()
    path = write_lines("trips.ndjson", "bad")
    result = load_file(path, status=1, options=["--rejects", str(tmp_path / "out")])
    assert f"listed in {tmp_path}/out/trips.ndjson.rejected.ndjson" in result.stdout
    assert read_rejects(tmp_path / "out" / "trips.ndjson")[0]["input"] == "bad"
    assert not rejects_of(path).exists()


@pytest.mark.parametrize("drivers", ["trips.rejected.ndjson", "other/trips"])
def test_a_rejects_file_takes_the_place_of_no_input_and_of_no_other_one(command, mongod, tmp_path, drivers):
    (tmp_path / "other").mkdir()
    paths = [tmp_path / drivers, tmp_path / "trips"]
    for path in paths:
        path.write_text(json.dumps(make_driver("d1")))
    words = ["--drivers", str(paths[0]), "--trips", str(paths[1]), "--rejects", str(tmp_path)]
    result = command("import", "--fleet", "f1", *words)
    assert (result.exit_code, "trips.rejected.ndjson" in result.stderr) == (2, True)
    assert (mongod.drivers.count_documents({}), paths[0].exists()) == (0, True)


def test_a_rejects_file_that_cannot_be_replaced_is_an_error(load_file, write_lines, tmp_path):
    (tmp_path / "trips.ndjson.rejected.ndjson").mkdir()
    result = load_file(write_lines("trips.ndjson", "bad"), status=1)
    assert "rejected.ndjson cannot be written: Is a directory. Choose another folder with --rejects" in result.stderr


def test_a_full_disk_is_an_error_in_one_line(load_file, write_lines, limited_files):
    result = load_file(write_lines("trips.ndjson.gz", *["x" * 9000] * 3), status=1)
    assert "cannot be written: File too large" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_rejects_file_that_cannot_be_written_in_full_is_removed(load_file, write_lines, limited_files):
    path = write_lines("trips.ndjson.gz", *["x" * 9000] * 3)
    load_file(path, status=1)
    assert list(path.parent.iterdir()) == [path]


def test_a_link_that_another_user_plants_is_not_followed(tmp_path):
    target, path = tmp_path / "target", tmp_path / "trips.rejected.ndjson"
    target.write_text("")
    with Rejects(path) as rejects:
        path.symlink_to(target)
        for text in (b"x", b"y"):
            rejects.add(1, text, "Not JSON.")
    assert (path.is_symlink(), target.read_text()) == (True, "")
    assert [json.loads(line)["input"] for line in rejects.path.read_text().splitlines()] == ["x", "y"]
    assert str(rejects.path) in rejects.describe()
    assert (rejects.path.suffix, rejects.path.stat().st_mode & 0o777) == (".ndjson", 0o600)


def test_a_link_to_no_file_creates_none(tmp_path):
    path = tmp_path / "trips.rejected.ndjson"
    with Rejects(path) as rejects:
        path.symlink_to(tmp_path / "target")
        rejects.add(1, b"x", "Not JSON.")
    assert sorted(tmp_path.iterdir()) == sorted([path, rejects.path])


# Later lines replace earlier ones: tests/store/test_any_writes.py checks the read models after any writes.


def test_loading_files_twice_changes_nothing(load_file, write_lines, mongod):
    drivers = write_lines("drivers.ndjson", make_driver("d1", first_travel_date="2026-01-01"), make_driver("d9"))
    trips = [make_whole_trip(trip_id=f"t{n}", driver_id=f"d{n % 3}") for n in range(7)]
    trips = write_lines("trips.ndjson.gz", *trips, {**trips[0], "driver_id": "d5"})
    load_file(drivers, "drivers")
    load_file(trips)
    once = everything(mongod)
    load_file(trips)
    load_file(drivers, "drivers")
    assert everything(mongod) == once
    assert [len(once[name]) for name in ("drivers", "trips", "driver_periods")] == [2, 7, 5 + 4 + 4 + 4]


@pytest.fixture(params=[loader.BATCH_RECORDS, 1], ids=["one batch", "a batch a line"])
def batches(request, monkeypatch):
    """All lines in one batch, or a batch a line."""
    monkeypatch.setattr(loader, "BATCH_RECORDS", request.param)


@pytest.mark.usefixtures("batches")
def test_a_later_line_of_a_trip_replaces_an_earlier_one_on_whichever_day_and_of_whichever_driver(
    load_file, write_lines, mongod
):
    lines = [make_trip("2026-03-10T09:00", "d1"), make_trip("2026-03-12T09:00", "d2")]
    for start, driver_id in (("2026-03-10T23:59", "d1"), ("2026-03-12T00:00", "d1"), ("2026-03-12T00:00", "d2")):
        lines.append(make_trip(start, driver_id, trip_id="moves", distance_miles=float(len(lines))))
    assert load_file(write_lines("trips.ndjson", *lines)).stdout == "trips.ndjson: 5 loaded, 0 rejected\n"
    assert [trip["distance_miles"] for trip in mongod.trips.find({"trip_id": "moves"})] == [4.0]
    assert dates_driven(mongod) == {("d1", "2026-03-10"): 1, ("d2", "2026-03-12"): 2}
    assert profiles(mongod)["d1"]["last_travel_date"] == "2026-03-10"


@pytest.mark.usefixtures("batches")
def test_a_later_line_of_a_driver_replaces_an_earlier_one_whole(load_file, write_lines, mongod):
    first = make_driver("d1", first_name="Ada", alias="A", first_travel_date="2026-01-01")
    last = make_driver("d1", first_name="Eve", last_travel_date="2026-02-02")
    load_file(write_lines("drivers.ndjson", first, last), "drivers")
    assert list(mongod.drivers.find({}, {"_id": 0, "fleet": 0})) == [last]
    assert profiles(mongod) == {"d1": last}


@pytest.mark.parametrize("invalid", ["drivers", "trips"])
def test_rejected_lines_of_either_file_are_an_error(command, mongod, write_lines, invalid):
    lines = {"drivers": make_driver("d1"), "trips": make_trip()}
    lines[invalid] = "bad"
    words = [word for name, line in lines.items() for word in (f"--{name}", str(write_lines(f"{name}.ndjson", line)))]
    assert command("import", "--fleet", "f1", *words).exit_code == 1


def test_a_pipe_is_read_like_a_file(load_file, write_lines, mongod):
    path = write_lines("trips.ndjson", make_trip(trip_id="t1"))
    reading, writing = os.pipe()
    os.write(writing, path.read_bytes())
    os.close(writing)
    load_file(f"/dev/fd/{reading}", options=["--rejects", str(path.parent)])
    os.close(reading)
    assert trip_ids(mongod) == ["t1"]


def test_an_import_replaces_a_trip_that_another_program_changed(load_file, write_lines, mongod):
    path = write_lines("trips.ndjson", make_trip(trip_id="t1"))
    load_file(path)
    before = contents(mongod)
    mongod.trips.update_one({"trip_id": "t1"}, {"$set": {"distance_miles": 999.0}})
    load_file(path)
    assert contents(mongod) == before


def test_a_damaged_gzip_file_ends_in_one_line(load_file, tmp_path):
    path = tmp_path / "trips.ndjson.gz"
    packed = bytearray(gzip.compress("\n".join(["bad"] * 200).encode(), compresslevel=0))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    result = load_file(path, status=1)
    assert result.stderr.startswith("Error: trips.ndjson.gz cannot be read past line 199: ")
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def unique_emails(mongod):
    """Drivers with an index of the operator, whose e-mail addresses must differ."""
    load(mongod, drivers=[make_driver("d1", email="one@example.com")])
    mongod.drivers.create_index("email", name="unique_emails", unique=True)
    yield mongod
    mongod.drivers.drop_index("unique_emails")


def test_a_write_that_mongodb_refuses_is_reported_at_once_in_one_line(command, run_main, unique_emails, write_lines):
    before = everything(unique_emails)
    lines = [make_driver("d1", email="one@example.com", alias="new"), make_driver("d2", email="one@example.com")]
    path = write_lines("drivers.ndjson", *lines)
    ended = run_main("import", "--fleet", "f1", "--drivers", str(path))
    assert (ended.status, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("Error: MongoDB: E11000 duplicate key error collection: test.drivers index: unique_")
    assert "one@example.com" not in ended.stderr
    assert everything(unique_emails) == before


def test_of_two_imports_of_a_file_at_the_same_time_each_keeps_its_rejects(tmp_path):
    path = tmp_path / "trips.rejected.ndjson"
    with Rejects(path) as first, Rejects(path) as last:
        for rejects, text in ((first, b"1"), (last, b"2")):
            rejects.add(1, text, "Not JSON.")
    assert [json.loads(rejects.path.read_text())["input"] for rejects in (first, last)] == ["1", "2"]
