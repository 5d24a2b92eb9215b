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

from schemas.trip import TripDetail, TripSummary
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


def pages(service, path, records, **query):
    """Return the records of all pages."""
    result, page = [], 1
    while page:
        response = service.get(path, page=page, **query)
        assert response.status_code == 200, response.text
        result += response.json[records]
        page = response.json["next_page"]
    return result


def quoted(identifier):
    return urllib.parse.quote(identifier, safe="")


def oldest_first(trip):
    return trip["trip_start_time"], trip["trip_id"]


def test_every_driver_is_served_as_in_the_file(real, files):
    _, rows = files
    assert pages(real, "/drivers", "drivers", limit=7) == sorted(rows["drivers"], key=lambda row: row["driver_id"])


def test_every_trip_of_every_driver_is_listed_in_order(real, files):
    _, rows = files
    start = min(row["date"] for row in rows["expected_daily"])
    summary = list(TripSummary().fields)
    for driver in rows["drivers"]:
        path = f"/driver/{quoted(driver['driver_id'])}/trips"
        mine = sorted((t for t in rows["trips"] if t["driver_id"] == driver["driver_id"]), key=oldest_first)
        returned = pages(real, path, "trips", start_date=start, limit=3)
        assert json.dumps(returned) == json.dumps([{name: trip[name] for name in summary} for trip in mine])


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
