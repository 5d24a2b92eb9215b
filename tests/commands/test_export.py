"""driver-analytics export: files that can be imported again, and Parquet files."""

import datetime
import gzip
import json
import os
import random
import re
from pathlib import Path

import duckdb
import pytest

from app.store import Store
from scripts.materialize.fleet_settings import set_settings
from tests.conftest import Service
from tests.factories import (
    epoch_ms,
    make_driver,
    make_event,
    make_event_summary,
    make_point,
    make_speeding,
    make_trip,
)
from tests.store_contents import load

DATA = Path(__file__).parent.parent.parent / "docs" / "data.md"
NUMBERS = {
    "distance_miles": 2**53 + 1,
    "highway_miles": 0.1 + 0.2,
    "night_driving_miles": 1e-300,
    "start_latitude": -5e-324,
}
FOCUS = dict.fromkeys(("is_phone_use", "is_rapid_acceleration", "is_hard_brake", "is_overspeeding"), True)
TRIPS = [
    make_trip("2026-03-10T08:00", "d1", trip_id="odd", tracking_id="k", **NUMBERS),
    make_trip("2026-03-10T09:00", "d1", trip_id="a/ü", focus_area=FOCUS, insurance_period=2),
    make_trip(
        "2026-03-11T09:00",
        "not in the file",
        trip_id="t3",
        events=[make_speeding(1, 61.5, 55, 70.25), make_event(2)],
        event_summary=make_event_summary(hard_brake_count=9),
    ),
]
# Text that looks like a date, and characters that have a meaning in JSON, SQL or C.
ODD_TEXT = "2026-03-10\0\x1f\x7f\u2028'\\\U0001f600"
DRIVERS = [
    make_driver("d1", first_name='Ada "A"', first_travel_date="2025-01-01", groups=["North", "Vans"]),
    make_driver("idle", first_name="2026-03-10", last_name=ODD_TEXT, first_travel_date="0001-01-01"),
]
PATHS = (
    "/drivers",
    "/driver/d1/trips?start_date=2026-03-01",
    "/trip/trip_id/odd",
    "/trip/trip_id/a%2F%C3%BC",
    "/trip/tracking_id/k",
    "/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1&driver_id=idle",
    "/driver-aggregate/weekly?start_date=2026-03-09&driver_id=d1&driver_id=not%20in%20the%20file",
)


@pytest.fixture
def loaded(mongod, clock):
    load(mongod, *TRIPS, drivers=DRIVERS)
    return mongod


@pytest.fixture
def export(command, loaded, tmp_path):
    """Export the fleet f1 with options; return the folder."""

    def export(*options):
        ended = command("export", "--fleet", "f1", "--out", str(tmp_path / "out"), *options)
        assert ended.exit_code == 0, ended.output
        return tmp_path / "out"

    return export


