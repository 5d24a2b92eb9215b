"""FORMAT is raised whenever what is stored of the same sources changes."""

import hashlib

import bson
import pytest
from bson import ObjectId

from app.store import READ_MODELS
from app.store.fleets import FORMAT, FORMAT_DIGEST
from schemas import driver
from scripts.materialize import trips
from scripts.mongodb.collections import CLUSTERED, INDEXES
from tests.whole_fleet import write_whole_fleets

# What differs each time: MongoDB's time, and what is random or made of these.
VOLATILE = ("written_at", "deleted_at", "feed_key")


def describe(value):
    """Return a value with its types, and the fields of each object in order: MongoDB returns some in any."""
    match value:
        case dict():
            is_tombstone = "deleted_at" in value
            return {
                name: type(inner).__name__
                if name in VOLATILE or (is_tombstone and name == "checksum")
                else describe(inner)
                for name, inner in sorted(value.items())
                if not isinstance(inner, ObjectId)
            }
        case list():
            return list(map(describe, value))
    # How many bits an integer has depends on the way to a sum.
    return ("int" if isinstance(value, bson.Int64) else type(value).__name__), value


def make_digest(db):
    """Return the digest of all that is stored of two fleets, and of the indexes."""
    write_whole_fleets(db)
    documents = {
        name: sorted(repr(describe(document)) for document in db[name].find()) for name in (*READ_MODELS, "fleets")
    }
    indexes = {name: [repr(describe(dict(index.document))) for index in INDEXES[name]] for name in READ_MODELS}
    stored = repr((documents, indexes, sorted(CLUSTERED)))
    return hashlib.blake2b(stored.encode(), digest_size=8).hexdigest()


def test_format_is_raised_if_what_is_stored_changes(mongod, clock):
    digest = make_digest(mongod)
    assert digest == FORMAT_DIGEST, (
        f"What is stored is not that of format {FORMAT}. In app/store/fleets.py, set FORMAT_DIGEST = '{digest}'. Also "
        "increment FORMAT, unless it is higher than in the last release already, and say in CHANGELOG.md that it takes "
        "a pause."
    )


def alter_letters(monkeypatch):
    monkeypatch.setitem(driver.PLAIN, ord("ŋ"), "n")


def alter_a_field(monkeypatch):
    monkeypatch.setattr(trips, "TRIP_TOTALS_FIELDS", trips.TRIP_TOTALS_FIELDS[:-1])


def alter_indexes(monkeypatch):
    monkeypatch.setitem(INDEXES, "trip_events", INDEXES["trip_events"][:-1])


@pytest.mark.parametrize("alter", [alter_letters, alter_a_field, alter_indexes])
def test_the_digest_differs_if_letters_a_field_or_an_index_do(mongod, clock, monkeypatch, alter):
    alter(monkeypatch)
    assert make_digest(mongod) != FORMAT_DIGEST
