"""driver-analytics import."""

import gzip
import itertools
import json
import os
import resource

import bson
import pytest

from scripts.ingest import importer
from scripts.ingest.lines import Line, Rejects
from tests.factories import epoch_ms, make_driver, make_event_summary, make_point, make_trip
from tests.store_contents import DATA, contents, everything, load
from tests.whole_trip import FOCUS, MAX_INT, MIN_INT, WHOLE, altered, make_whole_trip

TRIP_FIELDS = [
    "trip_id",
    "driver_id",
    "trip_start_time",
    "trip_end_time",
    "duration_seconds",
    "distance_miles",
    "insurance_period",
    "start_latitude",
    "start_longitude",
    "end_latitude",
    "end_longitude",
    "night_driving_seconds",
    "highway_miles",
    "night_driving_miles",
    "event_summary",
    "focus_area",
    "trail_path",
    "events",
]


@pytest.fixture
def load_file(command, mongod):
    """Import one file: `load_file(path)`, `load_file(path, "drivers", fleet="f2", status=1)`."""

    def load_file(path, kind="trips", *, fleet="f1", status=0, options=()):
        result = command("import", "--fleet", fleet, f"--{kind}", str(path), *options)
        assert result.exit_code == status, result.output
        return result

    return load_file


@pytest.fixture
def rejects(load_file, write_lines):
    """Import lines between two good ones, which must be loaded; return what became of them, by line number."""

    def rejects(*lines, kind="trips"):
        make = make_trip if kind == "trips" else make_driver
        good = [make(**{f"{kind[:-1]}_id": name}) for name in ("good1", "good2")]
        path = write_lines(f"{kind}.ndjson", good[0], *lines, good[1])
        result = load_file(path, kind, status=1)
        rows = read_rejects(path)
        given = 2 + sum(bool(line.strip(" \t")) for line in lines)
        assert result.stdout.startswith(f"{path.name}: {given - len(rows)} loaded, {len(rows)} rejected, listed in ")
        assert result.stdout.endswith(f". The first: line {rows[0]['line']}, {json.dumps(rows[0]['reason'])}\n")
        return {row["line"]: row for row in rows}

    return rejects


@pytest.fixture
def reason(rejects):
    """Import one bad line between good ones; return why it was rejected."""

    def reason(line, kind="trips"):
        result = rejects(line, kind=kind)
        assert list(result) == [2]
        assert result[2] == {"line": 2, "reason": result[2]["reason"], "input": line}
        return result[2]["reason"]

    return reason


def rejects_of(path):
    return path.with_name(path.name + ".rejected.ndjson")


def read_rejects(path):
    return [json.loads(line) for line in rejects_of(path).read_text().splitlines()]


def trip_ids(db, **match):
    return sorted(trip["trip_id"] for trip in db.trips.find(match))


def dates_driven(db):
    return {(day["driver_id"], day["start_date"]): day["trip_count"] for day in days(db)}


def days(db):
    return db.driver_periods.find({"period": "day"})


def profiles(db):
    """Return the drivers as they are served."""
    found = db.driver_periods.find({"period": "profile"})
    return {profile["driver_id"]: json.loads(profile["json"]) for profile in found}


def travel_dates(db, driver_id="d1"):
    driver = profiles(db)[driver_id]
    return driver["first_travel_date"], driver["last_travel_date"]


# What a file may look like.


# tests/unit/test_lines.py has all kinds of files.
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda a, b: b"\n\r\n  \t\n" + a + b"\r\n\n\n" + b + b"\n \n", id="plain with empty lines"),
        pytest.param(lambda a, b: gzip.compress(a[:9]) + gzip.compress(a[9:] + b"\n" + b), id="member inside a line"),
    ],
)
def test_every_line_is_loaded(load_file, mongod, tmp_path, content):
    path = tmp_path / "trips.ndjson"
    path.write_bytes(content(*(json.dumps(make_trip(trip_id=name)).encode() for name in ("a", "b"))))
    assert load_file(path).stdout == "trips.ndjson: 2 loaded, 0 rejected\n"
    assert trip_ids(mongod) == ["a", "b"]


