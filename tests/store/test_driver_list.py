"""The list of a fleet's drivers has all drivers in order, on pages of any size, whoever comes and goes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.materialize.write_sources import delete_drivers
from scripts.mongodb.memory_store import memory_client
from tests.conftest import NO_LIMITS, Service
from tests.factories import make_driver
from tests.fleet_states import FLEET, Batch, differences, write_batches

# In the order of code points, which is not that of their numbers.
IDS = [f"{name}{number}" for name in ("d", "é", "\U0001f600") for number in range(110)]
some_ids = st.sets(st.sampled_from(IDS), min_size=1, max_size=5)


def put(store, ids, alias="A"):
    write_batches(store, [Batch("drivers", [make_driver(driver_id, alias=alias) for driver_id in ids])])


def remove(store, ids):
    delete_drivers(store, FLEET, list(ids))


def page(service, number, limit):
    """Return the ETag of a page, the drivers on it, and the count."""
    response = service.get("/drivers", page=number, limit=limit)
    return response.headers["ETag"], response.json["drivers"], response.json["count"]


@pytest.mark.parametrize("examples", [4, pytest.param(8, marks=pytest.mark.large)])
def test_pages_are_slices_of_all_drivers_after_any_changes(examples):
    @settings(deadline=None, max_examples=examples)
    @given(st.lists(st.tuples(some_ids, some_ids), min_size=1, max_size=4), st.sampled_from([20, 50, 100]))
    def check(changes, limit):
        service, present = Service(memory_client()["test"], **NO_LIMITS, log_level="ERROR"), {*IDS[::3], *IDS[1::3]}
        store = service.store
        put(store, present)
        for added, removed in changes:
            put(store, added)
            remove(store, removed)
            present = (present | added) - removed
            pages = [page(service, number + 1, limit) for number in range(len(present) // limit + 1)]
            assert [driver["driver_id"] for _, found, _ in pages for driver in found] == sorted(present)
            assert {count for *_, count in pages} == {len(present)}
        assert differences(store.db) == []

    check()


def test_only_the_pages_near_a_changed_driver_get_another_version(service, store):
    put(store, IDS[:300])
    before = [page(service, n, 100)[0] for n in (1, 2, 3)]
    put(store, [sorted(IDS[:300])[150]], alias="B")
    assert [page(service, n, 100)[0] != before[n - 1] for n in (1, 2, 3)] == [False, True, False]


def test_a_page_with_other_drivers_in_the_same_number_has_another_version(service, store):
    put(store, "bcdefghijk")
    before, *_ = page(service, 6, 1)
    put(store, "a")
    remove(store, "k")
    version, found, count = page(service, 6, 1)
    assert (found, count, version != before) == ([make_driver("f", alias="A")], 10, True)
