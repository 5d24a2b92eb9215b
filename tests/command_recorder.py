"""The commands that a client sends to a real server."""

from pymongo.monitoring import CommandListener

READS = {"find", "aggregate", "count", "distinct"}
WRITES = {"insert", "update", "delete", "findAndModify"}


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
    """Keeps all commands as sent, in order; `$db` is the database."""

    def __init__(self):
        self.commands = []

    def started(self, event):
        self.commands.append(dict(event.command))

    @property
    def reads(self):
        """The commands that read."""
        return [command for command in self.commands if READS & set(command)]
