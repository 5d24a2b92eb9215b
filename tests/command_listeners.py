"""Listeners to the commands that a client sends to a real server."""

from collections.abc import Iterator
from contextlib import contextmanager

from pymongo import MongoClient
from pymongo.monitoring import CommandListener

from app.store import Store


class Listener(CommandListener):
    """Does nothing; those that do something derive from it."""

    def started(self, event):
        """Do nothing."""

    succeeded = failed = started


class Before(Listener):
    """Calls a function before a command, counted from 0 of those that count; -1 is never."""

    def __init__(self, command, function, counts=lambda event: True):
        self.left, self.function, self.counts = command, function, counts

    def started(self, event):
        if self.counts(event):
            self.left -= 1
            if self.left == -1:
                self.function()


class Recorder(Listener):
    """Keeps all commands as sent, in order."""

    def __init__(self):
        self.commands = []

    def started(self, event):
        self.commands.append(dict(event.command))


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
def open_store_until(uri: str, name: str, command: int, **_: bool) -> Iterator[Store]:
    """Open a store, as it is, that stops before a command, counted from 0; -1 is never."""
    with MongoClient(uri, event_listeners=[StopBefore(command)]) as client:
        try:
            yield Store.of(client[name])
        except Stop:
            # The server would end the open transaction only after 20 seconds.
            with MongoClient(uri) as other_client:
                other_client.admin.command("killAllSessions", [])
            raise