def test_a_file_without_lines_loads_nothing(load_file, mongod, tmp_path):
    path = tmp_path / "none.ndjson"
    path.touch()
    assert load_file(path).stdout == "none.ndjson: 0 loaded, 0 rejected\n"
    assert trip_ids(mongod) == []


def test_a_byte_order_mark_is_not_json(reason):
    assert reason("\ufeff" + json.dumps(make_trip())).startswith("Not JSON")


def test_empty_lines_count_as_lines(rejects):
    assert list(rejects("", " ", "bad", "")) == [4]


def test_bytes_that_are_no_utf_8_are_rejected(load_file, tmp_path):
    path = tmp_path / "drivers.ndjson"
    path.write_bytes(b'{"driver_id": "\xff"}\n{"driver_id": "d2"}\n')
    load_file(path, "drivers", status=1)
    assert read_rejects(path) == [{"line": 1, "reason": "Not UTF-8.", "input": '{"driver_id": "\ufffd"}'}]


def test_drivers_and_trips_are_loaded_by_one_command(command, mongod, write_lines):
    drivers = write_lines("drivers.ndjson", make_driver("d1", first_name="Ada"))
    trips = write_lines("trips.ndjson", make_trip(driver_id="d1"))
    result = command("import", "--fleet", "f1", "--drivers", str(drivers), "--trips", str(trips))
    assert result.exit_code == 0
    assert result.stdout == "drivers.ndjson: 1 loaded, 0 rejected\ntrips.ndjson: 1 loaded, 0 rejected\n"
    assert mongod.drivers.find_one({})["first_name"] == "Ada"
    assert travel_dates(mongod) == ("2026-03-10", "2026-03-10")


def test_too_many_trips_of_a_driver_on_one_date_are_refused_and_the_batch_with_them(
    load_file, write_lines, mongod, monkeypatch
):
    monkeypatch.setattr("scripts.materialize.periods.MAX_TRIPS_A_DAY", 2)
    load_file(write_lines("trips.ndjson", make_trip(trip_id="t1"), make_trip(trip_id="t2")))
    before = list(mongod.trips.find())
    result = load_file(write_lines("trips.ndjson", make_trip(trip_id="t3"), make_trip(driver_id="d2")), status=1)
    assert result.stderr.endswith(
        "Error: The driver d1 has 3 trips on 2026-03-10; the maximum is 2. Check driver_id and the times of the "
        "trips in the file.\n"
    )
    assert list(mongod.trips.find()) == before


# What is stored and served.


@pytest.mark.parametrize("db", ["mongod"], indirect=True)
def test_fields_in_any_order_are_stored_and_served_in_the_contracts_order(service, load_file, write_lines, mongod):
    def reverse(value):
        if isinstance(value, dict):
            return {key: reverse(value[key]) for key in reversed(value)}
        return [reverse(item) for item in value] if isinstance(value, list) else value

    load_file(write_lines("trips.ndjson", reverse(WHOLE)))
    expected = {name: WHOLE[name] for name in TRIP_FIELDS}
    assert [name for name in mongod.trips.find_one({}) if name in expected] == TRIP_FIELDS
    trips = service.get("/trip/trip_id/bad").json["trips"]
    assert json.dumps(trips) == json.dumps([expected])


def test_optional_fields_of_a_driver_that_are_absent_are_null(load_file, write_lines, mongod):
    load_file(write_lines("drivers.ndjson", {"alias": "Al", "driver_id": "d1"}), "drivers")
    expected = make_driver("d1", alias="Al")
    driver = mongod.drivers.find_one({}, {"_id": 0, "fleet": 0})
    assert list(driver.items()) == list(expected.items())


def test_integers_stay_integers_and_floats_stay_floats(load_file, write_lines, mongod):
    numbers = {"duration_seconds": 7, "distance_miles": 7.0, "highway_miles": 2**53 + 1, "start_latitude": -0.0}
    points = [make_point(1, latitude=1, longitude=1.0, course=1), make_point(2, latitude=1.0, longitude=1, course=2.5)]
    load_file(write_lines("trips.ndjson", make_trip(trip_id="t1", trail_path=points, **numbers)))
    trip = mongod.trips.find_one({})
    assert repr({name: trip[name] for name in numbers}) == repr(numbers)
    assert repr(trip["trail_path"]) == repr(points)


