"""Writes that MongoDB refuses: the reason comes at once, in one line, and nothing is written."""

import pytest

from tests.factories import make_driver
from tests.store_contents import everything, load


@pytest.fixture
def unique_emails(mongod):
    """Drivers with an index of the operator, whose e-mail addresses must differ."""
    load(mongod, drivers=[make_driver("d1", email="one@example.com")])
    mongod.drivers.create_index("email", name="unique_emails", unique=True)
    yield mongod
    mongod.drivers.drop_index("unique_emails")


def test_a_write_that_can_never_succeed_is_reported_at_once(run_main, mongod_uri, unique_emails, write_lines):
    before = everything(unique_emails)
    lines = [make_driver("d1", email="one@example.com", alias="new"), make_driver("d2", email="one@example.com")]
    path = write_lines("drivers.ndjson", *lines)
    settings = {"MONGODB_URI": mongod_uri, "MONGODB_DATABASE": unique_emails.name}
    ended = run_main("import", "--fleet", "f1", "--drivers", str(path), **settings)
    assert (ended.status, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("Error: MongoDB: E11000 duplicate key error collection: test.drivers index: unique_")
    assert "one@example.com" not in ended.stderr
    assert everything(unique_emails) == before
