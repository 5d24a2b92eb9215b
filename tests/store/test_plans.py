"""Every query carries the fleet and runs on the index that is meant for it, which gives its order."""

import pytest
from pymongo import MongoClient

from app.store import (
    Store,
    UnknownDrivers,
    api_keys,
    changes,
    drivers,
    explanations,
    rankings,
    reports,
    summaries,
    trips,
)
from app.store.rendering import Selection
from schemas.introspection import fields_of
from schemas.page import (
    DailyAggregates,
    DriverPage,
    MonthlyAggregates,
    RankingPage,
    TripDetailPage,
    TripSummaryPage,
    WeeklyAggregates,
)
from schemas.score import DriverScore
from scripts.ingest.writes import delete_trips
from scripts.materialize.drivers import make_profiles
from scripts.materialize.rebuild import rebuild_fleet, verify_fleet
from scripts.materialize.transactions import run_transaction
from scripts.mongodb.connection import prepare_collections
from tests.command_recorder import Recorder
from tests.factories import epoch_ms, make_driver, make_trip
from tests.store_contents import load

FLEETS, DRIVERS, DATES = ("f1", "f2"), 12, 20
PAGE = {"page": 2, "limit": 3}
WHOLE_TRIPS = Selection(fields_of(TripSummaryPage))
# So long that no trip is visible.
LONG_HOURS = 10_000.0
LATER, EARLIER = 2**60, epoch_ms("2026-03-10T00:00")
# What a command is explained without.
OF_SESSIONS = {"lsid", "readConcern", "txnNumber", "startTransaction", "autocommit"}


@pytest.fixture(scope="module")
def recorded(mongod_uri):
    """A store with enough in it for the planner to have a choice, and the commands sent to it."""
    recorder = Recorder()
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        prepare_collections(store := Store.of(client["plans"]))
        for fleet in FLEETS:
            lines = [
                make_trip(f"2026-03-{date + 1:02}T08:{n:02}", f"d{n}", trip_id=f"t{n}-{date}", tracking_id=f"k{n % 2}")
                for n in range(DRIVERS)
                for date in range(DATES)
            ]
            load(store.db, *lines, drivers=[make_driver(f"d{n}") for n in range(DRIVERS)], fleet=fleet)
        yield store, recorder
        client.drop_database("plans")


def driver_trips(store, driver_id="d1", **bounds):
    params = {"start_date": "2026-03-04", "max_end_ms": LATER, "selection": WHOLE_TRIPS, **PAGE, **bounds}
    trips.find_driver_trips(store, "f1", driver_id, **params)


def trips_of_nobody(store):
    with pytest.raises(UnknownDrivers):
        driver_trips(store, "nobody")


def trips_by(store, name, value, **bounds):
    params = {"max_end_ms": LATER, "selection": Selection(fields_of(TripDetailPage)), "page": 1, "limit": 5, **bounds}
    trips.find_trips(store, "f1", name, value, **params)


def explanation(store, **params):
    window = {"start_date": "2026-03-04", "end_date": "2026-03-18"}
    selection = Selection(fields_of(DriverScore))
    explanations.get_explanation(store, "f1", "d1", **window, **params, selection=selection)


def aggregates(store, period, shape, date="2026-03-02"):
    ids = {"driver_ids": ["d1", "d2"], "start_date": date}
    summaries.find_aggregates(store, "f1", period, **ids, selection=Selection(fields_of(shape)))


def ranking(store, order, minimum=0):
    params = {"period": "week", "start_date": "2026-03-02", "order": order, "min_distance_miles": minimum}
    rankings.find_ranking(store, "f1", **params, **PAGE, selection=Selection(fields_of(RankingPage)))


def find_changes(store, cursor=None, *, limit=3, delay=0.0):
    return changes.find_changes(store, "f1", cursor=cursor, limit=limit, processing_delay_hours=delay)


def move_a_trip(store):
    load(store.db, make_trip("2026-03-05T08:00", "d1", trip_id="moves"), make_trip(trip_id="t1-1", driver_id="d2"))


def in_transaction(change):
    return lambda store: run_transaction(store, "f1", lambda session: change(store, session))


