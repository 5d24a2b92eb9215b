"""Whatever is written, in whichever order: the read models are those of a rebuild from the sources that are left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store import READ_MODELS, SOURCES, Store
from schemas.fields import MAX_EPOCH_MS, MIN_EPOCH_MS
from schemas.plausibility import POLICIES
from scripts.materialize.fleet_settings import set_settings
from scripts.materialize.read_models import IDENTITY_FIELDS
from scripts.materialize.rebuild_and_verify import rebuild_fleet
from scripts.mongodb.memory_store import memory_client
from tests.factories import make_driver, make_event, make_event_summary, make_trip
from tests.fleet_states import FLEET, Batch, differences, state_of, write_batches
from tests.store_contents import HISTORY

# A week that lies in two years, the next one, and the bounds of the calendar.
LAST_MS = MAX_EPOCH_MS - 1_000
SPEEDS = {"user_speed_mph": 60, "speed_limit_mph": 55, "max_user_speed_mph": 70.5}
DATES = ["2025-12-30", "2025-12-31", "2026-01-01", "2026-01-05", "0001-01-01", "9999-12-31"]
driver_ids, trip_ids = (st.sampled_from([f"{name}{n}" for n in range(6)]) for name in "dt")
driver_lines = st.builds(
    make_driver,
    driver_ids,
    alias=st.none() | st.just("A"),
    first_travel_date=st.none() | st.sampled_from(DATES),
    last_travel_date=st.none() | st.sampled_from(DATES),
)
grouped_lines = st.builds(make_driver, driver_ids, groups=st.lists(st.sampled_from("abc"), unique=True))
trip_lines = st.builds(
    make_trip,
    st.builds("{}T{:02}:00".format, st.sampled_from(DATES), st.integers(8, 10)),
    driver_ids,
    trip_id=trip_ids,
    tracking_id=st.none() | st.just("k"),
    insurance_period=st.none() | st.integers(1, 3),
    distance_miles=st.floats(0, 1e300) | st.sampled_from([0.1, 0.2, 0.3]),
    # Before, on and after the trip, and at the bounds of time.
    events=st.lists(
        st.sampled_from([make_event(ms) for ms in (MIN_EPOCH_MS, 0, 1_767_258_000_000, LAST_MS)]), max_size=2
    ),
    event_summary=st.builds(make_event_summary, hard_brake_count=st.integers(0, 2**63 - 1)),
)
batches = st.one_of(
    st.builds(Batch, st.just("drivers"), st.lists(driver_lines | grouped_lines, min_size=1, max_size=4)),
    st.builds(Batch, st.just("trips"), st.lists(trip_lines, min_size=1, max_size=8)),
    st.builds(Batch, st.just("deleted"), st.lists(trip_ids, min_size=1, max_size=4)),
)


@settings(deadline=None, max_examples=20)
@given(st.lists(batches, min_size=1, max_size=6), st.sampled_from(POLICIES))
def test_read_models_are_those_of_a_rebuild(written, policy):
    db, rebuilt = memory_client()["written"], memory_client()["rebuilt"]
    for client in (db, rebuilt):
        set_settings(Store.of(client), FLEET, implausible_trips=policy)
    write_batches(Store.of(db), written)
    for name in SOURCES:
        rebuilt[name].insert_many(db[name].find())
    list(rebuild_fleet(Store.of(rebuilt), FLEET))
    assert state_of(db) == state_of(rebuilt)
    assert differences(db) == differences(rebuilt) == []


@pytest.fixture(scope="module")
def written():
    """A database with the trips of two drivers. A rebuild leaves it as it was."""
    db = memory_client()["damaged"]
    events = [make_event(n, event_type=9, event_name="OVERSPEEDING", event_data=SPEEDS) for n in (1, 2)]
    tracking_ids = {"d0": "k", "d1": None}
    trips = [make_trip(driver_id=name, tracking_id=value, events=events) for name, value in tracking_ids.items()]
    trips.append(make_trip("2026-03-11T08:00", duration_seconds=0, events=events, insurance_period=2))
    write_batches(Store.of(db), [Batch("trips", trips), Batch("drivers", [make_driver("d1", groups=["a"])])])
    return db


def find_content(db, name):
    """Return the fields of a read model's documents that are not what a document is found by."""
    fields = {field for document in db[name].find() for field in document}
    return sorted(fields - {"_id", "fleet", "offset", *HISTORY, *IDENTITY_FIELDS[name]})


@pytest.mark.parametrize("name", READ_MODELS)
def test_damage_is_found_by_verify_and_repaired_by_a_rebuild(written, name):
    before = state_of(written)
    for field in find_content(written, name):
        holds_it = {field: {"$exists": True, "$ne": 0}}
        damage = type(written[name].find_one(holds_it)[field])()
        written[name].update_one(holds_it, {"$set": {field: damage}})
        assert len(differences(written)) > 0, field
        list(rebuild_fleet(Store.of(written), FLEET))
        assert (differences(written), state_of(written)) == ([], before), field
