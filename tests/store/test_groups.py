"""What follows from who is in a group, whatever changes that: the number of drivers, and the groups of weeks."""

import pytest

from app.store.groups import find_driver_counts
from scripts.lifecycle.erase import erase_driver
from scripts.materialize.rebuild_and_verify import rebuild_fleet, repair_fleet
from scripts.materialize.write_sources import delete_drivers
from tests.factories import make_driver, make_trip
from tests.fleet_states import FLEET, differences
from tests.following import Following, make_source
from tests.store_contents import load

MEMBERS = {"d1": ["North"], "d2": ["North", "South"], "d3": []}


@pytest.fixture
def counts(store):
    """Load drivers in groups, of whom d1 drove, and return a function for the numbers of drivers."""
    load(store.db, make_trip(), drivers=[make_driver(name, groups=groups) for name, groups in MEMBERS.items()])
    load(store.db, drivers=[make_driver("d1", groups=["North"])], fleet="f2")
    return lambda: find_driver_counts(store, FLEET)


def test_an_import_of_drivers(store, counts):
    assert counts() == {"North": 2, "South": 1}
    lines = [make_driver("d1", groups=["South"]), make_driver("d2", groups=[]), make_driver("d3", groups=["West"])]
    load(store.db, drivers=lines)
    assert (counts(), find_driver_counts(store, "f2")) == ({"South": 1, "West": 1}, {"North": 1})
    assert differences(store.db) == []


def test_a_driver_without_trips_leaves_with_the_source_and_another_one_stays(store, counts):
    delete_drivers(store, FLEET, ["d1", "d2"])
    assert (counts(), differences(store.db)) == ({"North": 1}, [])


def test_an_erased_driver(store, counts):
    for driver_id in ("d1", "d2"):
        list(erase_driver(store, FLEET, driver_id))
    assert (counts(), differences(store.db)) == ({}, [])


def test_a_rebuild_from_scratch(store, counts):
    before = counts()
    store.fleets.update_one({"_id": FLEET}, {"$unset": {"format": ""}})
    list(rebuild_fleet(store, FLEET))
    assert counts() == before


@pytest.mark.parametrize("damage", [{"$inc": {"driver_count": 1}}, {"$unset": {"driver_count": ""}}])
@pytest.mark.parametrize("repair", [rebuild_fleet, repair_fleet])
def test_a_wrong_number_is_found_and_repaired(store, counts, damage, repair):
    before, of_north = counts(), {"fleet": FLEET, "segment": "group=North", "driver_count": {"$exists": True}}
    store.fleet_periods.update_one(of_north, damage)
    assert differences(store.db) == ["fleet_periods group=North profile: differs"]
    list(repair(store, FLEET))
    assert (counts(), differences(store.db)) == (before, [])


def test_a_number_of_no_drivers_is_found_and_removed(store, counts):
    store.fleet_periods.insert_one(
        {"fleet": FLEET, "segment": "group=x", "period": "profile", "start_date": "", "driver_count": 1}
    )
    assert differences(store.db) == ["fleet_periods group=x profile: should not be there"]
    list(repair_fleet(store, FLEET))
    assert counts() == {"North": 2, "South": 1}


@pytest.mark.usefixtures("short_batches", "mongod")
def test_groups_that_are_written_directly(store, counts):
    following = Following(store.db)
    following.catch_up()
    store.driver_groups.delete_one({"_id": "f1/d1"})
    store.driver_groups.update_one({"_id": "f1/d2"}, {"$set": {"groups": ["South", "West"]}})
    store.driver_groups.insert_one(make_source({"driver_id": "d3", "groups": ["South"]}))
    following.catch_up()
    assert (counts(), differences(store.db)) == ({"South": 2, "West": 1}, [])


def test_the_commands_set_and_delete(store, counts, command):
    command("groups", "set", "--fleet", FLEET, "--group", "North", stdin="d2\nd3\nd1\n")
    command("groups", "delete", "--fleet", FLEET, "--group", "South")
    assert (counts(), differences(store.db)) == ({"North": 3}, [])