# What reads, and the indexes that it reads of each collection.
READS = {
    "driver page": (
        lambda store: drivers.find_drivers(store, "f1", **PAGE, selection=Selection(fields_of(DriverPage))),
        {"fleet_drivers": {"offset"}},
    ),
    "trips of a driver": (driver_trips, {"driver_periods": {"period"}}),
    "trips of a driver of which some have not ended": (
        lambda store: driver_trips(store, max_end_ms=EARLIER),
        {"driver_periods": {"period"}},
    ),
    "trips of a driver, counted": (
        lambda store: driver_trips(store, selection=Selection({"count": None})),
        {"driver_periods": {"period"}},
    ),
    "trips of an unknown driver": (
        trips_of_nobody,
        {"driver_periods": {"period"}},
    ),
    "trip by id": (lambda store: trips_by(store, "trip_id", "t1-1"), {"trip_details": {"_id_"}}),
    "trips by tracking id": (
        lambda store: trips_by(store, "tracking_id", "k1", **PAGE),
        {"trip_details": {"tracking"}},
    ),
    "trips by tracking id of which some have not ended": (
        lambda store: trips_by(store, "tracking_id", "k1", max_end_ms=EARLIER, **PAGE),
        {"trip_details": {"tracking"}},
    ),
    "daily": (
        lambda store: aggregates(store, summaries.DAILY, DailyAggregates),
        {"driver_periods": {"period"}},
    ),
    "weekly": (
        lambda store: aggregates(store, summaries.WEEKLY, WeeklyAggregates),
        {"driver_periods": {"period"}},
    ),
    "monthly": (
        lambda store: aggregates(store, summaries.MONTHLY, MonthlyAggregates, "2026-03-01"),
        {"driver_periods": {"period"}},
    ),
    **{
        f"score by {interval}": (
            lambda store, interval=interval: explanation(store, interval=interval),
            {"driver_periods": {"period"}},
        )
        for interval in ("day", "week", "month")
    },
    **{
        f"ranking, {order} first": (
            lambda store, order=order: ranking(store, order),
            {"driver_periods": {f"ranking_{order}", "period"}},
        )
        for order in rankings.ORDERS
    },
    "ranking from a minimum": (
        lambda store: ranking(store, "worst", 1),
        {"driver_periods": {"ranking_worst", "period"}},
    ),
    "changes from the beginning": (
        lambda store: find_changes(store),
        {"fleets": {"_id_"}, "trip_changes": {"change"}},
    ),
    "changes that follow": (
        lambda store: find_changes(store, find_changes(store)["cursor"]),
        {"fleets": {"_id_"}, "trip_changes": {"change"}},
    ),
    "changes that become visible": (
        lambda store: find_changes(store, find_changes(store, limit=1000, delay=LONG_HOURS)["cursor"]),
        {"fleets": {"_id_"}, "trip_changes": {"change", "end"}},
    ),
    "report": (lambda store: reports.get_report(store, "f1", "2026-03-16"), {"reports": {"report"}}),
}
WRITES = {
    "import of trips": move_a_trip,
    "import of drivers": lambda store: load(store.db, drivers=[make_driver("d1", alias="A")]),
    "deletion of trips": lambda store: delete_trips(store, "f1", ["moves"]),
    "rebuild": lambda store: list(rebuild_fleet(store, "f1")),
    "rebuild since a date": lambda store: list(rebuild_fleet(store, "f1", "2026-03-10")),
    "verify": lambda store: list(verify_fleet(store, "f1")),
}


def stages(plan):
    """Yield every stage of the plan that was chosen, with the name of its index."""
    if isinstance(plan, dict):
        if "stage" in plan:
            yield plan["stage"], plan.get("indexName")
        yield from ((key, None) for key in plan if key == "$sort")
        for key, inner in plan.items():
            if key not in ("rejectedPlans", "command"):
                yield from stages(inner)
    elif isinstance(plan, list):
        for inner in plan:
            yield from stages(inner)


def explain(store, command):
    """Return the stages of a command's plan, each once, and the names of the indexes."""
    plain = {key: value for key, value in command.items() if not key.startswith("$") and key not in OF_SESSIONS}
    stage_names = list(stages(store.db.command("explain", plain, verbosity="queryPlanner")))
    # MongoDB names no index for a look-up by _id alone.
    indexes = {"_id_" if stage == "IDHACK" else index for stage, index in stage_names}
    return {stage for stage, _ in stage_names}, indexes - {None}


