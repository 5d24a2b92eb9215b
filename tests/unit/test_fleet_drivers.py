"""scripts/materialize/fleet_drivers.py: the list of a fleet's drivers, in blocks."""

import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store import Store, drivers
from app.store.rendering import Selection
from schemas.introspection import fields_of
from schemas.page import DriverPage
from scripts.materialize import fleet_drivers
from scripts.materialize.documents import profile_key
from scripts.materialize.update import run_transaction
from scripts.mongodb.memory_store import memory_client
from tests.factories import make_driver

BLOCK = 4
ids = st.sets(st.text("ab\u00e9\U0001f600", min_size=1, max_size=3), max_size=12)
SELECTION = Selection(fields_of(DriverPage))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Divide blocks of more than four drivers."""
    monkeypatch.setattr(drivers, "BLOCK_SIZE", BLOCK)
    monkeypatch.setattr(fleet_drivers, "BLOCK_SIZE", BLOCK)
    monkeypatch.setattr(fleet_drivers, "NEW_BLOCK_SIZE", BLOCK // 2)


@pytest.fixture
def store():
    return new_store()


def new_store():
    return Store.of(memory_client()["test"])


def change(store, put=(), removed=(), alias="A"):
    """Put drivers' profiles into the store and the list, and take others out."""
    changes = {driver_id: json.dumps(make_driver(driver_id, alias=alias)) for driver_id in put}

    def write_profiles(session):
        for driver_id, text in changes.items():
            key = dict(zip(("driver_id", "period", "start_date"), profile_key(driver_id), strict=True))
            profile = {"fleet": "f1", **key, "json": text}
            store.driver_periods.replace_one(key, profile, upsert=True)
        store.driver_periods.delete_many({"driver_id": {"$in": list(removed)}})
        fleet_drivers.update_list(store, session, "f1", {**dict.fromkeys(removed), **changes})

    run_transaction(store, "f1", write_profiles)


def blocks(store):
    """Return the position of each block, and the drivers in it."""
    documents = store.fleet_drivers.find({"position": {"$gte": 0}}).sort("position")
    return [
        (block["position"], "".join(json.loads(row)["driver_id"] for row in block["drivers"])) for block in documents
    ]


def page(store, number, limit):
    """Return the drivers of a page, and the count."""
    content = orjson.loads(
        orjson.dumps(drivers.find_drivers(store, "f1", page=number, limit=limit, selection=SELECTION).content)
    )
    return content["drivers"], content["count"]


def is_right(store):
    return not fleet_drivers.list_differs(store, None, "f1")


def test_the_first_drivers_are_one_block(store):
    change(store, "bca")
    assert blocks(store) == [(0, "abc")]


def test_a_driver_before_all_others_is_in_the_first_block(store):
    change(store, "bc")
    change(store, "a")
    assert blocks(store) == [(0, "abc")]


def test_a_driver_goes_into_the_block_that_has_those_before_it_and_the_others_move(store):
    change(store, "acegik")
    assert blocks(store) == [(0, "ac"), (2, "eg"), (4, "ik")]
    change(store, "bz")
    assert blocks(store) == [(0, "abc"), (3, "eg"), (5, "ikz")]


def test_a_block_that_grows_too_long_is_divided(store):
    change(store, "aim")
    change(store, "bcdef")
    assert blocks(store) == [(0, "ab"), (2, "cd"), (4, "ef"), (6, "im")]


def test_an_empty_block_goes(store):
    change(store, "acegik")
    change(store, removed="ge")
    assert blocks(store) == [(0, "ac"), (2, "ik")]


def test_a_fleet_that_lost_its_drivers_has_no_block_and_may_grow_again(store):
    change(store, "ab")
    change(store, removed="ab")
    assert (blocks(store), page(store, 1, 5)) == ([], ([], 0))
    change(store, "b")
    assert (blocks(store), page(store, 1, 5)[1]) == ([(0, "b")], 1)


def test_a_driver_who_changed_is_replaced_and_other_blocks_keep_their_versions(store):
    change(store, "acegik")
    before = store.fleet_drivers.distinct("version")
    change(store, "g", alias="G")
    assert [driver["alias"] for driver in page(store, 1, 6)[0]] == ["A", "A", "A", "G", "A", "A"]
    assert len({*before, *store.fleet_drivers.distinct("version")}) == len(before) + 1


@pytest.mark.parametrize(
    ("match", "tampered"),
    [
        ({"position": -1}, {"$set": {"driver_count": 5}}),
        ({"position": -1}, None),
        ({"position": 0}, {"$set": {"drivers": ["{}"]}}),
        ({"position": 0}, {"$set": {"drivers": []}}),
        ({"position": 0}, {"$unset": {"drivers": 1}}),
        ({"position": 0}, {"$set": {"first_driver_id": "b"}}),
        ({"position": 0}, {"$set": {"version": "x"}}),
        ({"position": 0}, {"$set": {"driver_count": 1}}),
        ({"position": 2}, {"$set": {"position": 7}}),
        ({"position": 2}, None),
        ({}, None),
    ],
    ids=str,
)
def test_a_list_that_differs_from_the_profiles_is_reported_and_rebuilt(store, match, tampered):
    change(store, "abcdef")
    assert is_right(store)
    if tampered:
        store.fleet_drivers.update_one(match, tampered)
    else:
        store.fleet_drivers.delete_many(match)
    assert not is_right(store)
    run_transaction(store, "f1", lambda session: fleet_drivers.rebuild_list(store, session, "f1"))
    assert is_right(store)
    assert [driver["driver_id"] for driver in page(store, 2, 3)[0]] == ["d", "e", "f"]


@pytest.mark.parametrize(
    "superfluous",
    [{"position": -1, "driver_count": 6}, {"position": 6, "driver_count": 0}, {"position": 6, "drivers": ["{}"]}],
    ids=str,
)
def test_superfluous_entries_of_the_list_are_reported_and_removed(store, superfluous):
    change(store, "abcdef")
    store.fleet_drivers.insert_one({"fleet": "f1", "driver_count": 1, **superfluous})
    assert not is_right(store)
    run_transaction(store, "f1", lambda session: fleet_drivers.rebuild_list(store, session, "f1"))
    assert (is_right(store), page(store, 1, 9)[1]) == (True, 6)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=6), st.integers(1, 9))
def check_changes(changes, limit):
    store, present = new_store(), set()
    for put, removed in changes:
        change(store, put, removed - put)
        present = present - removed | put
        pages = [page(store, number + 1, limit) for number in range(len(present) // limit + 1)]
        assert [driver["driver_id"] for documents, _ in pages for driver in documents] == sorted(present)
        assert {count for _, count in pages} == {len(present)}
        assert is_right(store)
        assert all(1 <= block["driver_count"] <= BLOCK for block in store.fleet_drivers.find({"position": {"$gte": 0}}))


def test_the_list_agrees_with_the_profiles_and_pages_with_the_sorted_drivers_after_any_changes():
    check_changes()
