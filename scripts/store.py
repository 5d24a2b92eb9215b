"""The store as the writing side sees it: opened, prepared, and written to by one command a fleet at a time."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from bson import ObjectId
from pymongo.database import Database
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError, WriteError

from app.config import Config
from app.db import connect
from app.store import NAMES, Document
from app.store.indexes import INDEXES, VALIDATORS
from app.store.served import MALFORMED
from scripts.embedded import MongodFailed, NoMongod, embedded_mongod

Store = Database[Document]

SELECTION_TIMEOUT_MS = 5000
# MongoDB's code for a collection that is there already.
NAMESPACE_EXISTS = 48
# How long a writer may show no sign of life, each batch being one, before another takes over.
LEASE_SECONDS = 30
WAIT_SECONDS = 0.5
# Documents of each collection that a message names.
MAX_NAMED = 5


def enter_mongodb(stack: contextlib.ExitStack, config: Config) -> str:
    """Return the URI of the MongoDB to use, embedded until the stack unwinds where none is set. Raises NoMongod."""
    try:
        return config.mongodb_uri or stack.enter_context(embedded_mongod(Path(config.data_dir)))
    except MongodFailed as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"DATA_DIR={config.data_dir} cannot be used: {error.strerror}.") from None


@contextlib.contextmanager
def open_store(config: Config | None = None, *, prepared: bool = True) -> Iterator[Store]:
    """Open the store that the settings name, ready to be written to unless the user may not make it so.

    Raises what ends a command in one line.
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
        db = client[config.mongodb_database]
        if prepared:
            prepare(db)
        yield db


def prepare(db: Store) -> None:
    """Make the collections with their validators and indexes, where they are not there yet."""
    for name, validator in VALIDATORS.items():
        try:
            db.create_collection(name, validator=validator, check_exists=False)
        except OperationFailure as error:
            if error.code != NAMESPACE_EXISTS:
                raise
        # A change of the validator locks the collection, so it is made only where there is one.
        if db[name].options().get("validator") != validator:
            db.command("collMod", name, validator=validator)
        db[name].create_indexes(INDEXES[name])


def fleets(db: Store, fleet: str | None) -> list[str]:
    """Return the fleets of which anything is stored, or the one given. Raises click.ClickException where it is none."""
    collections = ("drivers", "trips", "daily_summaries")
    known = sorted({name for collection in collections for name in db[collection].distinct("fleet")})
    if fleet is not None and fleet not in known:
        raise click.ClickException(f"Nothing is stored for the fleet {fleet}.")
    return known if fleet is None else [fleet]


def misfits(db: Store, fleet: str) -> list[str]:
    """Return the names of some documents of a fleet that the validators would have refused, if there are any."""
    return [
        f"{name} {found}"
        for name, validator in VALIDATORS.items()
        for found in db[name].find({"fleet": fleet, "$nor": [validator]}, NAMES).limit(MAX_NAMED)
    ]


class Writer:
    """The right to write to one fleet, to be renewed before each batch.

    What goes wrong because of documents that were put there past the validators ends with a click.ClickException that
    names them.
    """

    def __init__(self, db: Store, fleet: str) -> None:
        self._db, self._fleet, self._writers = db, fleet, db.writers
        self._held = {"fleet": fleet, **_this_process(), "beat": str(ObjectId())}

    def __enter__(self) -> "Writer":
        self.acquire()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with contextlib.suppress(PyMongoError):
            self.release()
        if isinstance(error, (*MALFORMED, WriteError, BulkWriteError)) and (found := misfits(self._db, self._fleet)):
            raise click.ClickException(
                f"Documents of the fleet {self._fleet} are out of shape; correct or delete them: {'; '.join(found)}"
            ) from error

    def acquire(self) -> None:
        """Wait for whoever writes to the fleet; take over from one that has died."""
        seen, since = None, time.monotonic()
        while True:
            with contextlib.suppress(DuplicateKeyError):
                self._writers.insert_one(dict(self._held))
                return
            holder = self._writers.find_one({"fleet": self._held["fleet"]}, {"_id": 0})
            if holder is None:
                continue
            died = holder["machine"] == self._held["machine"] and not _lives(holder["pid"])
            if seen is None and not died:
                click.echo(f"Waiting for process {holder['pid']}, which is writing to this fleet ...", err=True)
            if holder != seen:
                seen, since = holder, time.monotonic()
            if died or time.monotonic() - since > LEASE_SECONDS:
                if self._replace(holder, self._held):
                    return
            else:
                time.sleep(WAIT_SECONDS)

    def renew(self) -> None:
        """Show a sign of life. Raises click.ClickException where another writer has taken over."""
        renewed = {**self._held, "beat": str(ObjectId())}
        if not self._replace(self._held, renewed):
            raise click.ClickException(
                "Another command took over writing to this fleet, since this one had stood still. Run it again, or "
                "'driver-analytics rollups rebuild'."
            )
        self._held = renewed

    def release(self) -> None:
        """Let the next writer in."""
        self._writers.delete_one(self._held)

    def _replace(self, held: Document, by: Document) -> bool:
        return self._writers.replace_one(held, dict(by)).matched_count == 1


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _this_process() -> Document:
    # A pid tells a process only within one boot and one namespace of pids.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        machine = f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        machine = str(ObjectId())
    return {"machine": machine, "pid": os.getpid()}
