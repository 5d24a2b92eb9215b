"""scripts/materialize/fleets.py: the bookmarks that divide a fleet's drivers into blocks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store import Store
from app.store.drivers import find_page
from scripts.materialize import fleets
from scripts.materialize.update import write
from scripts.memory import memory_client

MAX_BLOCK = 4
ids = st.sets(st.text("ab\u00e9\U0001f600", min_size=1, max_size=3), max_size=12)
FIELDS = {"count": None, "drivers": {"driver_id": None}}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Divide blocks of more than four drivers."""
    monkeypatch.setattr(fleets, "MAX_BLOCK", MAX_BLOCK)
    monkeypatch.setattr(fleets, "NEW_BLOCK", MAX_BLOCK // 2)


@pytest.fixture
def store():
    return new_store()


def new_store():
    return Store.of(memory_client()["test"])


def change(store, added=(), removed=()):
    """Add and remove drivers' profiles, and count them."""

    def write_profiles(session):
        for driver_id in added:
            profile = {"fleet": "f1", "driver_id": driver_id, "json": f'{{"driver_id":"{driver_id}"}}'}
            store.driver_profiles.insert_one(profile)
        store.driver_profiles.delete_many({"driver_id": {"$in": list(removed)}})
        fleets.update_fleet(store, session, "f1", added=added, removed=removed)

    write(store, "f1", write_profiles)


def blocks(store):
    bookmarks = store.fleets.find_one()["bookmarks"]
    return list(zip(bookmarks["driver_ids"], bookmarks["counts"], strict=True))


def page(store, number, limit):
    """Return a page of driver_ids, and the count."""
    content = find_page(store, "f1", page=number, limit=limit, fields=FIELDS).content
    return [driver["driver_id"] for driver in content["drivers"]], content["count"]


def is_right(store):
    return not fleets.counts_differ(store, None, "f1")


def test_the_first_drivers_are_one_block(store):
    change(store, "bca")
    assert blocks(store) == [("a", 3)]


def test_a_driver_before_all_others_begins_the_first_block(store):
    change(store, "bc")
    change(store, "a")
    assert blocks(store) == [("a", 3)]


def test_a_driver_is_counted_in_the_block_that_it_falls_into(store):
    change(store, "acegik")
    assert blocks(store) == [("a", 2), ("e", 2), ("i", 2)]
    change(store, "bz")
    assert blocks(store) == [("a", 3), ("e", 2), ("i", 3)]


def test_a_block_that_grows_too_long_is_divided(store):
    change(store, "aim")
    change(store, "bcdef")
    assert blocks(store) == [("a", 2), ("c", 2), ("e", 2), ("i", 2)]


def test_an_empty_block_goes(store):
    change(store, "acegik")
    change(store, removed="ge")
    assert blocks(store) == [("a", 2), ("i", 2)]


def test_a_block_stays_where_its_first_driver_goes(store):
    change(store, "acegik")
    change(store, added="f", removed="ea")
    assert blocks(store) == [("a", 1), ("e", 2), ("i", 2)]
    assert is_right(store)


def test_a_fleet_that_lost_its_drivers_has_no_block_and_may_grow_again(store):
    change(store, "ab")
    change(store, removed="ab")
    assert (blocks(store), page(store, 1, 5)) == ([], ([], 0))
    change(store, "b")
    assert (blocks(store), page(store, 1, 5)) == ([("b", 1)], (["b"], 1))


def test_every_change_gives_the_fleet_another_version(store):
    versions = set()
    for added in "abc":
        change(store, added)
        versions.add(store.fleets.find_one()["version"])
    assert len(versions) == 3


@pytest.mark.parametrize(
    "tampered",
    [
        {"driver_count": 5},
        {"bookmarks": {"driver_ids": ["a", "c"], "counts": [3, 1]}},
        {"bookmarks": {"driver_ids": ["b", "c"], "counts": [1, 3]}},
        {"bookmarks": {"driver_ids": [], "counts": []}},
    ],
    ids=str,
)
def test_counts_that_differ_from_the_profiles_are_found_and_counted_from_scratch(store, tampered):
    change(store, "abcd")
    assert is_right(store)
    store.fleets.update_one({}, {"$set": tampered})
    assert not is_right(store)
    write(store, "f1", lambda session: fleets.count_again(store, session, "f1"))
    assert (is_right(store), page(store, 2, 3)) == (True, (["d"], 4))


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=6), st.integers(1, 5))
def check_changes(changes, limit):
    store, present = new_store(), set()
    for added, removed in changes:
        added, removed = added - present, removed & present
        change(store, added, removed)
        present = present - removed | added
        pages = [page(store, number + 1, limit) for number in range(len(present) // limit + 1)]
        assert [driver_id for found, _ in pages for driver_id in found] == sorted(present)
        assert {count for _, count in pages} == {len(present)}
        assert is_right(store)
        assert all(1 <= count <= MAX_BLOCK for _, count in blocks(store))


def test_bookmarks_agree_with_the_profiles_and_pages_with_the_sorted_list_after_any_changes():
    check_changes()
