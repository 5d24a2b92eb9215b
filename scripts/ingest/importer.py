"""`driver-analytics import`: drivers and trips from NDJSON files, plain or gzip."""

from pathlib import Path

import click

from app.store import Store
from scripts.command_line.options import FLEET, REJECTS, option_once
from scripts.command_line.output import echo, make_bar
from scripts.ingest import loader
from scripts.ingest.doubts import Doubts
from scripts.ingest.lines import STDIN, Input
from scripts.ingest.records import DRIVERS, TRIPS, RecordType, Rejects
from scripts.mongodb.connection import naming_new_fleet, open_store

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


@click.command("import")
@FLEET
@option_once("--drivers", type=FILE, help="NDJSON file, plain or gzip, with one driver per line; - is standard input.")
@option_once("--trips", type=FILE, help="NDJSON file, plain or gzip, with one trip per line; - is standard input.")
@REJECTS
def import_(fleet: str, drivers: Path | None, trips: Path | None, rejects: Path | None) -> None:
    """Load drivers and trips into a fleet.

    A line replaces an earlier line or a stored document with the same identifier. Loading a file twice changes nothing,
    so if the command was interrupted, run it again.

    Invalid lines are written to FILE.rejected.ndjson in the folder of the input, each with its number and the reason.
    The valid lines are loaded, and the exit status is 1. docs/data.md describes the format.

    Standard input may be a pipe that never ends: its lines are committed within 2 seconds. Its invalid lines go to
    standard error, or to stdin.rejected.ndjson in the folder of --rejects.
    """
    files = [(path, record_type) for path, record_type in ((drivers, DRIVERS), (trips, TRIPS)) if path is not None]
    if not files:
        raise click.UsageError("Give --drivers, --trips or both.")
    targets = [_get_rejects_path(path, rejects) for path, _ in files]
    paths = [path.resolve() for path in (*(path for path, _ in files), *filter(None, targets))]
    if len({*paths}) < len(paths):
        raise click.UsageError(
            f"Inputs and files of rejected lines must differ: {', '.join(path.name for path in paths)}. Rename "
            "an input, or import the files one after another."
        )
    with open_store() as store, naming_new_fleet(store, fleet):
        counts = [
            _import_file(store, fleet, path, record_type, target)
            for (path, record_type), target in zip(files, targets, strict=True)
        ]
    if any(counts):
        raise SystemExit(1)


def _get_rejects_path(path: Path, rejects: Path | None) -> Path | None:
    """Return the path of the file of rejected lines, or None for standard error."""
    if path == STDIN:
        return rejects / "stdin.rejected.ndjson" if rejects else None
    return (rejects or path.parent) / f"{path.name}.rejected.ndjson"


def _import_file(store: Store, fleet: str, path: Path, record_type: RecordType, target: Path | None) -> int:
    """Load one file, and print the number of loaded and rejected lines. Returns the number of rejected lines.

    `target` is the path of the file of rejected lines.
    """
    loaded, doubts = 0, Doubts("line {number}")
    with Rejects(target) as rejects:
        source = Input(path)
        max_seconds = loader.BATCH_SECONDS if source.is_pipe else None
        with make_bar(source.name, source.size, hidden=source.is_pipe) as bar:
            for count in loader.load(store, fleet, record_type, source.records(), rejects, doubts, max_seconds):
                loaded += count
                bar.update(source.consumed - bar.pos)
    echo(f"{source.name}: {loaded} loaded, {rejects.describe()}")
    for sentence in doubts.describe(store, fleet):
        echo(f"{source.name}: {sentence}", err=True)
    return rejects.count
