"""An import is killed at any moment, and run again."""

import random
import signal
import subprocess
import time
from contextlib import suppress

import pytest
import time_machine

from tests.conftest import NOW, Service
from tests.factories import make_driver
from tests.imports import assert_served_as_repaired, finish, restore, start_import, stored, write_moving
from tests.resilience.fleet import write_lines
from tests.served import until

KILLS = 20
# Ten batches to be killed in.
TRIPS = 150
DRIVERS = [make_driver(f"d{n}", alias=f"A{n}", last_travel_date="2026-12-31") for n in range(0, 30, 2)]


@pytest.fixture
def words(tmp_path):
    """The options of two imports: the second one moves the trips of the first, and names drivers."""
    first, second = write_moving(tmp_path, TRIPS)
    return ["--trips", str(first)], ["--trips", str(second), "--drivers", str(write_lines(tmp_path / "d", DRIVERS))]


@pytest.fixture
def start(mongod_uri, mongod, words):
    """Start the second import, and wait until it writes."""

    def start():
        process = start_import(mongod_uri, mongod.name, *words[1])
        until(lambda: mongod.writers.find_one() or process.poll() is not None)
        return process

    return start


def kill_after(process, seconds):
    """Kill an import after some time; return whether it had not ended by then."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def test_a_run_after_a_kill_at_any_moment_ends_like_one_clean_run(command, start, mongod, words, report):
    seed = random.randrange(1_000_000)
    moments, kills, tries = random.Random(seed), 0, 0
    assert command("import", "--fleet", "f1", *words[0]).exit_code == 0
    first, process, began = stored(mongod), start(), time.monotonic()
    finish(process)
    clean, seconds = stored(mongod), time.monotonic() - began
    while kills < KILLS:
        restore(mongod, first)
        tries += 1
        kills += kill_after(start(), moments.uniform(0, seconds))
        with time_machine.travel(NOW, tick=False):
            assert_served_as_repaired(mongod, Service(mongod))
        assert command("import", "--fleet", "f1", *words[1]).exit_code == 0
        assert stored(mongod) == clean, f"seed {seed}, try {tries}"
    assert command("rollups", "verify").exit_code == 0
    report(
        f"import killed at {kills} random moments of the {seconds:.1f} s that it writes: what was served was what is "
        "stored. Run again: the store as after one clean run each time, all "
        f"{sum(map(len, clean.values())):,} documents"
    )
