"""Stops before a chosen command of the store, as if the process had ended there."""

from collections.abc import Iterator
from contextlib import contextmanager

from pymongo import MongoClient

from app.store import Store
from tests.command_recorder import Listener


class Stop(BaseException):
    """The process ends here."""


class StopBefore(Listener):
    """Stops before a command, counted from 0, and before any that follows: an open transaction is not even aborted."""

    def __init__(self, command):
        self.left = command

    def started(self, event):
        # The server ends the session of a dead process by itself.
        if event.command_name == "endSessions":
            return
        if self.left == 0:
            raise Stop
        self.left -= 1


@contextmanager
def open_store_until(uri: str, name: str, command: int) -> Iterator[Store]:
    """Open a store that stops before a command, counted from 0; -1 is never."""
    with MongoClient(uri, event_listeners=[StopBefore(command)]) as client:
        try:
            yield Store.of(client[name])
        except Stop:
            # The server would end the open transaction only after 20 seconds.
            with MongoClient(uri) as other_client:
                other_client.admin.command("killAllSessions", [])
            raise
