"""Rankings agree with the trips for any trips, on pages of any size."""

import datetime
import itertools
import math
from collections import defaultdict
from fractions import Fraction

import orjson
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pymongo import MongoClient

from app.store import Store, rankings
from app.store.rendering import Selection
from schemas.introspection import fields_of
from schemas.page import RankingPage
from scripts.mongodb.connection import prepare_collections
from scripts.mongodb.memory_store import memory_client
from tests.factories import make_event_summary, make_trip
from tests.fleet_states import FLEET, Batch, differences, empty, write_batches

WEEK, MONTH = "2026-03-02", "2026-03-01"
# The Sunday before the week, its first and last day, the Monday after it, and the day after the month.
DATES = ["2026-03-01", "2026-03-02", "2026-03-08", "2026-03-09", "2026-04-01"]
# Numbers of the contract's table: the event, the divisor, the cap, and the weight.
BEHAVIOURS = [
    ("phone_use_time_seconds", "duration_seconds", Fraction(15, 100), 35),
    ("overspeeding_time_seconds", "duration_seconds", Fraction(20, 100), 30),
    ("hard_brake_count", "distance_miles", Fraction(20, 100), 20),
    ("rapid_acceleration_count", "distance_miles", Fraction(20, 100), 15),
]
# Rounding takes a sum that is this close to its edge to either side.
EDGE = Fraction(1, 10**9)
events = st.builds(
    make_event_summary,
    hard_brake_count=st.integers(0, 9),
    phone_use_time_seconds=st.sampled_from([0, 0, 75]),
    overspeeding_time_seconds=st.sampled_from([0, 0, 10.5]),
    rapid_acceleration_count=st.sampled_from([0, 0, 1]),
)
calm = st.builds(make_event_summary)
trips = st.builds(
    make_trip,
    st.builds("{}T12:00".format, st.sampled_from(DATES)),
    st.sampled_from([f"d{n}" for n in range(12)] + ["é", "Z", "\U0001f697"]),
    trip_id=st.sampled_from([f"t{n}" for n in range(40)]),
    distance_miles=st.sampled_from([0, 0.5, 100, 100.0, 40]),
    duration_seconds=st.sampled_from([0, 1000]),
    event_summary=calm | calm | events,
)
batches = st.one_of(
    st.builds(Batch, st.just("trips"), st.lists(trips, min_size=1, max_size=30)),
    st.builds(Batch, st.just("trips"), st.lists(trips, min_size=1, max_size=30)),
    st.builds(Batch, st.just("deleted"), st.lists(st.sampled_from([f"t{n}" for n in range(40)]), max_size=8)),
)
orders, limits = st.sampled_from(["worst", "best"]), st.sampled_from([1, 2, 3, 100])
minima = st.sampled_from([0, 0, 0, 0.5, 40, 100.0, 100.5])


@pytest.fixture(scope="module")
def server(mongod_uri):
    """A database of a real server."""
    with MongoClient(mongod_uri) as client:
        prepare_collections(Store.of(client["rankings"]))
        yield client["rankings"]
        client.drop_database("rankings")


def left(batches):
    """Return the trips that are stored after the batches."""
    stored = {}
    for kind, content in batches:
        for item in content:
            if kind == "trips":
                stored[item["trip_id"]] = item
            else:
                stored.pop(item, None)
    return list(stored.values())


def score(driven):
    """Return the score of trips by the contract."""
    lost = Fraction(0)
    for event, divisor, cap, weight in BEHAVIOURS:
        total = sum(Fraction(trip[divisor]) for trip in driven)
        rate = sum(Fraction(trip["event_summary"][event]) for trip in driven) / total if total else 0
        lost += weight * min(1, rate / cap)
    tenths = (100 - lost) * 10 + Fraction(1, 2)
    if abs(tenths - round(tenths)) < EDGE:
        reject()
    return math.floor(tenths) / 10


def rank(stored, period, order, minimum):
    """Return the score, the miles and the driver_id of each driver of the week or month, in order."""
    start, by_driver = datetime.date.fromisoformat(WEEK if period == "week" else MONTH), defaultdict(list)
    end = start + datetime.timedelta(7) if period == "week" else datetime.date(2026, 4, 1)
    for trip in stored:
        if start <= datetime.datetime.fromtimestamp(trip["trip_start_time"] / 1000, datetime.UTC).date() < end:
            by_driver[trip["driver_id"]].append(trip)
    miles = {driver_id: sum(trip["distance_miles"] for trip in of) for driver_id, of in by_driver.items()}
    direction = 1 if order == "worst" else -1
    rows = [(score(of), miles[driver_id], driver_id) for driver_id, of in by_driver.items()]
    kept = [row for row in rows if row[1] >= minimum]
    return sorted(kept, key=lambda row: (direction * row[0], -row[1], row[2].encode()))


def read(store, period, order, minimum, limit):
    """Yield the pages of a ranking up to an empty one, with the count of each."""
    params = {"period": period, "start_date": WEEK if period == "week" else MONTH, "order": order}
    selection = Selection(fields_of(RankingPage))
    for page in itertools.count(1):
        result = rankings.find_ranking(
            store, FLEET, **params, min_distance_miles=minimum, page=page, limit=limit, selection=selection
        )
        content = orjson.loads(orjson.dumps(result.content))
        yield content
        if not content["drivers"]:
            return


def check(store, stored, period, order, minimum, limit):
    expected, rows = rank(stored, period, order, minimum), []
    for page in read(store, period, order, minimum, limit):
        assert page["count"] == len(expected)
        assert len(page["drivers"]) <= limit
        rows += page["drivers"]
    summaries = [row["driving_summary"] for row in rows]
    ids = [row["driver_info"]["driver_id"] for row in rows]
    assert [row["rank"] for row in rows] == list(range(1, len(expected) + 1))
    assert [(each["fm_score"], each["distance_miles"]) for each in summaries] == [row[:2] for row in expected]
    assert ids == [row[2] for row in expected]


@pytest.mark.large
@settings(deadline=None, max_examples=100)
@given(st.lists(batches, min_size=1, max_size=4), orders, limits, minima)
def test_a_ranking_is_that_of_the_trips_in_memory(written, order, limit, minimum):
    store = Store.of(memory_client()["rankings"])
    write_batches(store, written)
    for period in ("week", "month"):
        check(store, left(written), period, order, minimum, limit)


@settings(deadline=None, max_examples=8)
@given(written=st.lists(batches, min_size=1, max_size=4), order=orders, limit=limits, minimum=minima)
def test_a_ranking_is_that_of_the_trips_on_a_server(server, written, order, limit, minimum):
    empty(server)
    write_batches(Store.of(server), written)
    assert differences(server) == []
    for period in ("week", "month"):
        check(Store.of(server), left(written), period, order, minimum, limit)
