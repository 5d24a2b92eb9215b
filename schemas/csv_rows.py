"""CSV (RFC 4180) for spreadsheets: the rows of a page, and how a value is written."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from marshmallow import Schema
from marshmallow.fields import Nested

from schemas.fields import Object, Objects

CSV = "text/csv"
# Where a spreadsheet would begin a formula. If it does not split at commas, it splits at semicolons, tabs or line
# breaks whatever the quotes. It may drop quotes and characters that nobody sees, and take fullwidth signs, too.
FORMULA = re.compile(r"\A(?=[\t\r\n])|(?<![^;\t\r\n])(?=[^!#-~\w\t\r\n]*[=@+\-\uff1d\uff20\uff0b\uff0d])")
# A sign alone, or before a number or telephone number, is no formula. With a hyphen it is one: +1-555 is -554.
SIGNED_NUMBER = re.compile(r"[+-][0-9 .()]*")


def make_csv_writer(page: Schema) -> Callable[[Mapping[str, Any]], Iterator[bytes]]:
    """Return a function that yields a page of this schema as CSV: a row for each element of its list of objects.

    A column is a field. The names of nested ones are joined by dots. Lists of objects are left out.
    """
    ((name, rows),) = [(name, field) for name, field in page.fields.items() if isinstance(field, Objects)]
    paths = list(_find_columns(cast(Nested, rows.inner).schema))

    def write(content: Mapping[str, Any]) -> Iterator[bytes]:
        yield begin_csv(map(".".join, paths))
        for element in content[name]:
            yield render_rows([[_get(element, path) for path in paths]])

    return write


def _find_columns(schema: Schema, *above: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field, nested ones included. Lists of objects are left out."""
    for name, field in schema.fields.items():
        if isinstance(field, Object):
            yield from _find_columns(field.schema, *above, name)
        elif not isinstance(field, Objects):
            yield (*above, name)


def _get(value: Any, path: Iterable[str]) -> Any:
    """Return a value of an element, or None where it lacks the field."""
    for name in path:
        value = value.get(name) if value else None
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def begin_csv(header: Iterable[str]) -> bytes:
    """Return the first line of a file."""
    # A spreadsheet takes a file without the mark for one in the encoding of its system.
    return codecs.BOM_UTF8 + render_rows([header])


def render_rows(rows: Iterable[Iterable[Any]]) -> bytes:
    """Return rows as lines."""
    return "".join(f"{','.join(map(_render_cell, row))}\r\n" for row in rows).encode()


def _render_cell(value: Any) -> str:
    """Return the cell of a value: text in quotes, so that no spreadsheet splits it, and nothing else in quotes."""
    if isinstance(value, str):
        text = value if SIGNED_NUMBER.fullmatch(value) else FORMULA.sub("'", value)
        return '"{}"'.format(text.replace('"', '""'))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else repr(value)
