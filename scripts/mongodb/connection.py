"""Opening the store for a command, and which fleets and identifiers are in it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from bson.codec_options import CodecOptions
from pymongo import ASCENDING, MongoClient
from pymongo.monitoring import ServerHeartbeatListener

from app.config import Config, ConfigError, find_misspelt
from app.database import connect
from app.store import SOURCES, Document, DocumentCollection, Store
from app.store.driver_periods import find_profiles
from app.store.fleets import check_format
from schemas.identity import ids_of_fleet, split_id
from scripts.command_line.batches import batches
from scripts.command_line.output import echo, escape
from scripts.mongodb.collections import prepare_collections
from scripts.mongodb.embedded_mongod import FOLDER, embedded_mongod, has_database, is_running

SELECTION_TIMEOUT_MS = 5000
# Text that is not UTF-8 has surrogates then, which no schema allows. So it makes a document invalid, and no query fail.
LENIENT: CodecOptions[Document] = CodecOptions(unicode_decode_error_handler="surrogateescape")
# Fleets that a message names.
MAX_NAMED_FLEETS = 10
# Unknown drivers that a message names.
MAX_NAMED_DRIVERS = 5
# MongoDB's limit on a command has room for so many identifiers or digests.
IDS_PER_COMMAND = 10_000
# Documents per reply of MongoDB. Small, because MongoDB closes a cursor that is idle for 10 minutes.
BATCH_SIZE = 1_000


def enter_mongodb(stack: contextlib.ExitStack, config: Config) -> str:
    """Return MONGODB_URI, or start the embedded MongoDB, which runs until the stack is closed, and return its URI.

    Raises click.ClickException: NoMongod if it cannot start one, and also for the errors of the block if it has ended.
    """
    try:
        return config.mongodb_uri or stack.enter_context(embedded_mongod(Path(config.data_dir)))
    except OSError as error:
        raise click.ClickException(
            f"DATA_DIR={config.data_dir} cannot be used: {error.strerror}. Set MONGODB_URI to the address of a "
            "MongoDB, or DATA_DIR to a folder that you can write to."
        ) from None


def check_transactions(client: MongoClient[Document]) -> None:
    """Raise ConfigError unless the server supports transactions: a replica set or a sharded cluster."""
    hello = client.admin.command("hello")
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        raise ConfigError(
            "MongoDB runs as a standalone server, which has no transactions. Start mongod with --replSet NAME and run "
            "rs.initiate() once: a replica set of one member is enough."
        )


def read_config() -> Config:
    """Return the settings of the environment. Names variables whose names are nearly those of settings."""
    config = Config.from_environment()
    for sentence in find_misspelt(os.environ):
        echo(f"Warning: {sentence}", err=True)
    return config


def _confirm_new_database(data_dir: Path) -> None:
    """Say that a database will be created in a folder, and ask on a terminal. Raises click.Abort for no."""
    sentence = f"MONGODB_URI is not set, and {data_dir.resolve()} has no database yet."
    if sys.stdin and sys.stdin.isatty():
        click.confirm(escape(f"{sentence} Create one?"), abort=True, err=True)
    else:
        echo(f"{sentence} Creating one.", err=True)


class _MongodWatch(ServerHeartbeatListener):
    """Ends the command, as SIGTERM does, when its embedded MongoDB has ended.

    PyMongo would repeat a transaction for two minutes, and a command that waits for input would not notice.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder, self._is_closed = data_dir.resolve() / FOLDER, False

    def close(self) -> None:
        """Stop watching: PyMongo may report the end of a server after its client was closed."""
        self._is_closed = True

    def failed(self, event: object) -> None:
        """End the command, from a thread of PyMongo, unless the server runs and only does not respond."""
        if not self._is_closed and not is_running(self._folder):
            self._is_closed = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def started(self, event: object) -> None:
        """Do nothing."""

    succeeded = started


def _connect(stack: contextlib.ExitStack, config: Config) -> MongoClient[Document]:
    """Return a client of the MongoDB of the settings, which is closed with the stack. Raises click.ClickException."""
    data_dir = Path(config.data_dir)
    if not (config.mongodb_uri or has_database(data_dir)):
        _confirm_new_database(data_dir)
    uri = enter_mongodb(stack, config)
    watches = [] if config.mongodb_uri else [stack.enter_context(contextlib.closing(_MongodWatch(data_dir)))]
    options = {"serverSelectionTimeoutMS": SELECTION_TIMEOUT_MS, "readPreference": "primary"}
    return stack.enter_context(connect(uri, event_listeners=watches, **options))


