"""A store in memory (mongomock), for `serve --demo` on machines without MongoDB, and for tests."""

from collections.abc import Callable
from typing import Any, Self, TypeVar

import mongomock
from mongomock.collection import BulkOperationBuilder
from mongomock.gridfs import enable_gridfs_integration
from pymongo import MongoClient

T = TypeVar("T")
_BULK_WRITE = mongomock.Collection.bulk_write


class _NoSession:
    """Replaces a session: mongomock has no transactions and snapshots, and accepts only a session that is false."""

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def bind(self) -> Self:
        return self

    def with_transaction(self, write: Callable[[Self], T]) -> T:
        return write(self)


class _MemoryClient(mongomock.MongoClient):  # type: ignore[type-arg]
    def start_session(self, **options: Any) -> _NoSession:  # type: ignore[override]
        return _NoSession()


class _BulkBuilder(BulkOperationBuilder):
    """Accepts the argument `sort` that pymongo's bulk operations pass, and that mongomock's builder does not have."""

    def add_replace(self, *args: Any, sort: Any = None, **kwargs: Any) -> None:
        super().add_replace(*args, **kwargs)  # type: ignore[no-untyped-call]

    def add_update(self, *args: Any, sort: Any = None, **kwargs: Any) -> None:
        super().add_update(*args, **kwargs)  # type: ignore[no-untyped-call]


def _bulk_write(collection: Any, requests: Any, *, bypass_document_validation: bool = False, **options: Any) -> Any:
    """Write as mongomock does, which has no validators, and refuses to leave them out."""
    return _BULK_WRITE(collection, requests, **options)


def memory_client() -> MongoClient[dict[str, Any]]:
    """Return a client of a new, empty store in the memory of this process."""
    mongomock.collection.BulkOperationBuilder = _BulkBuilder  # type: ignore[misc]
    mongomock.Collection.bulk_write = _bulk_write  # type: ignore[method-assign, assignment]
    # Lets GridFS use mongomock's collections.
    enable_gridfs_integration()  # type: ignore[no-untyped-call]
    client: MongoClient[dict[str, Any]] = _MemoryClient()
    return client
