"""One page of an ordered query."""

from typing import Any, NamedTuple

from orjson import Fragment
from pymongo.collection import Collection

from app.store import Document
from schemas.derive import Fields, projection
from schemas.mask import arranger


class Asked(NamedTuple):
    """Which page, from 1, of `limit` records, and which `fields` of those of a `whole` one."""

    page: int
    limit: int
    fields: Fields
    whole: Fields

    @property
    def skip(self) -> int:
        """How many records come before the page."""
        return (self.page - 1) * self.limit

    @property
    def records(self) -> str:
        """The name of the records of a page."""
        (name,) = (name for name, below in self.whole.items() if below)
        return name

    def content(self, records: list[Any] | Fragment, count: int) -> Document:
        """Return the page that has these records, of `count` in all, as a dict of `fields`."""
        values = {
            "count": count,
            "limit": self.limit,
            "current_page": self.page,
            "next_page": self.page + 1 if self.skip + self.limit < count else None,
            self.records: records,
        }
        return {field: values[field] for field in self.fields}


def find_page(
    collection: Collection[Document],
    match: Document,
    order: list[tuple[str, int]],
    asked: Asked,
    *,
    count: int | None = None,
    skip: int | None = None,
) -> Document:
    """Return the page of the matching documents that is asked for, as a dict of its `fields`.

    Records are projected to what is asked of them. Where they are known, `count` is how many there are in all, and
    `skip` how many that match come before the page.
    """
    if count is None:
        count = collection.count_documents(match)
    if asked.records not in asked.fields or asked.skip >= count:
        return asked.content([], count)
    wanted = asked.fields[asked.records] or {}
    found = collection.find(match, projection(wanted)).sort(order).skip(asked.skip if skip is None else skip)
    arrange = arranger(wanted, asked.whole[asked.records] or {})
    return asked.content(list(map(arrange, found.limit(asked.limit))), count)
