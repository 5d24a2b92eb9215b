"""Parquet files of an export. Their columns follow from the schemas, with nested objects flattened.

A row group is written as soon as it has enough rows, so the memory needed does not depend on the size of the fleet.
"""

import datetime
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from marshmallow import Schema, fields

from app.store import Document
from schemas.driver import Driver
from schemas.fields import Date, Flag, Int64, Number, Text
from schemas.score import compute_focus_area
from schemas.summary import DailySummary
from schemas.trip import Event, ImportedTrip, TrailPoint, TripSummary

ROWS_PER_GROUP = 50_000
# Rows that are converted at once, and what limits the trips that are read at once: the rows of all tables.
BATCH_ROWS = 5_000
OF_TRIP = ("driver_id", "trip_id")


class Column(NamedTuple):
    """A column: its name, the path to its value in a document, its Arrow type, and the conversion of a value."""

    name: str
    path: tuple[str, ...]
    type: Any
    convert: Callable[[Any], Any] | None


# The type of a column for each type of field, and the conversion of a value. A subclass comes before its class.
TYPES: tuple[tuple[type[fields.Field[Any]], Any, Callable[[Any], Any] | None], ...] = (
    (Date, pa.date32(), datetime.date.fromisoformat),
    (Text, pa.string(), None),
    (Flag, pa.bool_(), None),
    (Int64, pa.int64(), None),
    # A number may be stored as an integer.
    (Number, pa.float64(), float),
)


def make_columns(schema: Schema, *path: str) -> Iterator[Column]:
    """Yield the columns of a schema: one for each field, except lists; those of nested objects have their own names."""
    for name, field in schema.fields.items():
        if isinstance(field, fields.Nested):
            yield from make_columns(field.schema, *path, name)
        elif not isinstance(field, fields.List):
            _, arrow_type, convert = next(row for row in TYPES if isinstance(field, row[0]))
            yield Column(name, (*path, name), arrow_type, convert)


class _Table:
    """A Parquet file that is written a row group at a time."""

    def __init__(self, file: IO[bytes], columns: Iterable[Column]) -> None:
        self._columns = list(columns)
        self._schema = pa.schema([(column.name, column.type) for column in self._columns])
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._batches = list[Any]()

    def write(self, rows: Iterable[Document]) -> int:
        """Add rows. Returns their number."""
        iterator, count = iter(rows), 0
        while batch := list(itertools.islice(iterator, BATCH_ROWS)):
            arrays = [pa.array(_values(batch, column), column.type) for column in self._columns]
            self._batches.append(pa.record_batch(arrays, schema=self._schema))
            count += len(batch)
            if sum(map(len, self._batches)) >= ROWS_PER_GROUP:
                self._flush()
        return count

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches), ROWS_PER_GROUP)
            self._batches.clear()

    def close(self) -> None:
        """Write the last rows and the end of the file."""
        self._flush()
        self._writer.close()


def _values(rows: Iterable[Document], column: Column) -> list[Any]:
    """Return the values of a column. What is absent is None."""
    values: list[Any] = list(rows)
    for name in column.path:
        values = [None if value is None else value.get(name) for value in values]
    if column.convert:
        values = [None if value is None else column.convert(value) for value in values]
    return values


class ParquetExport:
    """The Parquet files of an export, complete when it is closed."""

    names = ("drivers.parquet", "trips.parquet", "trail_points.parquet", "events.parquet", "daily_summaries.parquet")

    def __init__(self, files: Mapping[str, IO[bytes]]) -> None:
        of_trip = list(make_columns(TripSummary(only=OF_TRIP)))
        columns = (
            make_columns(Driver()),
            make_columns(ImportedTrip()),
            [*of_trip, *make_columns(TrailPoint())],
            [*of_trip, *make_columns(Event())],
            [*make_columns(Driver(only=["driver_id"])), *make_columns(DailySummary())],
        )
        tables = [_Table(files[name], row) for name, row in zip(self.names, columns, strict=True)]
        self._drivers, self._trips, self._points, self._events, self._days = self._tables = tables

    def close(self) -> None:
        """Write the last rows and the ends of the files."""
        for table in self._tables:
            table.close()

    def write_drivers(self, drivers: Iterable[Document]) -> int:
        """Write drivers, as in an import file."""
        return self._drivers.write(drivers)

    def write_trips(self, trips: Iterable[Document]) -> int:
        """Write trips, as in an import file, with their trails and events."""
        count = 0
        for batch in _batches(trips):
            count += self._trips.write(
                trip if "focus_area" in trip else {**trip, "focus_area": compute_focus_area(trip)} for trip in batch
            )
            for table, name in ((self._points, "trail_path"), (self._events, "events")):
                table.write(
                    {"driver_id": trip["driver_id"], "trip_id": trip["trip_id"], **row}
                    for trip in batch
                    for row in trip[name]
                )
        return count

    def write_days(self, days: Iterable[Document]) -> int:
        """Write Daily summaries, each with its driver_id."""
        return self._days.write(days)


def _batches(trips: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield trips in lists of about BATCH_ROWS rows, trail points and events included."""
    batch, size = list[Document](), 0
    for trip in trips:
        batch.append(trip)
        size += 1 + len(trip["trail_path"]) + len(trip["events"])
        if size >= BATCH_ROWS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
