"""Rankings agree with the trips for any trips, on pages of any size."""

import math
from collections import defaultdict

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.factories import make_event_summary, make_trip
from tests.fleet_states import Batch, empty, write_batches
from tests.score_reference import BEHAVIOURS, EDGE, HALF, between, points

WEEK, MONTH = "2026-03-02", "2026-03-01"
# The Sunday before the week, its first and last day, the Monday after it, and the day after the month.
DATES = ["2026-03-01", "2026-03-02", "2026-03-08", "2026-03-09", "2026-04-01"]
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
behaviours = st.sampled_from([None, None, *BEHAVIOURS])
minima = st.sampled_from([0, 0, 0, 0.5, 40, 100.0, 100.5])


def score(driven):
    """Return the score of trips, rounded half up to tenths."""
    tenths = 10 * (100 - sum(points(driven, behaviour) for behaviour in BEHAVIOURS)) + HALF
    if abs(tenths - round(tenths)) < EDGE:
        # Floating-point numbers may take it to either side.
        reject()
    return math.floor(tenths) / 10


def rank(stored, period, order, behaviour, minimum):
    """Return the score, the miles and the driver_id of each driver of the week or month, in order."""
    first, last = (WEEK, "2026-03-08") if period == "week" else (MONTH, "2026-03-31")
    by_driver = defaultdict(list)
    for trip in between(stored, first, last):
        by_driver[trip["driver_id"]].append(trip)
    miles = {driver_id: sum(trip["distance_miles"] for trip in of) for driver_id, of in by_driver.items()}
    direction = 1 if order == "worst" else -1
    rows = [(score(of), miles[driver_id], driver_id) for driver_id, of in by_driver.items()]
    kept = [row for row in rows if row[1] >= minimum]
    cost = {one: points(of, behaviour) if behaviour else 0 for one, of in by_driver.items()}
    return sorted(kept, key=lambda row: (-direction * cost[row[2]], direction * row[0], -row[1], row[2].encode()))


def read(service, limit, **query):
    """Return the rows of all pages of a ranking, and the counts that they give."""
    rows, counts, page = [], set(), {"next_page": 1}
    while number := page["next_page"]:
        page = service.get("/ranking", **query, limit=limit, page=number).json
        assert len(page["drivers"]) <= limit
        rows += page["drivers"]
        counts.add(page["count"])
    return rows, counts


@pytest.mark.parametrize("period", ["week", "month"])
@settings(deadline=None, max_examples=5)
@given(
    written=st.lists(batches, min_size=1, max_size=4), order=orders, behaviour=behaviours, limit=limits, minimum=minima
)
def test_a_ranking_is_that_of_the_trips(shared_service, period, written, order, behaviour, limit, minimum):
    empty(shared_service.db)
    shared_service.keys.clear()
    write_batches(shared_service.store, written)
    expected = rank(list(shared_service.db.trips.find()), period, order, behaviour, minimum)
    query = {"period": period, "start_date": WEEK if period == "week" else MONTH, "order": order}
    query |= {"min_distance_miles": minimum, **({"behaviour": behaviour.name} if behaviour else {})}
    rows, counts = read(shared_service, limit, **query)
    assert counts == {len(expected)}
    assert [row["rank"] for row in rows] == list(range(1, len(expected) + 1))
    summaries = [(row["driving_summary"], row["driver_info"]["driver_id"]) for row in rows]
    assert [(summary["fm_score"], summary["distance_miles"], driver_id) for summary, driver_id in summaries] == expected
