"""Imports as processes of their own, to be killed: what they load, and what they leave in the store."""

import json
import os
import subprocess
import sys

import bson
from scripts.derive import writing

from tests.factories import make_trip

TRIPS = 300
# Twenty batches to be killed in.
SMALL_BATCHES = "from scripts import cli, imports; imports.BATCH_LINES = 15; cli.main()"
DEADLINE_SECONDS = 60
COLLECTIONS = ("drivers", "trips", "daily_summaries", "served_spans", "served_drivers", "served_trackings", "writers")


def make_trips(count):
    """Return trips of 20 drivers with two tracking ids, spread over 9 days."""
    return [
        make_trip(
            f"2026-03-{10 + n % 9}T08:00", f"d{n % 20}", trip_id=f"t{n}", tracking_id=f"k{n % 2}", distance_miles=n / 7
        )
        for n in range(count)
    ]


def moved(trips):
    """Return the trips on other days and, every third one, of other drivers and with another tracking id."""
    return [
        {
            **trip,
            **_times_of(trip, days=n % 5),
            "driver_id": f"d{(n if n % 3 else n + 7) % 25}",
            "tracking_id": f"k{n % 3}",
        }
        for n, trip in enumerate(trips)
    ]


def _times_of(trip, days):
    return {name: trip[name] + days * 86_400_000 for name in ("trip_start_time", "trip_end_time")}


def write_moving(folder, count=TRIPS):
    """Write two files, and return their paths: trips, and where each of them moves to."""
    trips = make_trips(count)
    for name, lines in (("first", trips), ("second", moved(trips))):
        (folder / name).write_bytes(b"\n".join(json.dumps(line).encode() for line in lines))
    return folder / "first", folder / "second"


def start_import(uri, database, *words):
    """Start a real import into the fleet f1, in small batches."""
    environ = {**os.environ, "MONGODB_URI": uri, "MONGODB_DATABASE": database}
    command = [sys.executable, "-c", SMALL_BATCHES, "import", "--fleet", "f1", *map(str, words)]
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Let the import come to its end, which must be a good one."""
    _, said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said


def stored(db):
    """Return what lies in the store, as bytes, but for each document's _id."""
    return {name: sorted(bson.encode(document) for document in db[name].find({}, {"_id": 0})) for name in COLLECTIONS}


def answers(service):
    """Return what the service answers of all that these imports write, whole and masked, or the status."""
    some = "&".join(f"driver_id=d{n}" for n in range(5))
    paths = [
        "/drivers",
        "/drivers?page=2&limit=3",
        *(f"/driver/d{n}/trips?start_date=2026-03-01" for n in (0, 1, 7)),
        *(f"/trip/tracking_id/k{n}" for n in range(3)),
        *(
            f"/driver-aggregate/{kind}?start_date=2026-03-{day}&{some}"
            for kind in ("daily", "weekly")
            for day in ("09", 16)
        ),
        *(f"/driver-aggregate/daily?start_date=2026-03-{day}&driver_id=d7" for day in (10, 17)),
    ]
    masks = [{}, {"X-Fields": "*,drivers{driver_id,last_travel_date},data{driver_info{first_travel_date,driver_id}}"}]
    found = {(path, *mask): service.get(path, headers=mask) for path in paths for mask in masks}
    return {asked: answer.data if answer.status_code == 200 else answer.status_code for asked, answer in found.items()}


def assert_served_as_repaired(db, service):
    """Assert that what is served of a store that a killed import left is what is once that is repaired."""
    before = answers(service)
    with writing(db, "f1"):
        pass
    for asked, after in answers(service).items():
        assert before[asked] == after, f"{asked}: {before[asked]} before, {after} after"


def restore(db, state):
    """Bring the store back to what `stored` returned."""
    for name, documents in state.items():
        db[name].delete_many({})
        if documents:
            db[name].insert_many(map(bson.decode, documents))
