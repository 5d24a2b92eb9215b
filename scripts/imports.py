"""`driver-analytics import`: drivers and trips from NDJSON files."""

import functools
import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
from marshmallow import Schema
from pymongo import InsertOne, ReplaceOne

from app.store import Document
from app.store.buckets import utc_date
from app.store.score import trip_focus_area
from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.derive import add_drivers, derive_days, mark_stale, serve_drivers, write_drivers, writing
from scripts.lines import Input, Line, Rejected, Rejects, parse
from scripts.options import ID
from scripts.served import DETAIL, Day, trip_text
from scripts.sharing import mark_trackings
from scripts.store import Store, Writer, open_store

# A batch ends at either: many small lines, or few large ones, so that memory stays bounded.
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

    Lines out of shape go to FILE.rejected.ndjson beside the input, each with its number and the reason; the others are
    loaded, and the exit status is 1. The README tells the format.
    """
    loads = [
        (path, schema, write)
        for path, schema, write in ((drivers, Driver(), load_drivers), (trips, ImportedTrip(), load_trips))
        if path is not None
    ]
    if not loads:
        raise click.UsageError("Give --drivers, --trips or both.")
    targets = [(rejects or path.parent) / f"{path.name}.rejected.ndjson" for path, _, _ in loads]
    inputs = [path.resolve() for path, _, _ in loads]
    if len({*inputs, *(target.resolve() for target in targets)}) < len(inputs) + len(targets):
        raise click.UsageError(
            f"{' and '.join(target.name for target in targets)} must be files of their own; rename an input, or import "
            "one after the other."
        )
    # Documents hold no cycles, and looking for some among those of a batch takes a tenth of the time.
    gc.set_threshold(GC_THRESHOLD)
    with open_store() as db, writing(db, fleet) as writer:
        counts = [
            _import_file(path, schema, Rejects(target), functools.partial(_renew_and_write, writer, write, db, fleet))
            for (path, schema, write), target in zip(loads, targets, strict=True)
        ]
    if any(counts):
        raise SystemExit(1)


def _import_file(path: Path, schema: Schema, rejects: Rejects, write: Callable[[list[Document]], None]) -> int:
    """Load one file and say what came of it. Returns how many of its lines were rejected."""
    loaded = 0
    with Input(path) as source:
        try:
            with click.progressbar(
                length=source.size, label=path.name, file=sys.stderr, hidden=not sys.stderr.isatty()
            ) as bar:
                for count in _written(_batches(_parsed(source.lines(), schema, rejects)), write):
                    loaded += count
                    bar.update(source.consumed - bar.pos)
                bar.update(source.consumed - bar.pos)
        except BaseException:
            rejects.abandon()
            raise
    rejects.finish()
    told = f", listed in {rejects.path}" if rejects.count else ""
    click.echo(f"{path.name}: {loaded} loaded, {rejects.count} rejected{told}")
    return rejects.count


def _renew_and_write(
    writer: Writer, write: Callable[[Store, str, list[Document]], None], db: Store, fleet: str, batch: list[Document]
) -> None:
    writer.renew()
    write(db, fleet, batch)


def _written(batches: Iterable[list[Document]], write: Callable[[list[Document]], None]) -> Iterator[int]:
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


def _parsed(lines: Iterable[Line], schema: Schema, rejects: Rejects) -> Iterator[tuple[int, Document]]:
    """Yield the size and the document of each line that is in shape."""
    for line in lines:
        try:
            yield len(line.content), parse(line, schema)
        except Rejected as reason:
            rejects.add(line, str(reason))


def _batches(documents: Iterable[tuple[int, Document]]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for length, document in documents:
        if batch and (len(batch) >= BATCH_LINES or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch


def load_drivers(db: Store, fleet: str, drivers: list[Document]) -> None:
    """Write drivers (schema Driver), a later one over an earlier one."""
    serve_drivers(db, fleet, write_drivers(db, fleet, {driver["driver_id"]: driver for driver in drivers}))


def load_trips(db: Store, fleet: str, trips: list[Document]) -> None:
    """Write trips (schema ImportedTrip), a later one over an earlier one, and derive the days that they touch."""
    documents = {trip["trip_id"]: _stored(fleet, trip) for trip in trips}
    # A line that a later one replaces counts as touched too: it may be the first to name its driver.
    days = {_day(trip) for trip in trips}
    found = db.trips.find(
        {"fleet": fleet, "trip_id": {"$in": list(documents)}}, {"_id": 0, "trip_id": 1, "tracking_id": 1, "day": 1}
    )
    replaced = {doc["trip_id"]: doc for doc in found}
    days |= {Day(**doc["day"]) for doc in replaced.values()}
    mark_stale(db, fleet, days)
    add_drivers(db, fleet, {day.driver_id for day in days})
    mark_trackings(db, fleet, {trip["tracking_id"] for trip in (*trips, *replaced.values())})
    db.trips.bulk_write(
        [
            ReplaceOne({"fleet": fleet, "trip_id": trip_id}, document) if trip_id in replaced else InsertOne(document)
            for trip_id, document in documents.items()
        ],
        ordered=False,
    )
    derive_days(db, fleet, days)


def _day(trip: Document) -> Day:
    return Day(trip["driver_id"], utc_date(trip["trip_start_time"]))


def _stored(fleet: str, trip: Document) -> Document:
    whole = trip if "focus_area" in trip else {**trip, "focus_area": trip_focus_area(trip)}
    own = {"fleet": fleet, "day": _day(trip)._asdict(), "tracking_id": trip["tracking_id"], **trip_text(whole)}
    return {**own, **{name: whole[name] for name in DETAIL}}
