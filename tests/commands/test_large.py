"""An import of 100,000 trips."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import epoch_ms, make_event, make_point, make_trip

pytestmark = pytest.mark.large

TRIPS, DRIVERS, A_DAY, POINTS = 100_000, 200, 4, 60
MAX_RESIDENT_MB = 500
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


def test_a_large_import_takes_bounded_memory_and_leaves_nothing_out(mongod, mongod_uri, tmp_path, capsys):
    trips = tmp_path / "trips.ndjson"
    write_trips(trips)
    command = Path(sys.executable).with_name("driver-analytics")
    process = subprocess.Popen(
        [command, "import", "--fleet", "f1", "--trips", trips],
        env={**os.environ, "MONGODB_URI": mongod_uri, "MONGODB_DATABASE": mongod.name},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    resident_mb, cpu = usage.ru_maxrss // 1024, usage.ru_utime + usage.ru_stime
    with capsys.disabled():
        print(f"\n{TRIPS} trips: {resident_mb} MB resident, {TRIPS / cpu:.0f} a second of its own processor time")
    assert process.returncode == 0
    assert resident_mb < MAX_RESIDENT_MB
    assert mongod.trips.count_documents({"fleet": "f1"}) == TRIPS
    assert mongod.daily_summaries.count_documents({"fleet": "f1", "summary.trip_count": A_DAY}) == TRIPS // A_DAY
