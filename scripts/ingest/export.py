"""`driver-analytics export`: write a fleet's drivers, trips and daily summaries to files."""

import contextlib
import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol, cast

import click
import orjson
from marshmallow import ValidationError
from pymongo import ASCENDING

from app.store import Document, DocumentCollection, Store
from schemas.periods import DAY
from schemas.stored import make_id
from scripts.extras import importing_from_extra
from scripts.ingest.writes import OLDEST_FIRST
from scripts.materialize.sources import InvalidSource, describe_errors, parse_sources
from scripts.materialize.trip_details import make_trip_detail
from scripts.mongodb.connection import find_fleets, naming_invalid_documents, open_store
from scripts.options import FLEET, ID, take_one
from scripts.output import echo
from scripts.private_files import OWNER_ONLY, open_private

GZIP_LEVEL = 1
# A trip with fewer trail points and events is never too large for its read model.
LONG_TRIP_ROWS = 20_000


class Export(Protocol):
    """The files of a format. Each method writes documents and returns their number."""

    # The names of the files.
    names: tuple[str, ...]

    def write_drivers(self, drivers: Iterable[Document]) -> int:
        """Write drivers, as in an import file."""

    def write_trips(self, trips: Iterable[Document]) -> int:
        """Write trips, as in an import file."""

    def write_days(self, days: Iterable[Document]) -> int:
        """Write Daily summaries, each with its driver_id."""

    def close(self) -> None:
        """Write the ends of the files."""


class NdjsonExport:
    """Files of JSON lines, compressed with gzip. `import` reads the first two."""

    names = ("drivers.ndjson.gz", "trips.ndjson.gz", "daily_summaries.ndjson.gz")

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self._files = files

    def _write(self, name: str, documents: Iterable[Document]) -> int:
        count = 0
        with gzip.GzipFile(fileobj=self._files[name], mode="wb", compresslevel=GZIP_LEVEL, mtime=0) as file:
            for document in documents:
                file.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
                count += 1
        return count

    def write_drivers(self, drivers: Iterable[Document]) -> int:
        """Write drivers, as in an import file."""
        return self._write("drivers.ndjson.gz", drivers)

    def write_trips(self, trips: Iterable[Document]) -> int:
        """Write trips, as in an import file."""
        return self._write("trips.ndjson.gz", trips)

    def write_days(self, days: Iterable[Document]) -> int:
        """Write Daily summaries, each with its driver_id."""
        return self._write("daily_summaries.ndjson.gz", days)

    def close(self) -> None:
        """Do nothing: each file is complete."""


@click.command()
@FLEET
@click.option(
    "--driver",
    "driver_id",
    type=ID,
    multiple=True,
    callback=take_one,
    help="Only this driver. By default all of the fleet.",
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder of the files, created."
)
@click.option(
    "--format", "file_format", type=click.Choice(["ndjson", "parquet"]), default="ndjson", help="The type of the files."
)
def export(fleet: str, driver_id: str | None, out: Path, file_format: str) -> None:
    """Write drivers, trips and daily summaries to files in a folder.

    As NDJSON, the drivers and trips are files that 'import' takes. As Parquet, there is a row for each driver, trip,
    trail point, event, and day of a driver.

    The files replace those of an earlier export when all of them are complete. Only their owner can read them, because
    they contain personal data. Each document is as it was committed at some time during the export. A document that
    violates its schema is left out and named; the exit status is then 1.
    """
    with open_store(writes=False) as store, naming_invalid_documents(store, fleet):
        find_fleets(store, fleet)
        match = {"fleet": fleet, **({"driver_id": driver_id} if driver_id else {})}
        if not any(store.db[name].find_one(match, {"_id": 1}) for name in ("drivers", "trips", "driver_periods")):
            raise click.ClickException(f"Nothing is stored of the driver {driver_id} in the fleet {fleet}.")
        invalid = list[InvalidSource]()
        try:
            drivers, trips, days = _export(store, match, out, file_format, invalid)
        except OSError as error:
            raise click.ClickException(
                f"{out} cannot be written: {error.strerror or error}. Give --out another folder, in a folder that you "
                "can write to."
            ) from None
    echo(f"{out}: {drivers} drivers, {trips} trips, {days} daily summaries")
    for source in invalid:
        echo(f"{fleet}: {source}", err=True)
    if invalid:
        raise SystemExit(1)


def _export(
    store: Store, match: Document, out: Path, file_format: str, invalid: list[InvalidSource]
) -> tuple[int, int, int]:
    """Write the files, and return the numbers of drivers, trips and days. Adds what is left out to `invalid`."""
    make_export: Any = NdjsonExport if file_format == "ndjson" else _get_parquet_export()
    with _open_files(out, make_export.names) as files, contextlib.closing(cast(Export, make_export(files))) as target:
        by_driver = [("driver_id", ASCENDING)]
        drivers = target.write_drivers(_find_lines(store.drivers, match, by_driver, invalid))
        trips = target.write_trips(_find_lines(store.trips, match, OLDEST_FIRST, invalid))
        return drivers, trips, target.write_days(_find_days(store, match))


def _find_lines(
    collection: DocumentCollection, match: Document, order: list[tuple[str, int]], invalid: list[InvalidSource]
) -> Iterator[Document]:
    """Yield the valid sources as lines of an import file."""
    for source in parse_sources(collection.name, collection.find(match, sort=order), invalid):
        fleet = source.pop("fleet")
        if len(source.get("trail_path", ())) + len(source.get("events", ())) > LONG_TRIP_ROWS:
            try:
                make_trip_detail(fleet, source)
            except ValidationError as error:
                invalid.append(InvalidSource("trips", make_id(fleet, source["trip_id"]), describe_errors(error)))
                continue
        yield source


def _find_days(store: Store, match: Document) -> Iterator[Document]:
    """Yield the Daily summaries, each with its driver_id, by driver and date. Index: driver_periods period."""
    order = [("driver_id", ASCENDING), ("start_date", ASCENDING)]
    days = store.driver_periods.find({**match, "period": DAY}, {"_id": 0, "driver_id": 1, "json": 1}, sort=order)
    for day in days:
        yield {"driver_id": day["driver_id"], **orjson.loads(day["json"])}


def _get_parquet_export() -> Any:
    """Return the class ParquetExport. Raises MissingExtra."""
    # Imported here, because other commands run without this library.
    with importing_from_extra("export", "Parquet"):
        from scripts.ingest.parquet import ParquetExport
    return ParquetExport


@contextlib.contextmanager
def _open_files(folder: Path, names: Iterable[str]) -> Iterator[dict[str, IO[bytes]]]:
    """Open new files by name, which take the place of earlier ones when the block ends without an error."""
    folder.mkdir(OWNER_ONLY, exist_ok=True)
    partial = {name: folder / f"{name}.part" for name in names}
    for path in partial.values():
        # Another program may have created it with other rights.
        path.unlink(missing_ok=True)
    try:
        with contextlib.ExitStack() as stack:
            yield {name: stack.enter_context(open_private(path, "xb")) for name, path in partial.items()}
        for name, path in partial.items():
            path.replace(folder / name)
    finally:
        for path in partial.values():
            path.unlink(missing_ok=True)
