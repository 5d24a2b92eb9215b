"""What a key that was never issued costs the store: nothing."""

import random
import string

import pytest
from limits import parse
from pymongo import MongoClient, monitoring

from app.store.api_keys import is_well_formed, make_key
from tests.conftest import Service

# Requests of each kind; `make test-large` sends 10,000 in all.
JUNK = [500, pytest.param(5_000, marks=pytest.mark.large)]
NO_LIMIT = parse("1000000 per minute")
BASE62 = string.digits + string.ascii_letters


class Commands(monitoring.CommandListener):
    """Keeps what is sent to the store: which database, and which command."""

    def __init__(self):
        self.sent = []

    def started(self, event):
        self.sent.append((event.database_name, event.command_name))

    def succeeded(self, event):
        pass

    failed = succeeded


@pytest.fixture
def commands():
    """What the service sends to the store."""
    return Commands()


@pytest.fixture
def monitored(mongod, mongod_uri, commands):
    """Make the service with settings of its own, on a client that is listened to."""
    with MongoClient(mongod_uri, event_listeners=[commands]) as client:

        def make(**settings):
            service = Service(client[mongod.name], auth_failure_limit=NO_LIMIT, **settings)
            service.key("f1")
            commands.sent.clear()
            return service

        yield make


def wrong_checksum(chance):
    """Return a key that was issued, so to speak, with one character changed."""
    key, place = make_key(), chance.randrange(3, 39)
    return key[:place] + chance.choice(BASE62.replace(key[place], "")) + key[place + 1 :]


def out_of_form(chance):
    """Return text that has not the form of a key."""
    key = make_key()
    return chance.choice(
        [key[:-1], key + "x", key.swapcase(), f"{key},{key}", "da_" + "é" * 36, "da_", "x" * chance.randrange(4000)]
    )


def ask(service, make_junk, times):
    """Ask with junk keys; return the statuses that come back."""
    chance = random.Random(times)
    keys = [make_junk(chance) for _ in range(times)]
    assert not any(map(is_well_formed, keys))
    return {service.get("/drivers", headers={"Authorization": f"APIKEY {key}"}).status_code for key in keys}


@pytest.mark.parametrize("times", JUNK)
@pytest.mark.parametrize("make_junk", [wrong_checksum, out_of_form])
def test_junk_keys_cost_no_operation_of_the_store(monitored, commands, make_junk, times):
    assert ask(monitored(), make_junk, times) == {401}
    assert commands.sent == []


def test_the_listener_hears_of_a_key_that_was_issued(monitored, commands, mongod):
    assert monitored().get("/drivers").status_code == 200
    assert (mongod.name, "find") in commands.sent
