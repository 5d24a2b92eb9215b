"""One page of an ordered query."""

import dataclasses

from pymongo.collection import Collection

from app.store import Document


@dataclasses.dataclass(frozen=True)
class Page:
    """Records of page `number` (from 1), and the count of all that match."""

    count: int
    number: int
    limit: int
    records: list[Document]


def find_page(
    collection: Collection[Document],
    match: Document,
    order: list[tuple[str, int]],
    fields: dict[str, int],
    *,
    page: int,
    limit: int,
) -> Page:
    """Return a page of the matching documents, with no field but `fields`; one past the end is empty."""
    count = collection.count_documents(match)
    skip = (page - 1) * limit
    records = list(collection.find(match, fields).sort(order).skip(skip).limit(limit)) if skip < count else []
    return Page(count, page, limit, records)
