"""Lists by cursor whose pages are read while trips are imported, corrected and erased."""

import json
import random
from collections import Counter

import pytest

from scripts.materialize.write_sources import delete_trips
from tests.factories import epoch_ms, make_event, make_event_summary, make_trip

WEEK_MS = 7 * 86_400_000


def make_random_trip(rng, number):
    """Return a trip anywhere in a week, and anywhere in each order."""
    start = epoch_ms("2026-03-09T00:00") + rng.randrange(WEEK_MS)
    return make_trip(
        trip_id=f"t{number}",
        trip_start_time=start,
        trip_end_time=start + 3_600_000,
        distance_miles=rng.uniform(1, 50),
        event_summary=make_event_summary(hard_brake_count=rng.randrange(9)),
        events=[make_event(start + rng.randrange(3_600_000)) for _ in range(2)],
    )


def get_trip_id(element):
    return element["trip"]["trip_id"] if "trip" in element else element["trip_id"]


@pytest.mark.parametrize(
    ("path", "order", "elements_a_trip"),
    [
        ("/trips", "oldest", 1),
        ("/trips", "newest", 1),
        ("/trips", "worst", 1),
        ("/events", "oldest", 2),
        ("/events", "newest", 2),
    ],
)
def test_what_stays_is_listed_once(service, load, path, order, elements_a_trip):
    rng, cursor, read = random.Random(60), "start", []
    load(*(make_random_trip(rng, number) for number in range(40)))
    while cursor:
        page = service.get(path, start_date="2026-03-09", order=order, limit=3, cursor=cursor).json
        read, cursor = read + page[path[1:]], page["next_cursor"]
        erased, *written = rng.sample(range(20, 60), 5)
        load(*(make_random_trip(rng, number) for number in written))
        delete_trips(service.store, "f1", [f"t{erased}"])
    counts = Counter(map(get_trip_id, read))
    assert [counts[f"t{number}"] for number in range(20)] == [elements_a_trip] * 20
    assert len(read) == len(set(map(json.dumps, read)))
