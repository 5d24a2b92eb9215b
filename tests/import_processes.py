"""Imports as processes of their own, and what they load. Run as a module it is the command line with small batches."""

import json
import os
import subprocess
import sys

from scripts.cli import main
from scripts.ingest import loader
from tests.factories import make_trip
from tests.fleet_states import FLEET
from tests.service_process import ROOT

BATCH_LINES = 15
MS_PER_DAY = 86_400_000


def make_trips(count, first_date="2026-03-09"):
    """Return trips of 20 drivers over 9 days, with two tracking ids."""
    trips = (
        make_trip(f"{first_date}T08:00", f"d{n % 20}", trip_id=f"t{n}", tracking_id=f"k{n % 2}", distance_miles=n / 7)
        for n in range(count)
    )
    return [shift(trip, days=n % 9) for n, trip in enumerate(trips)]


def move(trips):
    """Return the trips on other days and, every third one, of other drivers and with another tracking id."""
    return [
        {
            **shift(trip, days=n % 5),
            "driver_id": f"d{(n if n % 3 else n + 7) % 25}",
            "tracking_id": f"k{n % 3}",
        }
        for n, trip in enumerate(trips)
    ]


def shift(trip, days):
    """Return a trip so many days later."""
    return {**trip, **{name: trip[name] + days * MS_PER_DAY for name in ("trip_start_time", "trip_end_time")}}


def write_file(path, lines):
    """Write an NDJSON file, and return its path."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def start_import(uri, database, *words):
    """Start a real import in small batches."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "MONGODB_URI": uri, "MONGODB_DATABASE": database}
    command = [sys.executable, "-m", "tests.import_processes", "import", "--fleet", FLEET, *map(str, words)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


if __name__ == "__main__":
    loader.BATCH_RECORDS = BATCH_LINES
    main()
