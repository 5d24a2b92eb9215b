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
    then shows in one record more.
    """
    (name,) = (name for name, below in whole.items() if below)
    skip = (page - 1) * limit
    count = collection.count_documents(match) if "count" in fields else None
    look_ahead = count is None and "next_page" in fields
    records: list[Document] = []
    if name in fields and (count is None or skip < count):
        wanted = fields[name] or {}
        found = collection.find(match, projection(wanted)).sort(order).skip(skip).limit(limit + look_ahead)
        records = list(map(arranger(wanted, whole[name] or {}), found))
    if count is not None:
        more = page * limit < count
    elif name in fields:
        more = len(records) > limit
    else:
        indexed, _ = order[-1]
        more = look_ahead and collection.find_one(match, {"_id": 0, indexed: 1}, skip=skip + limit) is not None
    values = {
        "count": count,
        "limit": limit,
        "current_page": page,
        "next_page": page + 1 if more else None,
        name: records[:limit],
    }
    return {field: values[field] for field in fields}
