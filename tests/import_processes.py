"""Imports as processes of their own, which may be killed, and what they load.

Run as a module it is the command line with small batches; with KILL_BEFORE it kills itself.
"""

import json
import os
import signal
import subprocess
import sys

from pymongo import monitoring

from scripts.cli import main
from scripts.ingest import importer
from tests.factories import make_trip
from tests.fleet_states import FLEET
from tests.service_process import ROOT

BATCH_LINES = 15
DEADLINE_SECONDS = 120
MS_PER_DAY = 86_400_000


class KillBefore(monitoring.CommandListener):
    """Kills this process after so many transactions, before the first command of a name in the next one."""

    def __init__(self, transactions, command):
        self.left, self.command = int(transactions), command

    def started(self, event):
        if self.left == 0 and event.command_name == self.command and "autocommit" in event.command:
            os.kill(os.getpid(), signal.SIGKILL)

    def succeeded(self, event):
        self.left -= event.command_name == "commitTransaction"

    def failed(self, event):
        """Do nothing."""


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


def start_import(uri, database, *words, kill_before=""):
    """Start a real import in small batches; with the arguments of KillBefore, it kills itself."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "MONGODB_URI": uri, "MONGODB_DATABASE": database}
    environ["KILL_BEFORE"] = kill_before
    command = [sys.executable, "-m", "tests.import_processes", "import", "--fleet", FLEET, *map(str, words)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Wait for an import, which must succeed."""
    _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, errors


def wait_killed(process):
    """Wait for an import that is killed."""
    _, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == -signal.SIGKILL, errors


if __name__ == "__main__":
    importer.BATCH_LINES = BATCH_LINES
    if words := os.environ["KILL_BEFORE"].split():
        monitoring.register(KillBefore(*words))
    main()
