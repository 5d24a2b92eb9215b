"""One page of an ordered query."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from marshmallow import Schema
from orjson import Fragment
from pymongo.collection import Collection

from app.store import Document, OutOfShape
from app.store.reading import Find, Order, find
from schemas.derive import Fields, element_of, fields_of, fits, projection
from schemas.mask import arranger

# While trips are being written, what one answer tells may have to be read again; very rarely more than once.
ATTEMPTS = 5

log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """Which page, from 1, of `limit` records, and which `fields` of a `shape`, such as TripDetailPage.

    A record that is out of shape is left out of the page, and told of in the log; `strictly` it is OutOfShape.
    """

    page: int
    limit: int
    fields: Fields
    shape: type[Schema]
    strictly: bool = False

    @property
    def whole(self) -> Fields:
        """The fields of a whole page."""
        return fields_of(self.shape)

    @property
    def skip(self) -> int:
        """How many records come before the page."""
        return (self.page - 1) * self.limit

    @property
    def records(self) -> str:
        """The name of the records of a page."""
        (name,) = (name for name, below in self.whole.items() if below)
        return name

    def fits(self, records: Sequence[Any] | None, count: int) -> bool:
        """Return whether the records, where any are asked for, are as many as the page has where there are `count`."""
        return records is None or len(records) == max(0, min(self.limit, count - self.skip))

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
    collection: Collection[Document], match: Document, order: Order, asked: Asked, read: Find = find
) -> Document:
    """Return the page of the matching documents that is asked for, as a dict of its `fields`.

    Records are projected to what is asked of them, and found by `read`. What is written between counting and finding
    them is read again.
    """
    for _ in range(ATTEMPTS):
        count = collection.count_documents(match)
        records = _find_records(collection, match, order, asked, count, asked.skip, read)
        if asked.fits(records, count):
            break
    return asked.content(_arranged(collection, match, order, asked, asked.skip, records or []), count)


def find_counted_page(
    collection: Collection[Document], match: Document, order: Order, asked: Asked, count: int, skip: int
) -> Document | None:
    """Return the same where it is known how many there are in all, and how many that match come before the page.

    None where they are not so many: some were written since.
    """
    records = _find_records(collection, match, order, asked, count, skip)
    if not asked.fits(records, count):
        return None
    return asked.content(_arranged(collection, match, order, asked, skip, records or []), count)


def _find_records(
    collection: Collection[Document],
    match: Document,
    order: Order,
    asked: Asked,
    count: int,
    skip: int,
    read: Find = find,
) -> list[Document] | None:
    """Return the records of a page, or None where none are asked for."""
    if asked.records not in asked.fields:
        return None
    if asked.skip >= count:
        return []
    wanted = projection(asked.fields[asked.records] or {})
    return read(collection, match, wanted, order, skip=skip, limit=asked.limit)


def _arranged(
    collection: Collection[Document], match: Document, order: Order, asked: Asked, skip: int, records: list[Document]
) -> list[Document]:
    """Return the records, found after `skip` others, in the order asked for."""
    wanted = asked.fields.get(asked.records) or {}
    sound = fits(element_of(asked.shape, asked.records), wanted)
    if not all(map(sound, records)):
        for number, record in enumerate(records):
            if not sound(record):
                error = OutOfShape(collection, match, sort=order, skip=skip + number)
                if asked.strictly:
                    raise error
                log.error("out of shape, and left out: %s", error)
        records = list(filter(sound, records))
    return list(map(arranger(wanted, asked.whole[asked.records] or {}), records))
