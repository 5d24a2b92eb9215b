"""The commands that a client sends to a real server."""

from pymongo.monitoring import CommandListener

READS = {"find", "aggregate", "count", "distinct"}
WRITES = {"insert", "update", "delete", "findAndModify"}


class Recorder(CommandListener):
    """Keeps all commands as sent, in order; `$db` is the database."""

    def __init__(self):
        self.commands = []

    def started(self, event):
        self.commands.append(dict(event.command))

    def succeeded(self, event):
        """Do nothing."""

    failed = succeeded

    @property
    def reads(self):
        """The commands that read."""
        return [command for command in self.commands if READS & set(command)]
