"""An import of 100,000 trips, and of lines as long and wrong as can be; a report on 100,000 drivers."""

import json
import urllib.request
from pathlib import Path

import pytest

from tests.factories import epoch_ms, make_driver, make_event, make_event_summary, make_point, make_trip
from tests.service_process import measure, run_service
from tests.store_contents import issue_key, load

pytestmark = pytest.mark.large

TRIPS, DRIVERS, A_DAY, POINTS = 100_000, 200, 4, 20
# All lines of the file together have 280 MB.
MAX_RESIDENT_MB, MAX_REPORT_MB = 300, 300
LINE_BYTES, MAX_INVALID_MB = 14_900_000, 600
REPORT_DRIVERS, DATE = 100_000, "2026-01-08"
DAY_MS, HOUR_MS = 86_400_000, 3_600_000


def write_trips(path):
    """Write the trips of a fleet in the order of their time, as upstream would."""
    first = epoch_ms("2026-01-01T06:00")
    with path.open("w") as file:
        for round_number in range(TRIPS // DRIVERS):
            day, hour = divmod(round_number, A_DAY)
            start = first + day * DAY_MS + hour * HOUR_MS
            trail = [make_point(start + n * 5000, latitude=41.25 + n / 3e4, course=n * 6.1) for n in range(POINTS)]
            trip = make_trip(trip_id="#", driver_id="@", trail_path=trail, events=[make_event(start)])
            trip |= {"trip_start_time": start, "trip_end_time": start + HOUR_MS // 2}
            line = json.dumps(trip) + "\n"
            for driver in range(DRIVERS):
                file.write(line.replace("#", f"trip-{round_number}-{driver}").replace("@", f"driver-{driver}"))


def test_a_large_import_takes_bounded_memory_and_leaves_nothing_out(mongod, mongod_uri, tmp_path, report):
    trips = tmp_path / "trips.ndjson"
    write_trips(trips)
    words = ["import", "--fleet", "f1", "--trips", trips]
    status, most, cpu = measure(words, MONGODB_URI=mongod_uri, MONGODB_DATABASE=mongod.name)
    report(f"{TRIPS} trips: {most} MB resident, {TRIPS / cpu:.0f} a second of its own processor time")
    assert (status, most < MAX_RESIDENT_MB) == (0, True)
    assert mongod.trips.count_documents({"fleet": "f1"}) == TRIPS
    days = {"fleet": "f1", "period": "day", "trip_count": A_DAY}
    assert mongod.driver_periods.count_documents(days) == TRIPS // A_DAY


@pytest.mark.parametrize(
    ("path", "unit", "brackets"),
    [
        ("events", "{{}},", "[]"),
        ("trail_path", "0,", "[]"),
        ("trail_path", '"\\u0100",', "[]"),
        ("event_summary", '"{:07}":0,', "{}"),
        ("unknown", '"\\u0061{:07}":0,', "{}"),
    ],
)
def test_lines_that_are_all_wrong_take_bounded_memory(mongod, mongod_uri, tmp_path, report, path, unit, brackets):
    many = "".join(map(unit.format, range(LINE_BYTES // len(unit.format(0)))))[:-1]
    line = json.dumps({**make_trip(), path: "@"}).replace('"@"', f"{brackets[0]}{many}{brackets[1]}")
    (trips := tmp_path / "trips.ndjson").write_text(f"{line}\n" * 4)
    words = ["import", "--fleet", "f1", "--trips", trips]
    status, most, _ = measure(words, MONGODB_URI=mongod_uri, MONGODB_DATABASE=mongod.name)
    report(f"4 lines of {len(line)} bytes, {path}: {most} MB resident")
    assert (status, most < MAX_INVALID_MB) == (1, True)


def fill(db):
    """Load a fleet of 100,000 drivers with long names, each of whom drove on a day."""
    totals = {"trip_count": 2, "distance_miles": 12.3456789, "duration_seconds": 1800, "highway_miles": 0.1}
    summary = {**totals, "night_driving_seconds": 0, "events_summary": make_event_summary(hard_brake_count=1)}
    for first in range(0, REPORT_DRIVERS, 5_000):
        ids = [f"d{number:06}" for number in range(first, first + 5_000)]
        names = {name: f"{name} of forty characters or so, all told" for name in ("first_name", "last_name", "alias")}
        load(db, drivers=[make_driver(driver_id, **names) for driver_id in ids])
        day = {"fleet": "f1", "period": "day", "start_date": "2026-01-05", "summary": summary}
        days = [{**day, "driver_id": driver_id} for driver_id in ids]
        db.driver_periods.insert_many(days, bypass_document_validation=True)


def resident_mb(pid):
    """Return the most that a process had resident so far."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def test_a_report_on_a_large_fleet_takes_bounded_memory_in_both_directions(mongod_uri, tmp_path, report):
    with run_service(mongod_uri, tmp_path, "large_report") as (process, db):
        # By default, a server lets a command read the same snapshot for 5 minutes; that of the tests, for less.
        db.client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=300)
        fill(db)
        words = ["reports", "build", "--fleet", "f1", "--report-date", DATE]
        status, building, cpu = measure(words, **process.environment)
        link = process.get(f"/report?report_time={DATE}T00:00:00", issue_key(db, "f1"))[1]["report_link"]
        lines = size = 0
        with urllib.request.urlopen(link, timeout=60) as response:
            while part := response.read(1 << 16):
                lines, size = lines + part.count(b"\n"), size + len(part)
        pid = process.process.pid
        workers = map(resident_mb, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        most = max(building, *workers)
    report(f"{lines - 1} drivers, {size} bytes: {most} MB resident at the most, {cpu:.0f} s to build")
    assert (status, lines) == (0, REPORT_DRIVERS + 1)
    assert most < MAX_REPORT_MB
