"""The store as commands see it: opened, and prepared with its collections, validators and indexes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click
from pymongo.errors import BulkWriteError, OperationFailure, WriteError

from app.config import Config
from app.database import check_transactions, connect
from app.store import COLLECTIONS, IDENTIFIERS, READ_MODELS, SOURCES, Store
from app.store.indexes import INDEXES, VALIDATORS
from scripts.mongodb.embedded_mongod import MongodFailed, NoMongod, embedded_mongod

SELECTION_TIMEOUT_MS = 5000
# MongoDB's code for a collection that exists.
NAMESPACE_EXISTS = 48
# Invalid documents of each collection that a message names.
MAX_NAMED = 5
# What an invalid document leads to.
SYMPTOMS = (KeyError, IndexError, TypeError, ValueError, AttributeError, WriteError, BulkWriteError)


def enter_mongodb(stack: contextlib.ExitStack, config: Config) -> str:
    """Return the URI of the MongoDB to use, embedded until the stack unwinds where none is set. Raises NoMongod."""
    try:
        return config.mongodb_uri or stack.enter_context(embedded_mongod(Path(config.data_dir)))
    except MongodFailed as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"DATA_DIR={config.data_dir} cannot be used: {error.strerror}.") from None


@contextlib.contextmanager
def open_store(config: Config | None = None, *, writes: bool = True) -> Iterator[Store]:
    """Open the store that the settings name; a command that `writes` also prepares its collections.

    Raises click.ClickException, in one line, if there is no MongoDB, or none with transactions to write in.
    """
    config = config or Config.from_environment()
    with contextlib.ExitStack() as stack:
        try:
            uri = enter_mongodb(stack, config)
        except NoMongod as error:
            raise click.ClickException(str(error)) from None
        client = stack.enter_context(
            connect(uri, serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS, readPreference="primary")
        )
        check_transactions(client)
        store = Store.of(client[config.mongodb_database])
        if writes:
            prepare(store)
        yield store


def prepare(store: Store) -> None:
    """Create the collections that are missing, with their validators and indexes."""
    for name in COLLECTIONS:
        validator = VALIDATORS[name]
        try:
            store.db.create_collection(name, validator=validator, check_exists=False)
        except OperationFailure as error:
            if error.code != NAMESPACE_EXISTS:
                raise
        # A change of the validator locks the collection, so it is made only where the validator differs.
        if store.db[name].options().get("validator") != validator:
            store.db.command("collMod", name, validator=validator)
        store.db[name].create_indexes(INDEXES[name])


def fleets(store: Store, fleet: str | None) -> list[str]:
    """Return the fleets that have data, or the one given. Raises click.ClickException if it has none."""
    known = sorted({name for collection in (*SOURCES, *READ_MODELS) for name in store.db[collection].distinct("fleet")})
    if fleet is not None and fleet not in known:
        raise click.ClickException(f"Nothing is stored for the fleet {fleet}.")
    return known if fleet is None else [fleet]


@contextlib.contextmanager
def naming_invalid_documents(store: Store, fleet: str) -> Iterator[None]:
    """Name the fleet's invalid documents if one of them makes the block fail. Raises click.ClickException."""
    try:
        yield
    except SYMPTOMS as error:
        if invalid := invalid_documents(store, fleet):
            raise click.ClickException(
                f"Documents of the fleet {fleet} violate their schema; correct or delete them: {'; '.join(invalid)}"
            ) from error
        raise


def invalid_documents(store: Store, fleet: str) -> list[str]:
    """Return the names of some documents of a fleet that their validators would refuse."""
    return [
        f"{name} {found}"
        for name in COLLECTIONS
        for found in store.db[name].find({"fleet": fleet, "$nor": [VALIDATORS[name]]}, IDENTIFIERS).limit(MAX_NAMED)
    ]
