"""Commands stopped before any one operation of the store, as if their process had ended there."""

from collections.abc import Iterator
from contextlib import contextmanager

from pymongo import MongoClient
from pymongo.monitoring import CommandListener

from app.store import Store

# The server ends the session of a dead process by itself.
OF_SESSIONS = ("endSessions", "abortTransaction")


class Stop(BaseException):
    """The process ends here."""


class StopAt(CommandListener):
    """Lets so many operations through to the store, and no more."""

    def __init__(self, operations):
        self.left = operations

    def started(self, event):
        if event.command_name in OF_SESSIONS:
            return
        if self.left == 0:
            raise Stop
        self.left -= 1

    def succeeded(self, event):
        """Do nothing."""

    failed = succeeded


@contextmanager
def open_store_until(uri: str, name: str, operations: int) -> Iterator[Store]:
    """Open a store that stops after so many operations; -1 is never."""
    with MongoClient(uri, event_listeners=[StopAt(operations)]) as client:
        yield Store.of(client[name])
