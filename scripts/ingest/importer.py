"""`driver-analytics import`: drivers and trips from NDJSON files."""

import contextlib
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
from marshmallow import Schema, ValidationError

from app.store import Document, Store
from schemas.driver import Driver
from schemas.trip import ImportedTrip
from scripts.ingest.lines import STDIN, Input, Line, Rejects, parse, with_pauses
from scripts.ingest.plausibility import Doubts
from scripts.ingest.writes import Trip, prepare_driver, prepare_trip, write_drivers, write_trips
from scripts.materialize.days import Day
from scripts.materialize.sources import describe_errors
from scripts.mongodb.connection import has_data, naming_invalid_documents, open_store
from scripts.options import FLEET, take_one
from scripts.output import echo
from scripts.progress import make_bar

# A batch is one transaction, and ends at whichever limit comes first. So memory is bounded, and a transaction takes
# about a second; MongoDB's limit is 60 seconds. A transaction takes the longer, the more days of drivers it changes.
BATCH_LINES = 2_000
BATCH_DAYS = 1_000
BATCH_BYTES = 16_000_000
GC_THRESHOLD = 100_000
# The rejected lines, in bytes, after which the search for cycles takes place all the same.
MAX_REJECTED_BYTES = 5_000_000
# A batch of a pipe ends this long after its first line, so that it is committed within two seconds.
BATCH_SECONDS = 1.0
# How often a batch of a pipe that has paused is looked at.
PAUSE_SECONDS = 0.25

FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
REJECTS = click.option(
    "--rejects",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder for the files of rejected lines.",
)


@click.command("import")
@FLEET
@click.option(
    "--drivers",
    type=FILE,
    multiple=True,
    callback=take_one,
    help="NDJSON file, plain or gzip, with one driver per line; - is standard input.",
)
@click.option(
    "--trips",
    type=FILE,
    multiple=True,
    callback=take_one,
    help="NDJSON file, plain or gzip, with one trip per line; - is standard input.",
)
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
    files = [(path, file_type) for path, file_type in ((drivers, DRIVERS), (trips, TRIPS)) if path is not None]
    if not files:
        raise click.UsageError("Give --drivers, --trips or both.")
    targets = [_get_rejects_path(path, rejects) for path, _ in files]
    _check_paths([path for path, _ in files], [target for target in targets if target])
    with open_fleet(fleet) as store, naming_new_fleet(store, fleet):
        counts = [
            _import_file(store, fleet, path, file_type, target)
            for (path, file_type), target in zip(files, targets, strict=True)
        ]
    if any(counts):
        raise SystemExit(1)


@contextlib.contextmanager
def open_fleet(fleet: str) -> Iterator[Store]:
    """Open the store for loading many documents of a fleet."""
    # The documents have no reference cycles. With the default threshold, the search for cycles takes 10 % of the time.
    gc.set_threshold(GC_THRESHOLD)
    with open_store() as store, naming_invalid_documents(store, fleet):
        yield store


@contextlib.contextmanager
def naming_new_fleet(store: Store, fleet: str) -> Iterator[None]:
    """Name the fleet if the block creates it: the name may be a mistake."""
    is_new = not has_data(store, fleet)
    yield
    if is_new and has_data(store, fleet):
        echo(f"{fleet}: a new fleet", err=True)


def _get_rejects_path(path: Path, rejects: Path | None) -> Path | None:
    """Return the path of the file of rejected lines, or None for standard error."""
    if path == STDIN:
        return rejects / "stdin.rejected.ndjson" if rejects else None
    return (rejects or path.parent) / f"{path.name}.rejected.ndjson"


def _check_paths(paths: list[Path], targets: list[Path]) -> None:
    """Raise click.UsageError if an input or a file of rejected lines would be used twice."""
    inputs = [path.resolve() for path in paths]
    if len({*inputs}) < len(inputs):
        raise click.UsageError("--drivers and --trips name the same file.")
    if len({*inputs, *(target.resolve() for target in targets)}) < len(inputs) + len(targets):
        raise click.UsageError(
            f"{' and '.join(target.name for target in targets)} must differ from each other and from the inputs. "
            "Rename an input, or import the files one after another."
        )


class Prepared(NamedTuple):
    """A prepared document, the size of its line in bytes, and the driver's day that it changes, if it changes one."""

    document: Any
    size: int
    day: Day | None


class FileType(NamedTuple):
    """A type of file: its option, the schema of a line, and the functions that prepare and write its documents.

    `get_day` returns the driver's day that a prepared document changes.
    """

    option: str
    schema: Schema
    prepare: Callable[[str, Document], Any]
    write: Callable[[Store, str, Sequence[Any]], None]
    get_day: Callable[[Any], Day | None]


def _get_day(trip: Trip) -> Day:
    return Day(trip.detail["driver_id"], trip.detail["date"])


