"""`driver-analytics import`: drivers and trips from NDJSON files."""

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
from marshmallow import Schema

from app.store import Document, Store
from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.ingest.lines import MEASURED_BYTES, Input, Line, Rejected, Rejects, check_size, parse
from scripts.materialize.drivers import write_drivers
from scripts.materialize.trips import Trip, prepare_trip, write_trips
from scripts.mongodb.connection import naming_invalid_documents, open_store
from scripts.options import ID

# A batch, which is one transaction, ends at either: many small lines, or few large ones. Memory stays bounded, and the
# transaction takes a second or so of the 60 that MongoDB gives it.
BATCH_LINES = 2_000
BATCH_BYTES = 16_000_000
GC_THRESHOLD = 100_000


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("import")
@click.option("--fleet", type=ID, required=True, help="The fleet that the files belong to.")
@click.option("--drivers", type=FILE, help="NDJSON, plain or gzip: one driver a line.")
@click.option("--trips", type=FILE, help="NDJSON, plain or gzip: one trip a line.")
@click.option(
    "--rejects", type=click.Path(file_okay=False, exists=True, path_type=Path), help="Folder for rejected lines."
)
def import_(fleet: str, drivers: Path | None, trips: Path | None, rejects: Path | None) -> None:
    """Load drivers and trips into a fleet.

    Loading a file again changes nothing, so a command that was interrupted is just run again. A later line replaces an
    earlier one of the same identifier.

    Invalid lines go to FILE.rejected.ndjson beside the input, each with its number and the reason; the others are
    loaded, and the exit status is 1. The README tells the format.
    """
    kinds = [(path, kind) for path, kind in ((drivers, DRIVERS), (trips, TRIPS)) if path is not None]
    if not kinds:
        raise click.UsageError("Give --drivers, --trips or both.")
    targets = [(rejects or path.parent) / f"{path.name}.rejected.ndjson" for path, _ in kinds]
    inputs = [path.resolve() for path, _ in kinds]
    if len({*inputs, *(target.resolve() for target in targets)}) < len(inputs) + len(targets):
        raise click.UsageError(
            f"{' and '.join(target.name for target in targets)} must be files of their own; rename an input, or import "
            "one after the other."
        )
    # Documents hold no cycles, and looking for some among those of a batch takes a tenth of the time.
    gc.set_threshold(GC_THRESHOLD)
    with open_store() as store, naming_invalid_documents(store, fleet):
        counts = [
            _import_file(store, fleet, path, kind, Rejects(target))
            for (path, kind), target in zip(kinds, targets, strict=True)
        ]
    if any(counts):
        raise SystemExit(1)


class Kind(NamedTuple):
    """What a file holds: the shape of a line, and how its documents are prepared and written."""

    schema: Schema
    prepare: Callable[[str, Document], Any]
    write: Callable[[Store, str, Sequence[Any]], None]


def _prepare_trip(fleet: str, document: Document) -> Trip:
    trip = prepare_trip(fleet, document)
    if len(trip.detail["trail_path"]) + len(trip.detail["events"]) > MEASURED_BYTES:
        check_size(trip.detail)
    return trip


DRIVERS = Kind(Driver(), lambda fleet, driver: {"fleet": fleet, **driver}, write_drivers)
TRIPS = Kind(ImportedTrip(), _prepare_trip, write_trips)


def _import_file(store: Store, fleet: str, path: Path, kind: Kind, rejects: Rejects) -> int:
    """Load one file and print how many lines were loaded. Returns how many were rejected."""
    loaded = 0
    with Input(path) as source:
        try:
            with click.progressbar(
                length=source.size, label=path.name, file=sys.stderr, hidden=not sys.stderr.isatty()
            ) as bar:
                batches = _batches(_parsed(source.lines(), fleet, kind, rejects))
                for count in _written(batches, lambda batch: kind.write(store, fleet, batch)):
                    loaded += count
                    bar.update(source.consumed - bar.pos)
                bar.update(source.consumed - bar.pos)
        except BaseException:
            rejects.abandon()
            raise
    rejects.finish()
    where = f", listed in {rejects.path}" if rejects.count else ""
    click.echo(f"{path.name}: {loaded} loaded, {rejects.count} rejected{where}")
    return rejects.count


def _written(batches: Iterable[list[Any]], write: Callable[[list[Any]], None]) -> Iterator[int]:
    """Write each batch while the next is being read. Yields their sizes, each once it is written."""
    with ThreadPoolExecutor(1) as pool:
        size, pending = 0, None
        for batch in batches:
            if pending:
                pending.result()
                yield size
            size, pending = len(batch), pool.submit(write, batch)
        if pending:
            pending.result()
            yield size


def _parsed(lines: Iterable[Line], fleet: str, kind: Kind, rejects: Rejects) -> Iterator[tuple[int, Any]]:
    """Yield the size of each valid line, and what is to be written of it."""
    for line in lines:
        try:
            yield len(line.content), kind.prepare(fleet, parse(line, kind.schema))
        except Rejected as reason:
            rejects.add(line, str(reason))


def _batches(items: Iterable[tuple[int, Any]]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for length, item in items:
        if batch and (len(batch) >= BATCH_LINES or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch
