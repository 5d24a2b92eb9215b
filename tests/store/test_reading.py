"""Finding in one command: what pymongo's cursor would find."""

import pytest
from app.store.reading import find
from bson import ObjectId
from pymongo import MongoClient

from tests.store.test_plans import Recorder

MEGABYTE = 1_000_000
WANTED = {"_id": 0, "n": 1}
OPEN_CURSORS = {"type": "idleCursor", "ns": {"$regex": r"\.large$"}}


@pytest.fixture
def numbers(db):
    """A collection with the numbers from 0 to 299, in no order."""
    db.numbers.delete_many({})
    db.numbers.insert_many([{"n": n * 7 % 300} for n in range(300)])
    return db.numbers


@pytest.mark.parametrize(
    ("match", "bounds", "expected"),
    [
        ({}, {}, range(300)),
        ({"n": {"$gte": 290}}, {}, range(290, 300)),
        ({}, {"skip": 120}, range(120, 300)),
        ({}, {"skip": 295, "limit": 3}, range(295, 298)),
        ({}, {"limit": 1}, range(1)),
        ({"n": -1}, {}, []),
    ],
)
def test_it_finds_what_is_asked_for_in_order(numbers, match, bounds, expected):
    assert [doc["n"] for doc in find(numbers, match, WANTED, [("n", 1)], **bounds)] == list(expected)


def test_it_finds_only_the_fields_that_are_wanted(numbers):
    assert find(numbers, {"n": 3}, WANTED) == [{"n": 3}]
    (whole,) = find(numbers, {"n": 3}, {})
    assert isinstance(whole["_id"], ObjectId)


def test_what_no_reply_holds_is_found_whole_and_leaves_no_cursor_open(mongod):
    mongod.large.delete_many({})
    mongod.large.insert_many([{"n": n, "text": b"x" * 4 * MEGABYTE} for n in range(6)])
    found = find(mongod.large, {}, {"_id": 0}, [("n", 1)])
    left = list(mongod.client.admin.aggregate([{"$currentOp": {"idleCursors": True}}, {"$match": OPEN_CURSORS}]))
    mongod.drop_collection("large")
    assert [(doc["n"], len(doc["text"])) for doc in found] == [(n, 4 * MEGABYTE) for n in range(6)]
    assert left == []


def test_it_asks_once_with_the_read_concern_of_the_client(mongod, mongod_uri):
    recorder = Recorder()
    with MongoClient(mongod_uri, event_listeners=[recorder], readConcernLevel="majority") as client:
        find(client[mongod.name].numbers, {}, WANTED)
    (read,) = recorder.reads
    assert read["readConcern"] == {"level": "majority"}