def read(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_an_import_of_an_export_gives_the_same_responses_to_the_byte(command, loaded, export):
    folder = export()
    files = ("--drivers", str(folder / "drivers.ndjson.gz"), "--trips", str(folder / "trips.ndjson.gz"))
    assert command("import", "--fleet", "f2", *files).exit_code == 0
    service = Service(loaded)
    for path in PATHS:
        first, second = (service.get(path, fleet=fleet) for fleet in ("f1", "f2"))
        assert (second.status_code, second.data) == (200, first.data)


def test_the_daily_summaries_are_those_of_the_api(loaded, export):
    days = read(export() / "daily_summaries.ndjson.gz")
    daily = Service(loaded).get("/driver-aggregate/daily?start_date=2026-03-10&driver_id=d1").json
    assert [(day["driver_id"], day["date"]) for day in days] == [
        ("d1", "2026-03-10"),
        ("not in the file", "2026-03-11"),
    ]
    assert days[0] == {"driver_id": "d1", **daily["data"][0]["driving_summary"]}


def test_one_driver_is_exported_alone(export):
    folder = export("--driver", "d1")
    assert [driver["driver_id"] for driver in read(folder / "drivers.ndjson.gz")] == ["d1"]
    assert [trip["trip_id"] for trip in read(folder / "trips.ndjson.gz")] == ["odd", "a/ü"]
    assert len(read(folder / "daily_summaries.ndjson.gz")) == 1


def test_since_leaves_out_the_trips_and_days_before_a_date_in_the_time_zone_of_the_fleet(loaded, export):
    set_settings(Store.of(loaded), "f1", time_zone="America/Denver")
    load(loaded, make_trip("2026-03-13T05:59"), make_trip("2026-03-13T06:00", trip_id="midnight"))
    folder = export("--since", "2026-03-13")
    assert len(read(folder / "drivers.ndjson.gz")) == 2
    assert [trip["trip_id"] for trip in read(folder / "trips.ndjson.gz")] == ["midnight"]
    assert [day["date"] for day in read(folder / "daily_summaries.ndjson.gz")] == ["2026-03-13"]


@pytest.mark.parametrize("file_format", ["ndjson", "parquet"])
def test_only_their_owner_reads_the_files_and_no_others_are_left(export, file_format):
    folder = export("--format", file_format)
    assert {path.name.partition(".")[2] for path in folder.iterdir()} <= {"ndjson.gz", "parquet"}
    assert {path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())} == {0o700, 0o600}


def test_an_export_takes_the_place_of_an_earlier_one(loaded, export):
    export()
    load(loaded, make_trip("2026-03-12T08:00", "d1"))
    folder = export()
    assert len(read(folder / "trips.ndjson.gz")) == 4
    assert len(list(folder.iterdir())) == 3


def test_an_unknown_driver_is_an_error_in_one_line(command, loaded, tmp_path):
    ended = command("export", "--fleet", "f1", "--driver", "nobody", "--out", str(tmp_path / "out"))
    assert ended.stderr == "Error: Nothing is stored of the driver nobody in the fleet f1.\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["/dev/full", "/proc/z"])
def test_a_folder_that_cannot_be_written_is_named_with_the_option(command, loaded, out):
    ended = command("export", "--fleet", "f1", "--out", out)
    assert ended.exit_code == 1
    assert re.fullmatch(f"Error: {out} cannot be written: .*\\. Give --out another folder, .*\n", ended.stderr)


def test_a_failed_export_leaves_no_files_and_no_folder(command, loaded, tmp_path):
    loaded.driver_periods.update_many({}, {"$set": {"json": 1}}, bypass_document_validation=True)
    assert command("export", "--fleet", "f1", "--out", str(tmp_path / "out")).exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def many_points(loaded):
    """A trip whose line takes more than 20,000 bytes when it is compressed, so that `limited_files` has no room."""
    places = random.Random(7)
    points = [make_point(n, latitude=places.random(), longitude=places.random()) for n in range(2_000)]
    load(loaded, make_trip(driver_id="d1", trip_id="long", trail_path=points))


@pytest.mark.parametrize("file_format", ["ndjson", "parquet"])
def test_a_full_disk_leaves_nothing(command, many_points, tmp_path, limited_files, file_format):
    ended = command("export", "--fleet", "f1", "--out", str(tmp_path / "out"), "--format", file_format)
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith(f"Error: {tmp_path}/out cannot be written: File too large. Give --out another ")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_an_earlier_export_as_it_is(command, loaded, export, request):
    folder = export()
    (folder / "mine").mkdir()
    before = {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()}
    for fixture in ("many_points", "limited_files"):
        request.getfixturevalue(fixture)
    assert command("export", "--fleet", "f1", "--out", str(folder)).exit_code == 1
    assert {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()} == before


def test_an_empty_folder_that_was_there_stays(command, many_points, tmp_path, limited_files):
    (tmp_path / "out").mkdir()
    assert command("export", "--fleet", "f1", "--out", str(tmp_path / "out")).exit_code == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/tmp"), lambda path: path.write_text("")])
