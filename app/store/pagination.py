"""Pages of records, and rendered JSON as a part of a response: as it is stored, or pruned by a field mask."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson
from orjson import Fragment

from app.store import Document
from schemas.introspection import Fields
from schemas.mask import make_pruner


class Selection(NamedTuple):
    """What to read for a response: the `fields` of it, or, without `content`, only the version that they have."""

    fields: Fields
    include_content: bool = True

    def projection(self, *fragments: str) -> dict[str, int]:
        """Return the projection of these fragments, which is empty where only the version is selection."""
        return dict.fromkeys(fragments, 1) if self.include_content else {}


class PageRequest(NamedTuple):
    """Which page of records to read: number `page` from 1, of up to `limit` records."""

    page: int
    limit: int

    @property
    def skip(self) -> int:
        """How many records come before the page."""
        return (self.page - 1) * self.limit

    def build_content(self, fields: Fields, count: int, records: Document) -> Document:
        """Return the `fields` of the response; `records` holds the list by its name, `count` is that of all pages."""
        values = {
            "count": count,
            "limit": self.limit,
            "current_page": self.page,
            "next_page": self.page + 1 if self.skip + self.limit < count else None,
            **records,
        }
        return {name: values[name] for name in fields}


def get_first(found: Iterable[Document]) -> Document | None:
    """Return the first of the documents that a query found."""
    return next(iter(list(found)), None)


def make_renderer(fields: Fields | None, whole: Fields | None) -> Callable[[str], Any]:
    """Return a function that makes a value for orjson of a shape's JSON text.

    The shape has the fields `whole`. Where `fields` is `whole` the text is sent as it is; otherwise the text is parsed,
    and the value has these `fields` in their order.
    """
    if fields is whole:
        return Fragment
    prune = make_pruner(fields or {}, whole or {})
    return lambda text: prune(orjson.loads(text))
