"""Real trips, from the command line through the store to the API, compared with the files."""

import gzip
import json
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from click.testing import CliRunner
from pymongo import MongoClient

from schemas.trip import TripDetail
from scripts.cli import cli
from tests.conftest import Service

REALDATA = Path(__file__).parents[3] / "shared" / "realdata"
AMOUNTS = ("distance_miles", "duration_seconds", "night_driving_seconds", "highway_miles")

pytestmark = pytest.mark.skipif(
    not REALDATA.is_dir() and not os.environ.get("CI"), reason="the folder of real data is not there"
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The three files, moved to the last complete week, and what is in them."""
    if not REALDATA.is_dir():
        pytest.fail(f"CI requires the real data in {REALDATA}")
    folder = tmp_path_factory.mktemp("realdata")
    subprocess.run([sys.executable, REALDATA / "shift.py", folder], check=True, capture_output=True)
    rows = {}
    for name in ("drivers", "trips", "expected_daily"):
        with gzip.open(folder / f"{name}.ndjson.gz", "rt") as lines:
            rows[name] = [json.loads(line) for line in lines]
    return folder, rows


@pytest.fixture(scope="module")
def real(mongod_uri, files):
    """The service over the imported files."""
    folder, _ = files
    words = ["import", "--fleet", "f1"]
    words += ["--drivers", f"{folder}/drivers.ndjson.gz", "--trips", f"{folder}/trips.ndjson.gz"]
    result = CliRunner().invoke(cli, words, env={"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": "real"})
    assert result.stdout == "drivers.ndjson.gz: 18 loaded, 0 rejected\ntrips.ndjson.gz: 94 loaded, 0 rejected\n"
    with MongoClient(mongod_uri) as client:
        yield Service(client["real"])
        client.drop_database("real")


def quoted(identifier):
    return urllib.parse.quote(identifier, safe="")


def test_every_trip_is_served_in_full(real, files):
    _, rows = files
    detail = list(TripDetail().fields)
    for trip in rows["trips"]:
        (returned,) = real.get(f"/trip/trip_id/{quoted(trip['trip_id'])}").json["trips"]
        assert json.dumps(returned) == json.dumps({name: trip[name] for name in detail})
    assert sum(len(trip["trail_path"]) for trip in rows["trips"]) == 94_167


def test_every_driver_day_adds_up_to_what_was_worked_out_apart_from_the_service(real, files):
    _, rows = files
    for row in rows["expected_daily"]:
        response = real.get("/driver-aggregate/daily", start_date=row["date"], driver_id=row["driver_id"])
        returned = response.json["data"][0]["driving_summary"]
        assert {name: returned[name] for name in row if name != "driver_id"} == {
            **{name: row[name] for name in row if name != "driver_id"},
            **{name: pytest.approx(row[name], rel=1e-9) for name in AMOUNTS},
        }
