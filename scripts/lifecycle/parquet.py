"""Parquet files from the NDJSON files of an export, written by DuckDB. Their columns follow from the schemas.

DuckDB reads the lines in parts and writes a row group as soon as it is full, so the memory needed does not depend on
the size of the fleet.
"""

import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
from marshmallow import fields

from schemas.driver import Driver, ImportedDriver
from schemas.fields import Date, Flag, Int64, Number, Text
from schemas.summary import DailySummary
from schemas.trip import ImportedTrip

Fields = Mapping[str, fields.Field[Any]]

# The SQL type of a column for each type of field. A subclass comes before its class.
TYPES = ((Date, "DATE"), (Text, "VARCHAR"), (Flag, "BOOLEAN"), (Int64, "BIGINT"), (Number, "DOUBLE"))
LISTS = ("trail_path", "events")
OF_TRIP = ("driver_id", "trip_id")
# For each Parquet file the NDJSON file that it is made of, and the fields to take. A list has a row for each object.
TABLES: Mapping[str, tuple[str, Fields]] = {
    "drivers.parquet": ("drivers.ndjson.gz", ImportedDriver().fields),
    "trips.parquet": ("trips.ndjson.gz", ImportedTrip(exclude=LISTS).fields),
    "trail_points.parquet": ("trips.ndjson.gz", ImportedTrip(only=(*OF_TRIP, "trail_path")).fields),
    "events.parquet": ("trips.ndjson.gz", ImportedTrip(only=(*OF_TRIP, "events")).fields),
    "daily_summaries.parquet": (
        "daily_summaries.ndjson.gz",
        {**Driver(only=["driver_id"]).fields, **DailySummary().fields},
    ),
}


def write_tables(folder: Path, max_line_bytes: int) -> None:
    """Write the Parquet files from the NDJSON files in the same folder. Raises OSError."""
    # DuckDB reads 32 MB of lines at a time, or twice the longest line. With one thread, the longest that MongoDB can
    # store takes 560 MB. With no folder for temporary data, nothing is left in one.
    with duckdb.connect(config={"threads": 1, "memory_limit": "1GB", "temp_directory": ""}) as connection:
        try:
            for name, (source, columns) in TABLES.items():
                rows = _read_rows(connection, folder / source, columns, max_line_bytes)
                rows.write_parquet(str(folder / name), compression="zstd")
        except duckdb.IOException as error:
            raise OSError(str(error)) from None


def _read_rows(
    connection: duckdb.DuckDBPyConnection, path: Path, columns: Fields, max_line_bytes: int
) -> duckdb.DuckDBPyRelation:
    """Return the rows of a table, which DuckDB reads when it writes them. A field of an object is a column."""
    lines = connection.read_json(
        # It takes a name for a pattern, and a folder named fleet=acme for a column.
        glob.escape(str(path)),
        columns={name: _make_type(field) for name, field in columns.items()},
        format="newline_delimited",
        compression="gzip",
        maximum_object_size=max_line_bytes,
        hive_partitioning=False,
    )
    objects = {name for name, field in columns.items() if isinstance(getattr(field, "inner", field), fields.Nested)}
    return lines.project(
        ", ".join(f"unnest({name}, recursive := true)" if name in objects else name for name in columns)
    )


def _make_type(field: fields.Field[Any]) -> str:
    """Return the SQL type of the values of a field."""
    if isinstance(field, fields.List):
        return f"{_make_type(field.inner)}[]"
    if isinstance(field, fields.Nested):
        return f"STRUCT({', '.join(f'{name} {_make_type(part)}' for name, part in field.schema.fields.items())})"
    return next(sql for field_type, sql in TYPES if isinstance(field, field_type))
