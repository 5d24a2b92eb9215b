"""Whatever is written directly, and whatever commands write meanwhile: the read models are those of a rebuild."""

import contextlib
import random

import pytest
from pymongo.errors import DuplicateKeyError

from app.store import READ_MODELS, SOURCES, Store
from scripts.materialize.rebuild_and_verify import rebuild_fleet
from tests.command_listeners import Stop, open_store_until
from tests.factories import make_driver, make_trip
from tests.fleet_states import FLEET, Batch, differences, state_of, write_batches
from tests.following import Following, make_source

pytestmark = pytest.mark.usefixtures("short_batches")

FLEETS = (FLEET, FLEET, FLEET, "f2")


class Writer:
    """Another program, which writes whatever comes to its mind."""

    def __init__(self, db, rng):
        self.db, self.rng = db, rng

    def line(self):
        trip_id, driver_id = f"t{self.rng.randrange(12)}", f"d{self.rng.randrange(5)}"
        start = f"2026-03-{self.rng.randrange(9, 18):02}T08:00"
        values = {"distance_miles": self.rng.random(), "tracking_id": self.rng.choice("kl")}
        return make_trip(start, driver_id, trip_id=trip_id, **values)

    def driver(self):
        return make_driver(f"d{self.rng.randrange(5)}", alias=self.rng.choice("ABC"))

    def groups(self):
        return {"driver_id": f"d{self.rng.randrange(5)}", "groups": self.rng.sample("abc", self.rng.randrange(4))}

    def write(self):
        """Make a change, which MongoDB may refuse because the identifier is taken."""
        steps = (self.insert, self.replace, self.change, self.change, self.delete, self.load)
        lines = {"trips": self.line(), "drivers": self.driver(), "driver_groups": self.groups()}
        with contextlib.suppress(DuplicateKeyError):
            self.rng.choice(steps)(*self.rng.choice([*lines.items()]))

    def insert(self, name, line):
        self.db[name].insert_one(make_source(line, self.rng.choice(FLEETS)))

    def replace(self, name, line):
        source = make_source(line, self.rng.choice(FLEETS))
        self.db[name].replace_one({"_id": source["_id"]}, source, upsert=True)

    def change(self, name, line):
        fields = {
            "trips": ["driver_id", "distance_miles", "tracking_id"],
            "drivers": ["alias", "last_travel_date"],
            "driver_groups": ["groups"],
        }
        field = self.rng.choice(fields[name])
        self.db[name].update_one(self.any_of(name), {"$set": {field: line[field]}})

    def delete(self, name, line):
        self.db[name].delete_one(self.any_of(name))

    def load(self, name, line):
        line = {**self.driver(), **line} if name == "driver_groups" else line
        write_batches(Store.of(self.db), [Batch("trips" if name == "trips" else "drivers", [line])])

    def any_of(self, name):
        """Return what matches one of the documents, if there is any."""
        ids = self.db[name].distinct("_id")
        return {"_id": self.rng.choice(ids) if ids else None}


def rebuilt(db):
    """Return the state after a rebuild of empty read models."""
    for name in READ_MODELS:
        db[name].delete_many({})
    for fleet in {*FLEETS}:
        list(rebuild_fleet(Store.of(db), fleet))
    return sorted_state(db)


def sorted_state(db):
    """Return the state, with the drivers of all fleets sorted: the blocks of two fleets have the same offsets."""
    state = state_of(db)
    return {**state, "fleet_drivers": sorted(state["fleet_drivers"])}


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 30), *(pytest.param(seed, 60, marks=pytest.mark.large) for seed in range(8))]
)
def test_read_models_are_those_of_a_rebuild(mongod, seed, steps):
    rng, followers = random.Random(seed), [Following(mongod), Following(mongod)]
    writer = Writer(mongod, rng)
    for _ in range(steps):
        writer.write()
        if rng.random() < 0.1:
            rng.choice(followers).catch_up()
    followers[0].catch_up()
    assert differences(mongod) == []
    assert followers[0].value("invalid_documents_total") == 0
    assert sorted_state(mongod) == rebuilt(mongod)


def write_all_kinds(db):
    """Write, past a follower that has no changes to apply, a change of each kind."""
    db.trips.insert_many([make_source(make_trip(trip_id=f"t{n}"), fleet) for n in range(3) for fleet in ("f1", "f2")])
    db.drivers.insert_one(make_source(make_driver("d1")))
    Following(db).catch_up()
    db.trips.update_one({"trip_id": "t0", "fleet": "f1"}, {"$set": {"driver_id": "d2"}})
    db.trips.delete_one({"trip_id": "t1", "fleet": "f2"})
    db.drivers.delete_one({})


@pytest.mark.parametrize("step", [29, pytest.param(2, marks=pytest.mark.large)])
def test_a_follower_that_ends_before_any_command_is_finished_by_the_next_one(mongod, mongod_uri, step):
    commands, stopped = 0, True
    while stopped:
        for name in (*SOURCES, *READ_MODELS):
            mongod[name].delete_many({})
        write_all_kinds(mongod)
        try:
            with open_store_until(mongod_uri, mongod.name, commands) as store:
                Following(store.db).catch_up()
            stopped = False
        except Stop:
            Following(mongod).catch_up()
        assert differences(mongod) == []
        commands += step
    assert commands > 20
