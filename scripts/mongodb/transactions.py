"""The transactions of the commands, and how they write. Those of a fleet run one after the other, and are numbered."""

import functools
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
from pymongo import DESCENDING, DeleteOne, InsertOne, ReplaceOne
from pymongo.client_session import ClientSession
from pymongo.errors import OperationFailure

from app.store import Document, DocumentCollection, Store
from app.store.fleets import FORMAT
from scripts.command_line.output import echo

P = ParamSpec("P")
T = TypeVar("T")
Operation = DeleteOne | InsertOne[Document] | ReplaceOne[Document]
# A command that waits longer for another one prints a message.
MESSAGE_AFTER_SECONDS = 2.0
# MongoDB's error code for a document that another transaction has changed, and its label for what may be repeated.
WRITE_CONFLICT, TRANSIENT = 112, "TransientTransactionError"
FEED_KEY_BYTES = 32


class NothingToWrite(Exception):
    """Ends a transaction without a trace. The argument is the result of the function."""


def transaction(change: Callable[Concatenate[Store, str, P], T]) -> Callable[Concatenate[Store, str, P], T]:
    """Let a function run in a transaction of the fleet that is its second argument.

    Transactions of one fleet run one after the other. If a transaction conflicts with another one, the function is
    called again; so it must have no effects other than writes. PyMongo passes the session of the transaction to all
    operations within. Raises click.ClickException if MongoDB has aborted the transaction for two minutes, which is how
    long PyMongo repeats one.
    """

    @functools.wraps(change)
    def run(store: Store, fleet: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        started, has_printed = time.monotonic(), False

        def attempt(_: ClientSession) -> T:
            nonlocal has_printed
            try:
                lock_fleet(store, fleet)
            except OperationFailure as error:
                is_late = time.monotonic() - started > MESSAGE_AFTER_SECONDS
                if error.code == WRITE_CONFLICT and is_late and not has_printed:
                    has_printed = True
                    echo(f"Waiting for another command that writes to {fleet}, for two minutes at most ...", err=True)
                raise
            return change(store, fleet, *args, **kwargs)

        try:
            with store.db.client.start_session().bind() as session:
                return session.with_transaction(attempt)
        except NothingToWrite as nothing:
            result: T = nothing.args[0]
            return result
        except OperationFailure as error:
            if error.has_error_label(TRANSIENT):
                raise _make_abort_error(fleet, error) from error
            raise

    return run


def _make_abort_error(fleet: str, error: OperationFailure) -> click.ClickException:
    reason = (
        "another command writes to the fleet, or was killed while it did"
        if error.code == WRITE_CONFLICT
        else "each try took longer than transactionLifetimeLimitSeconds, or the primary changed"
    )
    return click.ClickException(
        f"MongoDB aborted a transaction of the fleet {fleet} again and again: {reason}. Nothing of the transaction is "
        "stored. Run the command again; if it fails again, see 'A command waits' in docs/operations.md."
    )


def lock_fleet(store: Store, fleet: str) -> None:
    """Lock the fleet until the transaction ends, and give the transaction its number.

    MongoDB aborts any other transaction that changes the state of the fleet. The first transaction begins the change
    feed. If the state was lost, the new numbers continue after those in the feed.
    """
    change = {
        "$inc": {"writes": 1},
        "$currentDate": {"written_at": True},
        "$setOnInsert": {"feed_key": make_feed_key(), "format": FORMAT},
    }
    if store.fleets.update_one({"_id": fleet}, change, upsert=True).upserted_id is None:
        return
    newest_first = [("change", DESCENDING), ("trip_id", DESCENDING)]
    newest = store.trip_changes.find_one({"fleet": fleet}, {"change": 1}, sort=newest_first)
    if newest:
        store.fleets.update_one({"_id": fleet}, {"$set": {"writes": newest["change"] + 1}})


def make_feed_key() -> str:
    """Return a new `feed_key` of a fleet state, with which a change feed begins."""
    return secrets.token_urlsafe(FEED_KEY_BYTES)


def write_by_id(
    collection: DocumentCollection,
    documents: Mapping[str, Document | None],
    match: Document | None = None,
    **options: Any,
) -> None:
    """Insert or replace documents by their `_id`, or delete those that are None.

    `match` finds those that are stored, by default by their `_id`. MongoDB leaves a document as it is if its
    replacement does not differ. `options` are those of `bulk_write`.
    """
    if not documents:
        return
    found = collection.find(match or {"_id": {"$in": list(documents)}}, {"_id": 1})
    stored = {document["_id"] for document in found}
    operations = list[Operation]()
    for _id, document in documents.items():
        if document is None:
            operations += [DeleteOne({"_id": _id})] if _id in stored else []
        else:
            # An insert takes MongoDB less time than an upsert.
            operations.append(ReplaceOne({"_id": _id}, document) if _id in stored else InsertOne(document))
    write_all(collection, operations, **options)


def write_all(collection: DocumentCollection, operations: list[Operation], **options: Any) -> None:
    """Write in a transaction. Raises BulkWriteError for the first operation that fails."""
    # In order: a write that fails ends the transaction. Otherwise PyMongo would send the next command, whose error says
    # only that the transaction was aborted, and would repeat the transaction for two minutes. Sorted by their type, as
    # many operations as possible are one command.
    if operations:
        operations.sort(key=lambda operation: type(operation).__name__)
        collection.bulk_write(operations, **options)
