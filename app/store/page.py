"""One page of an ordered query."""

from pymongo.collection import Collection

from app.store import Document
from schemas.derive import Fields, projection
from schemas.mask import arranger


def find_page(
    collection: Collection[Document],
    match: Document,
    order: list[tuple[str, int]],
    *,
    page: int,
    limit: int,
    fields: Fields,
    whole: Fields,
) -> Document:
    """Return page `page` (from 1) of the matching documents as a dict of `fields`, which are some of those of `whole`.

    Records are projected to what is asked of them. Without `count` nothing is counted: whether there is a next page
    then shows in a record more. Where records are not asked for either, none is fetched.
    """
    (name,) = (name for name, below in whole.items() if below)
    skip = (page - 1) * limit
    count = collection.count_documents(match) if "count" in fields else None
    ahead = 1 if count is None and "next_page" in fields else 0
    records: list[Document] = []
    if (name in fields and (count is None or skip < count)) or ahead:
        wanted = fields.get(name) or {}
        records = list(collection.find(match, projection(wanted)).sort(order).skip(skip).limit(limit + ahead))
        if arrange := arranger(wanted, whole[name]):
            records = list(map(arrange, records))
    more = len(records) > limit if count is None else page * limit < count
    values = {
        "count": count,
        "limit": limit,
        "current_page": page,
        "next_page": page + 1 if more else None,
        name: records[:limit],
    }
    return {field: values[field] for field in fields}