def carries_fleet(command):
    filters = [command.get("filter"), command.get("query")]
    filters += [stage["$match"] for stage in command.get("pipeline", []) if "$match" in stage][:1]
    # Each branch of an $or at the top is a query of its own.
    branches = [
        branch for match in filters if match for branch in ([match] if "fleet" in match else match.get("$or", [match]))
    ]
    return bool(branches) and all(branch.get("fleet") == "f1" or names_fleet(branch.get("_id")) for branch in branches)


def names_fleet(_id):
    """Return whether a condition on `_id` matches only documents of the fleet."""
    ids = _id.get("$in", [_id.get("$gte")]) if isinstance(_id, dict) else [_id]
    return all(value and value.partition("/")[0] == "f1" for value in ids)


def commands_of(recorded, read):
    """Return the commands that a read sends."""
    store, recorder = recorded
    recorder.commands.clear()
    read(store)
    return list(recorder.reads)


@pytest.mark.parametrize("name", READS)
def test_a_read_runs_on_the_indexes_that_are_meant_for_it(recorded, name):
    read, expected = READS[name]
    indexes = {}
    for command in commands_of(recorded, read):
        collection = next(iter(command.values()))
        indexes[collection] = indexes.get(collection, set()) | explain(recorded[0], command)[1]
    assert indexes == expected


@pytest.mark.parametrize("name", {**READS, **WRITES})
def test_a_query_runs_on_an_index_in_its_order_and_within_its_fleet(recorded, name):
    commands = commands_of(recorded, WRITES.get(name) or READS[name][0])
    assert commands
    for command in commands:
        assert carries_fleet(command), command
        stage_names, indexes = explain(recorded[0], command)
        assert indexes, command
        assert not stage_names & {"COLLSCAN", "SORT", "$sort"}, (stage_names, command)


def test_trips_that_share_a_tracking_id_are_counted_without_reading_any(recorded):
    *_, count = commands_of(recorded, lambda store: trips_by(store, "tracking_id", "k1", **PAGE))
    assert "pipeline" in count
    assert "FETCH" not in explain(recorded[0], count)[0]


def test_trips_that_are_not_visible_are_not_read_to_find_those_that_became_visible(recorded):
    cursor = find_changes(recorded[0], limit=1000, delay=LONG_HOURS)["cursor"]
    *_, ended, later = commands_of(recorded, lambda store: find_changes(store, cursor, limit=1000))
    equal, greater = (alternative["trip_end_time"] for alternative in ended["filter"]["$or"])
    assert (type(equal), list(greater)) == (int, ["$gt", "$lte"])
    assert (later["limit"], later["projection"]) == (1, {"_id": 0, "trip_end_time": 1})


def test_a_page_of_the_feed_without_changes_costs_one_look_up(recorded):
    end = find_changes(recorded[0], limit=1000)["cursor"]
    (command,) = commands_of(recorded, lambda store: find_changes(store, end))
    assert explain(recorded[0], command) == ({"PROJECTION_SIMPLE", "IDHACK"}, {"_id_"})


def test_travel_dates_are_sought_not_scanned(recorded):
    ids = [f"d{n}" for n in range(DRIVERS)]
    commands = commands_of(recorded, in_transaction(lambda store, session: make_profiles(store, session, "f1", ids)))
    pipelines = [command for command in commands if "pipeline" in command]
    assert len(pipelines) == 2
    for command in pipelines:
        assert "DISTINCT_SCAN" in explain(recorded[0], command)[0]


def test_a_key_is_looked_up_on_an_index(recorded):
    (command,) = commands_of(recorded, lambda store: api_keys.get_key(store, api_keys.make_key()))
    assert explain(recorded[0], command) == ({"LIMIT", "FETCH", "IXSCAN"}, {"digest"})


def test_a_malformed_key_causes_no_database_query(recorded):
    key = api_keys.make_key()
    for junk in (key[:-1] + ("0" if key[-1] != "0" else "1"), key[:-1], "", "da_", key + "0", "x" * 10_000):
        assert commands_of(recorded, lambda store, junk=junk: api_keys.get_key(store, junk)) == []