DRIVERS = FileType("--drivers", Driver(), prepare_driver, write_drivers, lambda driver: None)
TRIPS = FileType("--trips", ImportedTrip(), prepare_trip, write_trips, _get_day)


def _import_file(store: Store, fleet: str, path: Path, file_type: FileType, target: Path | None) -> int:
    """Load one file, and print the number of loaded and rejected lines. Returns the number of rejected lines.

    `target` is the path of the file of rejected lines.
    """
    loaded, doubts = 0, Doubts()
    with Input(path) as source, Rejects(target, is_pipe=source.is_pipe) as rejects:
        lines = with_pauses(source.lines(), PAUSE_SECONDS) if source.is_pipe else source.lines()
        with make_bar(source.name, source.size, hidden=source.is_pipe) as bar:
            seconds = BATCH_SECONDS if source.is_pipe else math.inf
            for count in load_lines(store, fleet, lines, file_type, rejects, doubts, seconds):
                loaded += count
                bar.update(source.consumed - bar.pos)
            bar.update(source.consumed - bar.pos)
    echo(f"{source.name}: {loaded} loaded, {rejects.describe()}")
    for sentence in itertools.chain(rejects.hints, doubts.describe()):
        echo(f"{source.name}: {sentence}", err=True)
    return rejects.count


def load_lines(
    store: Store,
    fleet: str,
    lines: Iterable[Line | None],
    file_type: FileType,
    rejects: Rejects,
    doubts: Doubts,
    max_seconds: float,
) -> Iterator[int]:
    """Write the documents of the valid lines. Yields the size of each batch after it was written; None is a pause.

    A batch is one transaction, and ends at most `max_seconds` after its first line came.
    """
    batches = make_batches(_parse_lines(lines, fleet, file_type, rejects, doubts), max_seconds)
    return _write_batches(batches, lambda batch: file_type.write(store, fleet, batch))


def _write_batches(batches: Iterable[list[Any]], write: Callable[[list[Any]], None]) -> Iterator[int]:
    """Write each batch while the next one is read. Yields the size of each batch after it was written.

    During a pause of the input, batches are empty.
    """
    with ThreadPoolExecutor(1) as pool:
        size, pending = 0, None
        for batch in batches:
            if pending and (batch or pending.done()):
                pending.result()
                yield size
                pending = None
            if batch:
                size, pending = len(batch), pool.submit(write, batch)
        if pending:
            pending.result()
            yield size


def _parse_lines(
    lines: Iterable[Line | None], fleet: str, file_type: FileType, rejects: Rejects, doubts: Doubts
) -> Iterator[Prepared | None]:
    """Yield the prepared documents of the valid lines; None for a pause. Invalid lines go to `rejects`.

    Trips that are not plausible are added to `doubts`, too.
    """
    rejected_bytes = 0
    for line in lines:
        if line is None:
            yield None
            continue
        try:
            parsed = parse(line, file_type.schema)
            document = file_type.prepare(fleet, parsed)
        except ValidationError as error:
            reason = describe_errors(error)
            if not rejects.count:
                rejects.hints += _find_other_types(error.data, file_type)
        else:
            if file_type is TRIPS:
                doubts.check(f"line {line.number}", parsed)
            yield Prepared(document, len(line.content), file_type.get_day(document))
            continue
        # marshmallow's exceptions are in reference cycles, with all that was read from the line.
        rejected_bytes += len(line.content)
        if rejected_bytes > MAX_REJECTED_BYTES:
            gc.collect()
            rejected_bytes = 0
        rejects.add(line, reason)


def _find_other_types(value: Any, file_type: FileType) -> Iterator[str]:
    """Yield a hint if what violates the schema of its type is valid for the other type."""
    for other in (DRIVERS, TRIPS):
        with contextlib.suppress(ValidationError):
            if other is not file_type and other.schema.load(value):
                name = other.option.removeprefix("--")
                yield f"these look like {name}. Give the file as {other.option}."


def make_batches(
    items: Iterable[Prepared | None], max_seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[list[Any]]:
    """Yield batches, each at most `max_seconds` after its first item came. None among the items is a pause."""
    batch, days, size, began = list[Any](), set[Day | None](), 0, 0.0
    for item in items:
        is_due = bool(batch) and clock() - began >= max_seconds
        if item is None:
            if is_due or not batch:
                yield batch
                batch, days, size = [], set(), 0
            continue
        has_room = len(batch) < BATCH_LINES and size + item.size <= BATCH_BYTES
        has_room &= item.day in days or len(days) < BATCH_DAYS
        if is_due or (batch and not has_room):
            yield batch
            batch, days, size = [], set(), 0
        began = began if batch else clock()
        batch.append(item.document)
        days.add(item.day)
        size += item.size
    if batch:
        yield batch
