"""The data of a benchmark: generated, imported and stored, so that another run on the same day can use it again."""

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
# The index for lists of trips from the source collection, which the floor and the peers query.
PEERS_INDEX = [(name, ASCENDING) for name in ("fleet", "driver_id", "trip_start_time", "trip_id", "trip_end_time")]


class ImportCost(NamedTuple):
    """The cost of an import: elapsed seconds, and processor seconds of the command and of mongod."""

    seconds: float
    cpu: float
    mongod_cpu: float


def code_digest(checkout: Path = ROOT) -> str:
    """Return a digest of the code that generates and imports the data."""
    files = [
        file
        for source in SOURCES
        for file in ([ROOT / source] if source.endswith(".py") else (checkout / source).rglob("*.py"))
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


@contextlib.contextmanager
def folder(
    name: str, properties: dict[str, Any], *, keep: bool = False, checkout: Path = ROOT, **server: Any
) -> Iterator[tuple[Server, dict[str, Any]]]:
    """Run mongod with the data folder of this name, and yield mongod and the record of the loaded data.

    The folder is emptied first, unless its record has the same `properties`, today's date and the digest of the current
    code; with `keep`, the digest does not matter. The caller adds what it loads to the record. `server` has options for
    mongod.
    """
    path, digest = DATA / name, code_digest(checkout)
    properties = {"date": str(fleet.today()), **properties}
    record = _record(path)
    if not properties.items() <= record.items() or (record["digest"] != digest and not keep):
        shutil.rmtree(path, ignore_errors=True)
        record = {**properties, "digest": digest}
    with mongod(path / "mongodb", **server) as server_process:
        try:
            yield server_process, record
        finally:
            (path / RECORD).write_text(json.dumps(record))


def _record(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads((path / RECORD).read_text())
    except (OSError, ValueError):
        return {}
    return record


def make_files(name: str, shape: fleet.Shape, base: datetime.date) -> tuple[Path, Path]:
    """Return the files of a fleet, drivers and trips. Writes them unless there are files of the same shape and date."""
    DATA.mkdir(exist_ok=True)
    shape_digest = hashlib.sha256(f"{shape} {base}".encode() + Path(fleet.__file__).read_bytes()).hexdigest()[:12]
    drivers, trips = (DATA / f"{name}-{shape_digest}-{content}.ndjson.gz" for content in ("drivers", "trips"))
    for old in DATA.glob(f"{name}-*.ndjson.gz"):
        if old not in (drivers, trips):
            old.unlink()
    if not trips.exists():
        first, last = (str(base - datetime.timedelta(age)) for age in (shape.days, 1))
        fleet.write(drivers, fleet.drivers(shape.drivers, first, last))
        total = shape.drivers * shape.trips_a_day * shape.days
        partial = trips.with_suffix(".part")
        with click.progressbar(length=total, label=f"Generating {total} trips") as bar:
            fleet.write(partial, fleet.trips(shape, base), lambda count: bar.update(count - bar.pos))
        partial.rename(trips)
    return drivers, trips


def import_files(
    name: str, drivers: Path | None, trips: Path | None, server: Server, checkout: Path = ROOT
) -> ImportCost:
    """Import files into a fleet with the command of a checkout. Raises Failed."""
    arguments = ["import", "--fleet", name]
    arguments += ["--drivers", str(drivers)] if drivers else []
    arguments += ["--trips", str(trips)] if trips else []
    before, mongod_before = resource.getrusage(resource.RUSAGE_CHILDREN), sum(server.cpu().values())
    started = time.monotonic()
    # The progress bar is on standard error.
    if _run(arguments, server, checkout, stdout=subprocess.DEVNULL).returncode:
        raise Failed(f"The import into {name} failed.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ImportCost(time.monotonic() - started, cpu, sum(server.cpu().values()) - mongod_before)


def index_for_peers(server: Server) -> None:
    """Create the index that the floor and the peers need, but the service does not."""
    with MongoClient[Document](mongodb_uri(server.port)) as client:
        client[DATABASE].trips.create_index(PEERS_INDEX)


def issue_key(name: str, server: Server, checkout: Path = ROOT) -> str:
    """Issue an API key for a fleet. Raises Failed."""
    done = _run(["keys", "issue", "--fleet", name], server, checkout, stdout=subprocess.PIPE)
    if done.returncode:
        raise Failed("The key was not issued.")
    return done.stdout.strip()


def _run(arguments: list[str], server: Server, checkout: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, checkout=checkout),
        cwd=checkout,
        env={**os.environ, **environment(server.port, checkout)},
        text=True,
        check=False,
        **options,
    )