# Weeks and months have the groups of their drivers, so that an index has the ranking of a group.


@pytest.fixture
def ranked(store):
    """Load trips of d1 and d2 in two months, and return a function for the drivers in the rankings of a group."""
    dates, drivers = ("2026-02-11", "2026-03-11"), ("d1", "d2")
    trips = [make_trip(f"{date}T08:00", name) for date in dates for name in drivers]
    load(store.db, *trips, drivers=[make_driver(name, groups=["North"]) for name in drivers])

    def ranked(group):
        weeks, months = ("2026-02-09", "2026-03-09"), ("2026-02-01", "2026-03-01")
        found = {tuple(rank(store, group, "week", date)) for date in weeks}
        (drivers,) = found | {tuple(rank(store, group, "month", date)) for date in months}
        return drivers

    return ranked


def rank(store, group, period, start_date):
    """Return the drivers of the ranking of a group."""
    match = {"fleet": FLEET, "groups": group, "period": period, "start_date": start_date}
    return [row["driver_id"] for row in store.driver_periods.find(match, sort=[("driver_id", 1)])]


def test_who_joins_or_leaves_does_so_in_each_week_and_month(store, ranked):
    assert ranked("North") == ("d1", "d2")
    load(store.db, drivers=[make_driver("d1", groups=["South"]), make_driver("d2", groups=[])])
    assert (ranked("North"), ranked("South"), differences(store.db)) == ((), ("d1",), [])


def test_a_trip_leaves_the_groups_as_they_are(store, ranked):
    load(store.db, make_trip("2026-02-12T08:00", "d1"), make_trip("2026-03-12T08:00", "d2"))
    assert (ranked("North"), differences(store.db)) == (("d1", "d2"), [])


@pytest.mark.parametrize("repair", [rebuild_fleet, repair_fleet])
def test_groups_that_were_written_while_nothing_followed_are_repaired_at_once(store, ranked, repair):
    store.driver_groups.update_one({"driver_id": "d1"}, {"$set": {"groups": ["South"]}})
    store.driver_periods.update_many({"driver_id": "d2", "period": "week"}, {"$unset": {"groups": ""}})
    list(repair(store, FLEET))
    assert (ranked("North"), ranked("South"), differences(store.db)) == (("d2",), ("d1",), [])


# Each driver who joins or leaves a group changes all of the driver's weeks and months, so a transaction has some.


@pytest.fixture
def count_transactions(store, ranked, monkeypatch):
    """Return how many transactions a call takes, each of which may move one driver."""
    for module in ("materialize.write_sources", "ingest.follow"):
        monkeypatch.setattr(f"scripts.{module}.MOVES_PER_TRANSACTION", 1)

    def count(write):
        before = store.fleets.find_one({"_id": FLEET})["writes"]
        write()
        return store.fleets.find_one({"_id": FLEET})["writes"] - before

    return count


def test_an_import_moves_some_drivers_in_a_transaction(store, ranked, count_transactions):
    new = [make_driver(f"new {n}", groups=["South"]) for n in range(3)]
    moved = [make_driver(name, groups=["South"]) for name in ("d1", "d2")]
    assert count_transactions(lambda: load(store.db, drivers=[*new, *moved])) == 2
    assert count_transactions(lambda: load(store.db, drivers=[*new, *moved])) == 1
    assert (ranked("South"), differences(store.db)) == (("d1", "d2"), [])


@pytest.mark.usefixtures("short_batches", "mongod")
def test_follow_moves_some_drivers_in_a_transaction(store, ranked, count_transactions):
    following = Following(store.db)
    following.catch_up()
    store.driver_groups.update_many({}, {"$set": {"groups": ["South"]}})
    store.drivers.update_one({"driver_id": "d1"}, {"$set": {"alias": "A"}})
    assert count_transactions(following.catch_up) == 2
    assert (ranked("South"), differences(store.db)) == (("d1", "d2"), [])
