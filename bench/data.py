"""The data to be measured on: made, imported and kept, so that a repeat on the same day starts at once."""

import contextlib
import datetime
import hashlib
import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from pymongo import ASCENDING, MongoClient

from app.store import Document
from bench import fleet
from bench.servers import DATA, DATABASE, ROOT, Failed, Server, command, environment, mongod, mongodb_uri

SOURCES = ("app", "schemas", "scripts", "bench/fleet.py")
RECORD = "loaded.json"
# What a service needs that lists trips from the sources, as the floor and the peers do.
PEERS_INDEX = [(name, ASCENDING) for name in ("fleet", "driver_id", "trip_start_time", "trip_id", "trip_end_time")]


class Imported(NamedTuple):
    """What an import took: seconds by the clock, and processor seconds of the command and of mongod."""

    seconds: float
    cpu: float
    mongod_cpu: float


def digest(checkout: Path = ROOT) -> str:
    """Return what tells whether stored data were made by the code as it stands."""
    files = [
        file
        for source in SOURCES
        for file in ([ROOT / source] if source.endswith(".py") else (checkout / source).rglob("*.py"))
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


@contextlib.contextmanager
def folder(
    name: str, fits: dict[str, Any], *, keep: bool = False, checkout: Path = ROOT, **server: Any
) -> Iterator[tuple[Server, dict[str, Any]]]:
    """Run mongod on the data folder of a name, emptied unless it `fits` and is of today and of the code as it stands.

    Gives mongod, started with the options `server`, and the record of what is loaded, to which the caller adds. With
    `keep` other code's data will do.
    """
    path, made_by = DATA / name, digest(checkout)
    fits = {"date": str(fleet.today()), **fits}
    record = _record(path)
    if not fits.items() <= record.items() or (record["digest"] != made_by and not keep):
        shutil.rmtree(path, ignore_errors=True)
        record = {**fits, "digest": made_by}
    with mongod(path / "mongodb", **server) as started:
        try:
            yield started, record
        finally:
            (path / RECORD).write_text(json.dumps(record))


def _record(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads((path / RECORD).read_text())
    except (OSError, ValueError):
        return {}
    return record


def make_files(name: str, shape: fleet.Shape, base: datetime.date) -> tuple[Path, Path]:
    """Write the files of a fleet, or return those of the same shape and date that are there."""
    DATA.mkdir(exist_ok=True)
    mark = hashlib.sha256(f"{shape} {base}".encode() + Path(fleet.__file__).read_bytes()).hexdigest()[:12]
    drivers, trips = (DATA / f"{name}-{mark}-{kind}.ndjson.gz" for kind in ("drivers", "trips"))
    for old in DATA.glob(f"{name}-*.ndjson.gz"):
        if old not in (drivers, trips):
            old.unlink()
    if not trips.exists():
        first, last = (str(base - datetime.timedelta(age)) for age in (shape.days, 1))
        fleet.write(drivers, fleet.drivers(shape.drivers, first, last))
        total = shape.drivers * shape.trips_a_day * shape.days
        half = trips.with_suffix(".part")
        with click.progressbar(length=total, label=f"making {total} trips") as bar:
            fleet.write(half, fleet.trips(shape, base), lambda count: bar.update(count - bar.pos))
        half.rename(trips)
    return drivers, trips


def import_files(
    name: str, drivers: Path | None, trips: Path | None, server: Server, checkout: Path = ROOT
) -> Imported:
    """Load files into the fleet of a name, through a checkout's own command. Raises Failed."""
    words = ["import", "--fleet", name]
    words += ["--drivers", str(drivers)] if drivers else []
    words += ["--trips", str(trips)] if trips else []
    before, mongod_before = resource.getrusage(resource.RUSAGE_CHILDREN), sum(server.cpu().values())
    started = time.monotonic()
    # Its progress bar shows on a terminal.
    if _run(words, server, checkout, stdout=subprocess.DEVNULL).returncode:
        raise Failed(f"The import into {name} failed.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Imported(time.monotonic() - started, cpu, sum(server.cpu().values()) - mongod_before)


def index_for_peers(server: Server) -> None:
    """Create the index that the floor and the peers need, and the service does not."""
    with MongoClient[Document](mongodb_uri(server.port)) as client:
        client[DATABASE].trips.create_index(PEERS_INDEX)


def issue_key(name: str, server: Server, checkout: Path = ROOT) -> str:
    """Issue a key for the fleet of a name. Raises Failed."""
    done = _run(["keys", "issue", "--fleet", name], server, checkout, stdout=subprocess.PIPE)
    if done.returncode:
        raise Failed("No key was issued.")
    return done.stdout.strip()


def _run(words: list[str], server: Server, checkout: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words, checkout=checkout),
        cwd=checkout,
        env={**os.environ, **environment(server.port, checkout)},
        text=True,
        check=False,
        **options,
    )