@contextlib.contextmanager
def open_store(config: Config | None = None, *, writes: bool = True, any_format: bool = False) -> Iterator[Store]:
    """Open the store of the settings. If the command `writes`, also prepare the collections.

    Raises click.ClickException if there is no MongoDB, or if the embedded one has ended, OtherFormat, and ConfigError
    for a standalone server. `any_format` is for a block that does not read read models.
    """
    config = config or read_config()
    with contextlib.ExitStack() as stack:
        client = _connect(stack, config)
        check_transactions(client)
        store = Store.of(client.get_database(config.mongodb_database, codec_options=LENIENT))
        if not any_format:
            check_format(store)
        if writes:
            prepare_collections(store)
        yield store


def find_fleets(store: Store) -> list[str]:
    """Return the fleets with stored data."""
    return sorted(
        {state["_id"] for state in store.fleets.find({}, {"_id": 1})}.union(
            *(_find_fleets_of(store.db[name]) for name in SOURCES)
        )
    )


def has_data(store: Store, fleet: str) -> bool:
    """Return whether sources of the fleet are stored, or its state."""
    ids = {"_id": ids_of_fleet(fleet)}
    found = (store.db[name].find_one(ids, {"_id": 1}) for name in SOURCES)
    return bool(store.fleets.find_one({"_id": fleet}, {"_id": 1}) or any(found))


@contextlib.contextmanager
def naming_new_fleet(store: Store, fleet: str) -> Iterator[None]:
    """Name the fleet if the block creates it: the name may be a mistake."""
    is_new = not has_data(store, fleet)
    yield
    if is_new and has_data(store, fleet):
        echo(f"{fleet}: a new fleet", err=True)


def require_fleet(store: Store, fleet: str) -> None:
    """Raise click.ClickException if nothing is stored for the fleet."""
    if not has_data(store, fleet):
        raise click.ClickException(f"Nothing is stored for the fleet {fleet}.{name_other_fleets(store, fleet)}")


def require_drivers(store: Store, fleet: str, driver_ids: Sequence[str], outcome: str) -> None:
    """Raise click.ClickException if the fleet does not have one of the drivers. `outcome` says what did not happen."""
    known = {
        driver_id
        for batch in batches(driver_ids, IDS_PER_COMMAND)
        for driver_id in find_profiles(store, {"fleet": fleet, "driver_id": {"$in": batch}})
    }
    if unknown := [driver_id for driver_id in driver_ids if driver_id not in known]:
        # Quoted, because spaces count, and so that what cannot be seen is escaped.
        named = ", ".join(map(repr, unknown[:MAX_NAMED_DRIVERS]))
        more = f" and {len(unknown) - MAX_NAMED_DRIVERS} more" if len(unknown) > MAX_NAMED_DRIVERS else ""
        raise click.ClickException(f"The fleet {fleet} has no driver {named}{more}: {outcome}.")


def name_other_fleets(store: Store, fleet: str) -> str:
    """Return a sentence, to follow another one, that names the fleets. It is empty if `fleet` is one of them."""
    fleets = find_fleets(store)
    more = f" and {len(fleets) - MAX_NAMED_FLEETS} more ('fleets list')" if len(fleets) > MAX_NAMED_FLEETS else ""
    return f" The fleets are: {', '.join(fleets[:MAX_NAMED_FLEETS])}{more}." if fleets and fleet not in fleets else ""


def _find_fleets_of(sources: DocumentCollection) -> Iterator[str]:
    """Yield the fleets of a source collection. Reads one entry of the index of `_id` for each."""
    first, by_id = "", [("_id", ASCENDING)]
    # The expression leaves out what belongs to no fleet.
    while source := sources.find_one({"_id": {"$gte": first, "$regex": "^[^/]+/"}}, {"_id": 1}, sort=by_id):
        fleet, _, _ = source["_id"].partition("/")
        yield fleet
        # The first `_id` after those of the fleet.
        first = ids_of_fleet(fleet)["$lt"]


def find_identifiers(
    collection: DocumentCollection, fleet: str, match: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[str]:
    """Yield the identifiers in the `_id` of matching documents of a fleet, in code point order. Index: (_id).

    One that is not UTF-8 is left out: `find_unidentified` yields its document.
    """
    ids = {"_id": ids_of_fleet(fleet), **match}
    for document in collection.find(ids, {"_id": 1}, sort=[("_id", ASCENDING)], batch_size=BATCH_SIZE):
        if parts := split_id(document["_id"]):
            yield parts[1]


def select_fleets(store: Store, fleet: str | None) -> list[str]:
    """Return the given fleet, or else all with stored data.

    Raises click.ClickException if nothing is stored for the given one. If there is no fleet at all, say so.
    """
    if fleet is not None:
        require_fleet(store, fleet)
        return [fleet]
    fleets = find_fleets(store)
    if not fleets:
        say_empty(store)
    return fleets


def say_empty(store: Store) -> None:
    """Print that the database is empty, and its name, which may be wrong."""
    echo(f"Nothing is stored in the database {store.db.name}.", err=True)
