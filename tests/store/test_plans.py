"""Every query of the service carries the fleet and runs on an index that gives its order."""

import pytest
from pymongo import MongoClient, monitoring
from scripts.derive import derive_days, mark_stale, stale_days, write_drivers
from scripts.imports import Day, load_drivers, load_trips
from scripts.sharing import make_trackings

from app.store import drivers, keys, summaries, trips
from schemas.driver import Driver
from schemas.trip import ImportedTrip
from tests.factories import epoch_ms, make_driver, make_trip

FLEETS, DRIVERS, DATES = ("f1", "f2"), 12, 20
PAGE = {"page": 2, "limit": 3}
DAYS = {Day("d1", "2026-03-02"), Day("d2", "2026-03-03")}


class Recorder(monitoring.CommandListener):
    """Keeps the commands that read, as sent."""

    def __init__(self):
        self.reads = []

    def started(self, event):
        if event.command_name in ("find", "aggregate", "count", "distinct"):
            self.reads.append(dict(event.command))

    def succeeded(self, event):
        pass

    failed = succeeded


@pytest.fixture(scope="module")
def recorded(mongod_uri):
    """A store with enough in it for the planner to have a choice, and the commands sent to it."""
    recorder = Recorder()
    with MongoClient(mongod_uri, event_listeners=[recorder]) as client:
        from scripts.store import prepare

        db = client["plans"]
        prepare(db)
        for fleet in FLEETS:
            load_drivers(db, fleet, [Driver().load(make_driver(f"d{n}")) for n in range(DRIVERS)])
            lines = [
                make_trip(f"2026-03-{date + 1:02}T08:{n:02}", f"d{n}", trip_id=f"t{n}-{date}", tracking_id=f"k{n % 2}")
                for n in range(DRIVERS)
                for date in range(DATES)
            ]
            load_trips(db, fleet, [ImportedTrip().load(line) for line in lines])
        yield db, recorder
        client.drop_database("plans")


def while_stale(db, read):
    mark_stale(db, "f1", DAYS)
    read()
    derive_days(db, "f1", DAYS)


READS = {
    "driver page": lambda db: drivers.find_drivers(db, "f1", **PAGE),
    "drivers by id": lambda db: drivers.find_by_id(db, "f1", ["d1", "d2"]),
    "driver page while stale": lambda db: while_stale(db, lambda: drivers.find_drivers(db, "f1", **PAGE)),
    "trip page": lambda db: trips.find_driver_trips(db, "f1", "d1", start=0, ended_by=2**60, **PAGE),
    "trip by id": lambda db: trips.find_trips(db, "f1", "trip_id", "t1-1", ended_by=2**60, page=1, limit=5),
    "trips by tracking id": lambda db: trips.find_trips(db, "f1", "tracking_id", "k1", ended_by=2**60, **PAGE),
    "trips of which some have not ended": lambda db: trips.find_trips(
        db, "f1", "tracking_id", "k1", ended_by=epoch_ms("2026-03-10T00:00"), **PAGE
    ),
    "all tracking ids": lambda db: list(make_trackings(db, "f1")),
    "daily": lambda db: summaries.find_daily(db, "f1", ["d1", "d2"], "2026-03-02"),
    "daily while stale": lambda db: while_stale(db, lambda: summaries.find_daily(db, "f1", ["d1"], "2026-03-02")),
    "weekly": lambda db: summaries.find_weekly(db, "f1", ["d2", "d1"], "2026-03-02"),
    "rollup": lambda db: derive_days(db, "f1", DAYS),
    "travel dates": lambda db: write_drivers(db, "f1", {"d1": None, "d2": None}),
    "repair": lambda db: (mark_stale(db, "f1", DAYS), stale_days(db, "f1"), derive_days(db, "f1", DAYS)),
    "import": lambda db: load_trips(db, "f1", [ImportedTrip().load(make_trip(trip_id="t1-1"))]),
}


def stages(plan):
    """Yield every stage of the plan that was chosen."""
    if isinstance(plan, dict):
        if "stage" in plan:
            yield plan["stage"]
        yield from (key for key in plan if key == "$sort")
        for key, inner in plan.items():
            if key not in ("rejectedPlans", "command"):
                yield from stages(inner)
    elif isinstance(plan, list):
        for inner in plan:
            yield from stages(inner)


def carries_fleet(command):
    filters = [command.get("filter"), command.get("query")]
    filters += [stage["$match"] for stage in command.get("pipeline", []) if "$match" in stage][:1]
    return any(found and found.get("fleet") == "f1" for found in filters)


@pytest.mark.parametrize("name", READS)
def test_a_query_runs_on_an_index_in_its_order_and_within_its_fleet(recorded, name):
    db, recorder = recorded
    recorder.reads.clear()
    READS[name](db)
    sent = list(recorder.reads)
    assert sent
    for command in sent:
        assert carries_fleet(command), command
        plain = {key: value for key, value in command.items() if not key.startswith("$") and key != "lsid"}
        found = set(stages(db.command("explain", plain, verbosity="queryPlanner")))
        assert "IXSCAN" in found or "DISTINCT_SCAN" in found or "COUNT_SCAN" in found, (found, command)
        assert not found & {"COLLSCAN", "SORT", "$sort"}, (found, command)


def test_a_key_is_looked_up_on_an_index(recorded):
    db, recorder = recorded
    recorder.reads.clear()
    keys.get_key(db, keys.make_key())
    (command,) = recorder.reads
    plan = db.command("explain", {"find": "keys", "filter": command["filter"]}, verbosity="queryPlanner")
    assert set(stages(plan["queryPlanner"]["winningPlan"])) == {"FETCH", "IXSCAN"}


def test_a_malformed_key_asks_the_database_nothing(recorded):
    db, recorder = recorded
    recorder.reads.clear()
    key = keys.make_key()
    for junk in (key[:-1] + ("0" if key[-1] != "0" else "1"), key[:-1], "", "da_", key + "0", "x" * 10_000):
        assert keys.get_key(db, junk) is None
    assert recorder.reads == []


def test_travel_dates_are_sought_not_scanned(recorded):
    db, recorder = recorded
    recorder.reads.clear()
    write_drivers(db, "f1", {f"d{n}": None for n in range(DRIVERS)})
    for command in (read for read in recorder.reads if "pipeline" in read):
        plain = {key: command[key] for key in ("aggregate", "pipeline", "cursor")}
        assert "DISTINCT_SCAN" in set(stages(db.command("explain", plain, verbosity="queryPlanner")))


@pytest.mark.parametrize("name", ["trips of which some have not ended", "all tracking ids"])
def test_trips_are_counted_without_reading_any(recorded, name):
    db, recorder = recorded
    recorder.reads.clear()
    READS[name](db)
    counting = [read for read in recorder.reads if "pipeline" in read]
    assert counting
    for command in counting:
        plain = {key: command[key] for key in ("aggregate", "pipeline", "cursor")}
        assert "FETCH" not in set(stages(db.command("explain", plain, verbosity="queryPlanner")))
