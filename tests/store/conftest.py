"""What tests of the store share: the commands that read, as sent to a real server."""

import pytest
from pymongo import MongoClient, monitoring


class Recorder(monitoring.CommandListener):
    """Keeps the commands that read, as sent."""

    def __init__(self):
        self.reads = []

    def started(self, event):
        if event.command_name in ("find", "aggregate", "count", "distinct"):
            self.reads.append(dict(event.command))

    def succeeded(self, event):
        pass

    failed = succeeded


@pytest.fixture
def recorder():
    """The commands that read, as sent."""
    return Recorder()


@pytest.fixture
def recorded_mongod(mongod, mongod_uri, recorder):
    """An empty database of a real server; the commands sent to it are recorded."""
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        yield client[mongod.name]
