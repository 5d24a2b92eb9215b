"""What a key that was never issued costs the store: nothing."""

import random
import string

import pytest
from limits import parse

from app.store.api_keys import is_well_formed, make_key
from tests.conftest import Service

# Requests of each kind; `make test-large` sends 10,000 in all.
JUNK = [500, pytest.param(5_000, marks=pytest.mark.large)]
NO_LIMIT = parse("1000000 per minute")
BASE62 = string.digits + string.ascii_letters


@pytest.fixture
def monitored(recorded_mongod, recorder):
    """Make the service with settings of its own, on a client whose commands are recorded."""

    def make(**settings):
        service = Service(recorded_mongod, auth_failure_limit=NO_LIMIT, **settings)
        service.key("f1")
        recorder.commands.clear()
        return service

    return make


def wrong_checksum(rng):
    """Return a key that was issued, so to speak, with one character changed."""
    key, place = make_key(), rng.randrange(3, 39)
    return key[:place] + rng.choice(BASE62.replace(key[place], "")) + key[place + 1 :]


def out_of_form(rng):
    """Return text that has not the form of a key."""
    key = make_key()
    return rng.choice(
        [key[:-1], key + "x", key.swapcase(), f"{key},{key}", "da_" + "é" * 36, "da_", "x" * rng.randrange(4000)]
    )


def send_junk_keys(service, make_junk, times):
    """Send requests with junk keys; return the statuses of the responses."""
    rng = random.Random(times)
    keys = [make_junk(rng) for _ in range(times)]
    assert not any(map(is_well_formed, keys))
    return {service.get("/drivers", headers={"Authorization": f"APIKEY {key}"}).status_code for key in keys}


@pytest.mark.parametrize("times", JUNK)
@pytest.mark.parametrize("make_junk", [wrong_checksum, out_of_form])
def test_junk_keys_cause_no_database_operation(monitored, recorder, make_junk, times):
    assert send_junk_keys(monitored(), make_junk, times) == {401}
    assert recorder.commands == []


def test_an_issued_key_causes_database_operations(monitored, recorder, mongod):
    assert monitored().get("/drivers").status_code == 200
    assert [command["$db"] for command in recorder.reads] == [mongod.name] * len(recorder.reads) != []
