"""`driver-analytics export`: write a fleet's drivers, trips and daily summaries to files."""

import contextlib
import gzip
import heapq
import itertools
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

import click
import orjson
from pymongo import ASCENDING

from app.store import Document, DocumentCollection, Store
from app.store.driver_periods import BY_DRIVER, HAS_SUMMARY
from app.store.fleets import get_time_zone
from schemas.driver import Driver
from schemas.periods import DAY, PROFILE, midnight
from scripts.command_line.options import DATE, FLEET, ID, option_once
from scripts.command_line.output import OWNER_ONLY, echo, temporary_folder
from scripts.materialize.read_models import naming_damage
from scripts.materialize.sources import InvalidSource, parse_sources
from scripts.materialize.trips import add_focus_area
from scripts.materialize.write_sources import OLDEST_FIRST
from scripts.mongodb.connection import open_store, require_fleet

GZIP_LEVEL = 1
DRIVER, PROFILE_FIELDS = Driver(), {"_id": 0, "driver_id": 1, "period": 1}
# `import` reads the first two. Parquet files are made of all.
NDJSON_FILES = ("drivers.ndjson.gz", "trips.ndjson.gz", "daily_summaries.ndjson.gz")


@click.command()
@FLEET
@option_once("--driver", "driver_id", type=ID, help="Only this driver. By default all of the fleet.")
@click.option("--since", type=DATE, help="Only trips and days from this date on. By default all.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder of the files, created."
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["ndjson", "parquet"]),
    default="ndjson",
    show_default=True,
    help="The type of the files.",
)
def export(fleet: str, driver_id: str | None, since: str | None, out: Path, file_format: str) -> None:
    """Write drivers, trips and daily summaries to files in a folder.

    As NDJSON, the drivers and trips are files that 'import' takes. As Parquet, there is a row for each driver, trip,
    trail point, event, and day of a driver.

    The files replace those of an earlier export when all of them are complete. Only their owner can read them, because
    they contain personal data. Each document is as it was committed at some time during the export. A document that
    violates its schema is left out and named; the exit status is then 1.
    """
    with open_store(writes=False) as store, naming_damage(fleet):
        require_fleet(store, fleet)
        match = {"fleet": fleet, **({"driver_id": driver_id} if driver_id else {})}
        if not any(store.db[name].find_one(match, {"_id": 1}) for name in ("drivers", "trips", "driver_periods")):
            raise click.ClickException(f"Nothing is stored of the driver {driver_id} in the fleet {fleet}.")
        invalid = list[InvalidSource]()
        try:
            drivers, trips, days = _export(store, match, since or "", out, file_format, invalid)
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
    store: Store, match: Document, since: str, out: Path, file_format: str, invalid: list[InvalidSource]
) -> list[int]:
    """Write the files, and return the numbers of drivers, trips and days. Adds what is left out to `invalid`.

    `since` is the first date of the trips and days, or empty.
    """
    trips_match = match
    if since:
        since_ms = midnight(since, get_time_zone(store, match["fleet"]))
        trips_match = {**match, "trip_start_time": {"$gte": since_ms}}
    drivers = _find_drivers(store, match, invalid)
    trips = _find_lines(store.trips, trips_match, OLDEST_FIRST, invalid)
    days = _find_days(store, {**match, "start_date": {"$gte": since}})
    if file_format == "ndjson":
        with _replace_files(out, NDJSON_FILES) as folder:
            return _write_lines(folder, drivers, trips, days)[0]
    # Imported here, because its library is that of an extra.
    from scripts.lifecycle.parquet import TABLES, write_tables

    with _replace_files(out, TABLES) as folder:
        counts, max_line_bytes = _write_lines(folder, drivers, map(add_focus_area, trips), days)
        write_tables(folder, max_line_bytes)
    return counts


def _write_lines(
    folder: Path, drivers: Iterable[Document], trips: Iterable[Document], days: Iterable[Document]
) -> tuple[list[int], int]:
    """Write the NDJSON files. Returns the numbers of drivers, trips and days, and the bytes of the longest line."""
    counts, max_line_bytes = [0, 0, 0], 0
    for index, (name, documents) in enumerate(zip(NDJSON_FILES, (drivers, trips, days), strict=True)):
        # The file in gzip has neither a name nor a time.
        with (folder / name).open("wb") as raw, gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as file:
            for document in documents:
                line = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
                max_line_bytes = max(max_line_bytes, file.write(line))
                counts[index] += 1
    return counts, max_line_bytes


def _find_lines(
    collection: DocumentCollection, match: Document, order: list[tuple[str, int]], invalid: list[InvalidSource]
) -> Iterator[Document]:
    """Yield the valid sources as lines of an import file."""
    for source in parse_sources(collection.name, collection.find(match, sort=order), invalid):
        del source["fleet"]
        yield source


def _find_drivers(store: Store, match: Document, invalid: list[InvalidSource]) -> Iterator[Document]:
    """Yield the valid drivers as lines of an import file, each with all groups, by driver_id.

    A driver known from trips alone has a line only for the groups. It has null names, as the driver has.
    """
    drivers, groups = (
        _find_lines(sources, match, BY_DRIVER, invalid) for sources in (store.drivers, store.driver_groups)
    )
    profiles = store.driver_periods.find({**match, "period": PROFILE}, PROFILE_FIELDS, sort=BY_DRIVER)
    get_id = itemgetter("driver_id")
    for _, found in itertools.groupby(heapq.merge(drivers, groups, profiles, key=get_id), get_id):
        driver = dict(itertools.chain.from_iterable(source.items() for source in found))
        if "first_name" in driver or {"groups", "period"} <= driver.keys():
            yield {**DRIVER.dump(driver), "groups": driver.get("groups", [])}


def _find_days(store: Store, match: Document) -> Iterator[Document]:
    """Yield the Daily summaries, each with its driver_id, by driver and date. Index: driver_periods period."""
    order = [*BY_DRIVER, ("start_date", ASCENDING)]
    days = store.driver_periods.find(
        {**match, "period": DAY, **HAS_SUMMARY}, {"_id": 0, "driver_id": 1, "json": 1}, sort=order
    )
    for day in days:
        yield {"driver_id": day["driver_id"], **orjson.loads(day["json"])}


@contextlib.contextmanager
def _replace_files(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield a new folder. When the block ends without an error, its files of `names` take the place of earlier ones.

    After an error, everything is as before.
    """
    is_new = not folder.exists()
    folder.mkdir(OWNER_ONLY, exist_ok=True)
    try:
        with temporary_folder(folder.absolute() / "driver-analytics-export.part") as partial:
            yield partial
            for name in names:
                (partial / name).chmod(0o600)
                (partial / name).replace(folder / name)
    except BaseException:
        if is_new:
            # Another program may have written to it.
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise
