"""Finding documents, in one command."""

from collections.abc import Callable, Sequence

from pymongo.collection import Collection
from pymongo.errors import PyMongoError

from app.store import Document

# More than are ever found: all come in the first batch, but for what is over the 16 MB of a reply.
ALL = 1_000_000

Order = Sequence[tuple[str, int]]
# Finds as `find` does.
Find = Callable[..., list[Document]]


def find(
    collection: Collection[Document],
    match: Document,
    wanted: Document,
    order: Order = (),
    *,
    skip: int = 0,
    limit: int = 0,
) -> list[Document]:
    """Return the `wanted` of all documents that match, or of `limit` of them after the first `skip`.

    pymongo's cursor is for results of any length, and costs half as much again as the command by itself; it is used
    where that fails, since a command is not tried again, or where one reply does not hold all.
    """
    # A store in memory takes no commands.
    if isinstance(collection, Collection):
        db = collection.database
        bounds = {"skip": skip, "limit": limit, "batchSize": ALL, "readConcern": collection.read_concern.document}
        command = {"find": collection.name, "filter": match, "projection": wanted, "sort": dict(order), **bounds}
        try:
            found = db.command(command, read_preference=collection.read_preference)["cursor"]
        except PyMongoError as error:
            if error.timeout:
                raise
        else:
            if not found["id"]:
                documents: list[Document] = found["firstBatch"]
                return documents
            db.command({"killCursors": collection.name, "cursors": [found["id"]]})
    return list(collection.find(match, wanted, sort=list(order) or None, skip=skip, limit=limit))