def test_what_another_user_puts_where_an_export_writes_is_an_error(command, loaded, tmp_path, make):
    path = tmp_path / "out" / "driver-analytics-export.part"
    path.parent.mkdir()
    make(path)
    ended = command("export", "--fleet", "f1", "--out", str(path.parent))
    assert "out cannot be written: File exists. Give --out another folder" in ended.stderr
    assert [*path.parent.iterdir()] == [path]


@pytest.fixture
def query(export):
    """Query the Parquet files with DuckDB: `query("SELECT ... FROM 'trips.parquet'")`."""
    folder = export("--format", "parquet")

    def query(text):
        with duckdb.connect() as connection:
            return connection.sql(text.replace("FROM '", f"FROM '{folder}/")).fetchall()

    return query


def test_parquet_has_a_row_for_each_trip_point_event_and_day(query):
    tables = ("drivers", "trips", "trail_points", "events", "daily_summaries")
    assert [query(f"SELECT count(*) FROM '{name}.parquet'") for name in tables] == [[(n,)] for n in (2, 3, 6, 2, 2)]


def test_a_parquet_driver_has_a_list_of_groups(query):
    rows = query("SELECT driver_id, groups FROM 'drivers.parquet' ORDER BY driver_id")
    assert rows == [("d1", ["North", "Vans"]), ("idle", [])]


def test_a_parquet_trip_has_its_summary_and_focus_area_in_columns(query):
    columns = "trip_start_time, distance_miles, insurance_period, tracking_id, hard_brake_count, is_hard_brake"
    start = epoch_ms("2026-03-10T09:00")
    assert query(f"SELECT {columns} FROM 'trips.parquet' WHERE trip_id = 'a/ü'") == [(start, 10.0, 2, None, 0, True)]
    assert query("SELECT trip_id FROM 'trips.parquet' WHERE is_hard_brake ORDER BY trip_id") == [("a/ü",), ("t3",)]


def test_a_parquet_event_has_the_speeds_of_its_type_and_a_day_its_date(query):
    columns = "trip_id, event_name, user_speed_mph, speed_limit_mph"
    events = query(f"SELECT {columns} FROM 'events.parquet' ORDER BY event_type DESC")
    assert events == [("t3", "OVERSPEEDING", 61.5, 55.0), ("t3", "HARD_BRAKE", None, None)]
    days = query("SELECT driver_id, date::VARCHAR, trip_count FROM 'daily_summaries.parquet' ORDER BY date")
    assert days == [("d1", "2026-03-10", 2), ("not in the file", "2026-03-11", 1)]


def test_a_parquet_number_has_each_bit_of_a_double_and_a_date_may_be_in_the_year_1(query):
    (numbers,) = query(f"SELECT {', '.join(NUMBERS)} FROM 'trips.parquet' WHERE trip_id = 'odd'")
    assert [value.hex() for value in numbers] == [float(value).hex() for value in NUMBERS.values()]
    columns = "first_name, last_name, email, first_travel_date"
    (driver,) = query(f"SELECT {columns} FROM 'drivers.parquet' WHERE driver_id = 'idle'")
    assert driver == ("2026-03-10", ODD_TEXT, None, datetime.date(1, 1, 1))


def test_the_query_of_the_documentation_works(export, monkeypatch):
    (text,) = re.findall(r"```sql\n(.*?)```", DATA.read_text(), re.DOTALL)
    monkeypatch.chdir(export("--format", "parquet"))
    with duckdb.connect() as connection:
        (row, _) = connection.sql(text).fetchall()
    assert (row[0], str(row[1])[:10], row[3]) == ("d1", "2026-03-09", 0)


def test_parquet_files_without_a_row_can_be_read(export):
    folder = export("--since", "2026-03-12", "--format", "parquet")
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT count(trip_id) FROM '{folder}/trips.parquet'").fetchall() == [(0,)]


def test_a_folder_of_parquet_files_may_have_any_name(command, loaded, tmp_path):
    folder = tmp_path / "driver_id=1 [*]? {a,b} '"
    ended = command("export", "--fleet", "f1", "--out", str(folder), "--format", "parquet")
    assert (ended.exit_code, len(list(folder.iterdir()))) == (0, 5)