def focus_area(db):
    """Return the focus area with which the one trip is served."""
    return json.loads(db.trip_details.find_one({})["focus_area"])


def test_a_trip_without_focus_area_gets_it_from_its_event_summary(load_file, write_lines, mongod):
    summary = make_event_summary(phone_use_time_seconds=135, hard_brake_count=1, overspeeding_time_seconds=179)
    trip = make_trip(duration_seconds=1800, distance_miles=10.0, event_summary=summary)
    load_file(write_lines("trips.ndjson", trip))
    assert focus_area(mongod) == {**FOCUS, "is_phone_use": True, "is_hard_brake": True}
    assert "focus_area" not in mongod.trips.find_one({})


def test_a_focus_area_that_is_given_stands(load_file, write_lines, mongod):
    given = {**FOCUS, "is_hard_brake": True}
    load_file(write_lines("trips.ndjson", make_trip(focus_area=given)))
    assert focus_area(mongod) == mongod.trips.find_one({})["focus_area"] == given


AT_THE_BOUNDS = [
    *itertools.product(["start_latitude", "end_latitude", "trail_path.0.latitude"], ["90", "-90", "90.0", "-90.0"]),
    *itertools.product(["start_longitude", "trail_path.1.longitude"], ["180", "-180", "180.0"]),
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


def test_dates_that_exist_are_loaded(load_file, write_lines, mongod):
    dates = {"d1": "2024-02-29", "d2": "0001-01-01", "d3": "9999-12-31"}
    drivers = (make_driver(driver_id, first_travel_date=date) for driver_id, date in dates.items())
    load_file(write_lines("drivers.ndjson", *drivers), "drivers")
    assert {driver_id: travel_dates(mongod, driver_id) for driver_id in dates} == {
        driver_id: (date, None) for driver_id, date in dates.items()
    }


# Lines that are rejected: tests/unit/test_rejected_lines.py has all the reasons.


NO_JSON = ["x", "{", '{"trip_id": }', "{} {}", '{"trip_id": "a",}', "{'a': 1}", '"\\x"', "{\u00a0}", "\x00", "\x0b"]
NO_JSON += ['{"trip_id": 01}', '{"trip_id": .5}', '{"trip_id": +1}', '{"trip_id": "a\tb"}', "//", "\ufeff{}", "{}\x00"]
NO_JSON += [f'{{"trip_id": {"9" * 5000}}}', "NaN", '{"trip_id": "a"', '"trip_id"}']


def test_a_line_that_is_not_json_is_rejected(rejects):
    result = rejects(*NO_JSON)
    assert [row["input"] for row in result.values()] == NO_JSON
    assert [row["reason"] for row in result.values() if not row["reason"].startswith("Not JSON")] == []


@pytest.mark.parametrize("kind", ["drivers", "trips"])
def test_a_line_that_violates_the_schema_is_rejected(reason, kind):
    document = {"drivers": make_driver(), "trips": WHOLE}[kind]
    assert reason(json.dumps({**document, "status": "active"}), kind) == "status: Unknown field."


# Size.


def make_line(size):
    """Return the line of a driver with so many bytes, most of them in characters of two bytes."""
    line = json.dumps(make_driver(f"d{size}", alias=""))
    left = size - len(line)
    return line.replace('""', f'"{"x" * (left % 2)}{"é" * (left // 2)}"')


def test_15_mb_is_the_longest_line(load_file, write_lines, mongod):
    large = make_line(15_000_001)
    path = write_lines("drivers.ndjson", make_line(15_000_000), large, "bad", make_driver("d4"))
    load_file(path, "drivers", status=1)
    first, second = read_rejects(path)
    assert first == {"line": 2, "reason": "Longer than 15000000 bytes.", "input": large[:1000]}
    assert (second["line"], second["input"]) == (3, "bad")
    assert mongod.drivers.distinct("driver_id") == ["d15000000", "d4"]


def test_a_document_over_16_mib_is_rejected_and_those_after_it_are_loaded(load_file, write_lines, mongod):
    point = '{"timestamp":1,"latitude":1,"longitude":1,"course":1}'
    large = altered("trail_path", "[" + ",".join([point] * 255_000) + "]", make_trip(trip_id="large"))
    assert len(large) < 15_000_000
    path = write_lines("trips.ndjson", large, make_trip(trip_id="small"))
    load_file(path, status=1)
    (row,) = read_rejects(path)
    assert (row["line"], row["reason"]) == (1, "Larger than MongoDB's limit of 16777216 bytes per document.")
    assert trip_ids(mongod) == ["small"]


# The rejects file.


def test_the_rejects_file_is_replaced_by_the_next_import(load_file, write_lines):
    load_file(write_lines("trips.ndjson", "one", "two"), status=1)
    path = write_lines("trips.ndjson", make_trip(), "three")
    load_file(path, status=1)
    assert [(row["line"], row["input"]) for row in read_rejects(path)] == [(2, "three")]


def test_the_rejects_file_is_removed_when_nothing_was_rejected(load_file, write_lines, tmp_path):
    load_file(write_lines("trips.ndjson", "bad"), status=1)
    load_file(write_lines("trips.ndjson", make_trip()))
    assert [path.name for path in tmp_path.glob("trips*")] == ["trips.ndjson"]


def test_another_folder_takes_the_rejects(load_file, write_lines, tmp_path):
    (tmp_path / "out").mkdir()
    path = write_lines("trips.ndjson", "bad")
    result = load_file(path, status=1, options=["--rejects", str(tmp_path / "out")])
    assert f"listed in {tmp_path}/out/trips.ndjson.rejected.ndjson" in result.stdout
    assert read_rejects(tmp_path / "out" / "trips.ndjson")[0]["input"] == "bad"
    assert not rejects_of(path).exists()


def test_two_files_that_would_share_a_rejects_file_are_refused(command, mongod, tmp_path):
    paths = [tmp_path / folder / "same.ndjson" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(json.dumps(make_driver("d1")))
    words = ["--drivers", str(paths[0]), "--trips", str(paths[1]), "--rejects", str(tmp_path)]
    result = command("import", "--fleet", "f1", *words)
    assert result.exit_code == 2
    assert "same.ndjson.rejected.ndjson" in result.stderr
    assert mongod.drivers.count_documents({}) == 0


def test_a_rejects_file_that_cannot_be_written_is_an_error_in_one_line(load_file, write_lines, tmp_path):
    # Room for the name of the file of rejected lines, but not for its name until it is complete.
    result = load_file(write_lines("x" * 235, make_trip(), "bad"), status=1)
    assert result.stderr.startswith("Error: Line 2 is invalid (Not JSON")
    assert "cannot be written" in result.stderr
    assert "--rejects" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_rejects_file_that_cannot_be_replaced_is_an_error_and_leaves_nothing(load_file, write_lines, tmp_path):
    (tmp_path / "trips.ndjson.rejected.ndjson").mkdir()
    result = load_file(write_lines("trips.ndjson", "bad"), status=1)
    assert "rejected.ndjson cannot be written: Is a directory. Choose another folder with --rejects" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"trips.ndjson", "trips.ndjson.rejected.ndjson"}


def test_of_two_imports_of_a_file_at_the_same_time_the_last_one_keeps_its_rejects(tmp_path):
    path = tmp_path / "a.rejected.ndjson"
    first, last = Rejects(path), Rejects(path)
    for rejects, text in ((first, b"1"), (last, b"2")):
        rejects.add(Line(1, text, oversized=False), "bad")
    first.finish()
    last.finish()
    assert json.loads(path.read_text())["input"] == "2"
    assert list(tmp_path.iterdir()) == [path]


def test_both_files_are_loaded_though_the_first_has_rejects(command, mongod, write_lines):
    drivers, trips = write_lines("drivers.ndjson", "bad"), write_lines("trips.ndjson", make_trip(trip_id="t1"))
    result = command("import", "--fleet", "f1", "--drivers", str(drivers), "--trips", str(trips))
    assert result.exit_code == 1
    assert trip_ids(mongod) == ["t1"]


# Later lines replace earlier ones.


@pytest.fixture
def one_trip(write_lines):
    """A file with the trip t1."""
    return write_lines("trips.ndjson", make_trip("2026-03-10T08:00", "d1", trip_id="t1"))


def test_an_import_replaces_a_trip_that_another_program_changed(load_file, one_trip, mongod):
    load_file(one_trip)
    before = contents(mongod)
    mongod.trips.update_one({"trip_id": "t1"}, {"$set": {"distance_miles": 999.0}})
    load_file(one_trip)
    assert contents(mongod) == before


@pytest.mark.parametrize("again", [[], [{"distance_miles": 1.0}]], ids=["deleted", "inserted again"])
def test_an_import_writes_a_trip_again_that_another_program_deleted(load_file, one_trip, command, mongod, again):
    load_file(one_trip)
    source = mongod.trips.find_one_and_delete({"trip_id": "t1"})
    for fields in again:
        mongod.trips.insert_one({**source, **fields})
    load_file(one_trip)
    assert command("rollups", "verify").exit_code == 0
    assert mongod.trips.find_one()["_id"] == mongod.trip_details.find_one()["_id"]


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


@pytest.fixture(params=["one batch", "a batch a line", "an import a line"])
def load_lines(request, load_file, write_lines, monkeypatch):
    """Import documents in order, cut up in three ways."""

    def load_lines(*documents, kind="trips"):
        if request.param == "an import a line":
            for document in documents:
                load_file(write_lines("lines.ndjson", document), kind)
        else:
            load_file(write_lines("lines.ndjson", *documents), kind)

    if request.param == "a batch a line":
        monkeypatch.setattr(importer, "BATCH_LINES", 1)
    return load_lines


def test_a_later_line_of_a_trip_replaces_an_earlier_one(load_lines, mongod):
    load_lines(*(make_trip(trip_id="t1", distance_miles=miles) for miles in (1.0, 2.0, 3.0)), make_trip(trip_id="t2"))
    assert [trip["distance_miles"] for trip in mongod.trips.find({"trip_id": "t1"})] == [3.0]
    assert [day["summary"]["distance_miles"] for day in days(mongod)] == [13.0]


def test_a_later_line_of_a_driver_replaces_an_earlier_one_whole(load_lines, mongod):
    first = make_driver("d1", first_name="Ada", alias="A", first_travel_date="2026-01-01")
    load_lines(first, make_driver("d1", first_name="Eve", last_travel_date="2026-02-02"), kind="drivers")
    expected = make_driver("d1", first_name="Eve", last_travel_date="2026-02-02")
    assert list(mongod.drivers.find({}, {"_id": 0, "fleet": 0})) == [expected]
    assert profiles(mongod) == {"d1": expected}


def test_a_trip_that_moves_to_another_day_makes_both_days_right(load_lines, mongod):
    others = [make_trip("2026-03-10T09:00"), make_trip("2026-03-12T09:00")]
    load_lines(make_trip("2026-03-10T23:59", trip_id="t1"), *others, make_trip("2026-03-12T00:00", trip_id="t1"))
    assert dates_driven(mongod) == {("d1", "2026-03-10"): 1, ("d1", "2026-03-12"): 2}


def test_a_trip_that_moves_to_another_driver_leaves_none_behind(load_lines, mongod):
    load_lines(make_trip(driver_id="d1", trip_id="t1"), make_trip(driver_id="d2", trip_id="t1"))
    assert dates_driven(mongod) == {("d2", "2026-03-10"): 1}
    expected = make_driver("d2", first_travel_date="2026-03-10", last_travel_date="2026-03-10")
    assert profiles(mongod) == {"d2": expected}


def test_a_driver_who_was_imported_stays_when_the_last_trip_goes(load_file, load_lines, write_lines, mongod):
    load_file(write_lines("drivers.ndjson", make_driver("d1", alias="A")), "drivers")
    load_lines(make_trip(driver_id="d1", trip_id="t1"), make_trip(driver_id="d2", trip_id="t1"))
    assert profiles(mongod)["d1"] == make_driver("d1", alias="A")


MOVES = {
    "another day": {"start": "2026-03-11T08:00"},
    "another week": {"start": "2026-03-17T08:00"},
    "another driver": {"driver_id": "d2"},
    "another driver and week": {"start": "2026-03-17T08:00", "driver_id": "new"},
    "another tracking id": {"tracking_id": "k2"},
    "another distance": {"distance_miles": 99.5},
}


@pytest.mark.parametrize("batches", [2, pytest.param(1, marks=pytest.mark.large)])
@pytest.mark.parametrize("moved", MOVES.values(), ids=MOVES)
def test_after_a_move_the_store_has_what_the_last_lines_alone_would_give(mongod, moved, batches):
    others = [make_trip(f"2026-03-{day}T09:00", f"d{n}") for day in (10, 11, 17) for n in (1, 2)]
    trips = [
        make_trip(**{"start": "2026-03-10T08:00", "trip_id": "moves", "tracking_id": "k1", **fields})
        for fields in ({}, moved)
    ]
    earlier, last = [trips[0], *others], trips[1]
    for batch in ([*earlier, last],) if batches == 1 else (earlier, [last]):
        load(mongod, *batch)
    result = contents(mongod)
    for name in DATA:
        mongod[name].delete_many({})
    load(mongod, *others, last)
    assert contents(mongod) == result


def test_travel_dates_shrink_when_a_trip_moves_away(load_lines, mongod):
    first, last = make_trip("2026-03-01T08:00", trip_id="t1"), make_trip("2026-03-31T08:00", trip_id="t2")
    middle = make_trip("2026-03-15T08:00", trip_id="t3")
    load_lines(first, last, middle, {**first, "driver_id": "d2"}, make_trip("2026-03-20T08:00", trip_id="t2"))
    assert travel_dates(mongod, "d1") == ("2026-03-15", "2026-03-20")


# The dates in the file of drivers, and those that are served.
TRAVEL_DATES = [
    ((None, None), ("2026-03-10", "2026-03-12")),
    (("2026-01-01", "2026-12-31"), ("2026-01-01", "2026-12-31")),
    (("2026-03-11", "2026-03-11"), ("2026-03-10", "2026-03-12")),
    (("2026-04-01", None), ("2026-03-10", "2026-03-12")),
    ((None, "2026-04-01"), ("2026-03-10", "2026-04-01")),
]


@pytest.mark.parametrize("kinds", [("drivers", "trips"), ("trips", "drivers"), ("trips", "drivers", "trips")])
def test_travel_dates_are_the_widest_of_file_and_trips(load_file, write_lines, mongod, kinds):
    ids = [f"d{number}" for number in range(len(TRAVEL_DATES))]
    drivers = [
        make_driver(driver_id, first_travel_date=first, last_travel_date=last)
        for driver_id, ((first, last), _) in zip(ids, TRAVEL_DATES, strict=True)
    ]
    trips = [make_trip(start, driver_id) for driver_id in ids for start in ("2026-03-12T23:00", "2026-03-10T00:00")]
    paths = {"drivers": write_lines("drivers", *drivers), "trips": write_lines("trips", *trips)}
    for kind in kinds:
        load_file(paths[kind], kind)
    assert [travel_dates(mongod, driver_id) for driver_id in ids] == [served for _, served in TRAVEL_DATES]


def test_travel_dates_of_an_earlier_driver_file_do_not_linger(load_file, write_lines, mongod):
    load_file(write_lines("trips.ndjson", make_trip()))
    for first in ("2026-01-01", "2026-02-02"):
        load_file(write_lines("drivers.ndjson", make_driver("d1", first_travel_date=first)), "drivers")
    assert travel_dates(mongod) == ("2026-02-02", "2026-03-10")


def test_trips_leave_a_drivers_names_alone(load_file, write_lines, mongod):
    load_file(write_lines("drivers.ndjson", make_driver("d1", first_name="Ada", email="a@b")), "drivers")
    load_file(write_lines("trips.ndjson", make_trip(driver_id="d1")))
    driver = mongod.drivers.find_one({})
    assert (driver["first_name"], driver["last_name"], driver["email"]) == ("Ada", None, "a@b")


def test_a_trip_belongs_to_the_utc_date_of_its_start(load_file, write_lines, mongod):
    last = epoch_ms("2026-03-11T00:00") - 1
    before_1970 = make_trip(trip_start_time=-1, trip_end_time=0)
    load_file(write_lines("trips.ndjson", make_trip(trip_start_time=last, trip_end_time=last + 1), before_1970))
    assert set(dates_driven(mongod)) == {("d1", "2026-03-10"), ("d1", "1969-12-31")}


def test_fleets_with_the_same_ids_do_not_touch_each_other(load_file, write_lines, mongod):
    load_file(write_lines("drivers.ndjson", make_driver("d1", first_name="Ada")), "drivers")
    load_file(write_lines("trips.ndjson", make_trip("2026-03-10T08:00", trip_id="t1", distance_miles=1.0)))
    first = everything(mongod)
    load_file(write_lines("trips.ndjson", make_trip("2026-04-10T08:00", "d1", trip_id="t1")), fleet="f2")
    load_file(write_lines("drivers.ndjson", make_driver("d1", first_name="Eve")), "drivers", fleet="f2")
    after = everything(mongod)
    assert {name: [doc for doc in after[name] if "f1" in bson.decode(doc).values()] for name in after} == first
    assert trip_ids(mongod, fleet="f2") == ["t1"]


def test_many_batches_are_all_loaded(load_file, write_lines, mongod, monkeypatch):
    monkeypatch.setattr(importer, "BATCH_LINES", 7)
    result = load_file(write_lines("trips.ndjson", *(make_trip(driver_id=f"d{n % 5}") for n in range(50))))
    assert result.stdout == "trips.ndjson: 50 loaded, 0 rejected\n"
    assert dates_driven(mongod) == {(f"d{n}", "2026-03-10"): 10 for n in range(5)}


def test_a_batch_ends_at_its_bytes_too(load_file, write_lines, mongod, monkeypatch):
    monkeypatch.setattr(importer, "BATCH_BYTES", 1)
    load_file(write_lines("trips.ndjson", *(make_trip(trip_id=f"t{n}") for n in range(3))))
    assert trip_ids(mongod) == ["t0", "t1", "t2"]


# What cannot be read, and what was not meant.


def cut_gzip(lines):
    return gzip.compress(lines)[:-20]


def corrupt_gzip(lines):
    packed = bytearray(gzip.compress(lines, compresslevel=0))
    packed[len(packed) // 2] ^= 0xFF
    return bytes(packed)


def gzip_with_garbage(lines):
    return gzip.compress(lines) + b"garbage"


@pytest.mark.parametrize("damage", [cut_gzip, corrupt_gzip, gzip_with_garbage, lambda lines: b"\x1f\x8bx"])
def test_a_damaged_gzip_file_ends_in_one_line_and_leaves_the_rejects_file_alone(load_file, tmp_path, damage):
    path = tmp_path / "trips.ndjson.gz"
    rejects_of(path).write_text("of an earlier import")
    lines = ["bad", *(json.dumps(make_trip()) for _ in range(200))]
    path.write_bytes(damage("\n".join(lines).encode()))
    result = load_file(path, status=1)
    assert result.stderr.startswith(f"Error: {path} cannot be read")
    assert result.stderr.count("\n") == 1
    assert rejects_of(path).read_text() == "of an earlier import"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_whole_file_loads_after_a_damaged_one(load_file, tmp_path, mongod):
    path = tmp_path / "trips.ndjson.gz"
    lines = "\n".join(json.dumps(make_trip(trip_id=f"t{n}")) for n in range(3)).encode()
    for content, status in ((cut_gzip(lines), 1), (gzip.compress(lines), 0)):
        path.write_bytes(content)
        load_file(path, status=status)
    assert dates_driven(mongod) == {("d1", "2026-03-10"): 3}


def test_a_pipe_is_read_like_a_file(command, write_lines, mongod):
    path = write_lines("trips.ndjson", make_trip(trip_id="t1"))
    reading, writing = os.pipe()
    os.write(writing, path.read_bytes())
    os.close(writing)
    result = command("import", "--fleet", "f1", "--trips", f"/dev/fd/{reading}", "--rejects", str(path.parent))
    os.close(reading)
    assert result.exit_code == 0, result.output
    assert trip_ids(mongod) == ["t1"]


def test_neither_file_is_a_usage_error(command):
    result = command("import", "--fleet", "f1")
    assert result.exit_code == 2
    assert "--drivers" in result.stderr


def test_no_fleet_is_a_usage_error(command, write_lines):
    result = command("import", "--trips", str(write_lines("trips.ndjson", make_trip())))
    assert result.exit_code == 2
    assert "--fleet" in result.stderr


@pytest.mark.parametrize("option", ["--drivers", "--trips"])
@pytest.mark.parametrize("name", ["nowhere.ndjson", "."])
def test_what_is_no_file_is_a_usage_error(command, tmp_path, option, name):
    result = command("import", "--fleet", "f1", option, str(tmp_path / name))
    assert result.exit_code == 2
    assert option in result.stderr


@pytest.mark.parametrize("fleet", ["", "x" * 129, "a\nb"])
def test_a_fleet_id_out_of_bounds_is_a_usage_error(command, write_lines, mongod, fleet):
    result = command("import", "--fleet", fleet, "--trips", str(write_lines("trips.ndjson", make_trip())))
    assert result.exit_code == 2
    assert "--fleet" in result.stderr
    assert mongod.trips.count_documents({}) == 0


def test_a_folder_for_rejects_that_is_not_there_is_a_usage_error(command, write_lines, tmp_path):
    path = write_lines("trips.ndjson", make_trip())
    result = command("import", "--fleet", "f1", "--trips", str(path), "--rejects", str(tmp_path / "nowhere"))
    assert result.exit_code == 2
    assert "--rejects" in result.stderr


def test_an_integer_past_64_bits_is_rejected_among_valid_ones(command, mongod, write_lines):
    trail = [make_point(0, course=course) for course in (0, 2**63, 1e19)]
    path = write_lines("trips.ndjson", make_trip(trail_path=trail), make_trip(trip_id="after"))
    assert command("import", "--fleet", "f1", "--trips", str(path)).exit_code == 1
    assert [trip["trip_id"] for trip in mongod.trips.find()] == ["after"]


# It takes seconds to read its 240,000 points.
@pytest.mark.large
def test_a_trip_that_would_fit_but_for_what_is_stored_beside_it_is_rejected(command, mongod, write_lines):
    point = {"timestamp": 1, "latitude": 1, "longitude": 1, "course": 1}
    many = 240_000
    sizes = [len(bson.encode(make_trip(trip_id="big", trail_path=[point] * n))) for n in (many, many + 1)]
    many += (16 * 1024 * 1024 - sizes[0]) // (sizes[1] - sizes[0])
    trip = make_trip(trip_id="big", trail_path=[point] * many)
    path = write_lines("trips.ndjson", json.dumps(trip, separators=(",", ":")), make_trip(trip_id="after"))
    assert command("import", "--fleet", "f1", "--trips", str(path)).exit_code == 1
    assert [trip["trip_id"] for trip in mongod.trips.find()] == ["after"]


def test_a_rejects_file_never_takes_the_place_of_an_input(command, write_lines):
    trips, drivers = write_lines("a", make_trip()), write_lines("a.rejected.ndjson", make_driver())
    result = command("import", "--fleet", "f1", "--trips", str(trips), "--drivers", str(drivers))
    assert (result.exit_code, drivers.exists()) == (2, True)
    assert "a.rejected.ndjson" in result.stderr


@pytest.fixture
def limited_files():
    """A limit on the size of files that this process writes, as of a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_an_error_in_one_line_and_leaves_nothing(command, write_lines, tmp_path, limited_files):
    path = write_lines("trips.ndjson.gz", *["x" * 9000] * 3)
    result = command("import", "--fleet", "f1", "--trips", str(path))
    assert result.exit_code == 1
    assert "cannot be written: File too large" in result.stderr
    assert list(tmp_path.iterdir()) == [path]
