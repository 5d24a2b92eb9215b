"""Whatever is written, and whenever: a client of the change feed that has caught up has the listed trips."""

import time
from collections import Counter
from contextlib import contextmanager

import time_machine
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, rule

from scripts.materialize.rebuild_and_verify import rebuild_fleet
from scripts.mongodb.memory_store import memory_client
from scripts.mongodb.transactions import transaction
from tests.conftest import NO_LIMITS, NOW, Service
from tests.factories import make_trip
from tests.feed_client import Client, find_listed_trips
from tests.fleet_states import FLEET, Batch, write_batches

HOUR_MS, DELAY_MS = 3_600_000, 4 * 3_600_000
# Clocks of two hosts differ by less than the margin of 90 seconds.
CLOCK_ERROR_MS, MARGIN_MS = 40_000, 90_000
clock_errors = st.sampled_from([-CLOCK_ERROR_MS // 1000, 0, CLOCK_ERROR_MS // 1000])
trip_ids = st.sampled_from([f"t{n}" for n in range(5)])
# How long before the clock of the writer a trip ended, in ms.
ages = st.sampled_from([-HOUR_MS, 0, HOUR_MS, 3 * HOUR_MS, DELAY_MS - 60_000, DELAY_MS, 5 * HOUR_MS, 9 * HOUR_MS])
lines = st.tuples(trip_ids, st.sampled_from(["d1", "d2"]), ages, st.integers(0, 2))


def make_line(trip_id, driver_id, age, miles):
    """Return a line of a trips file."""
    end = int(time.time() * 1000) - age
    times = {"trip_start_time": end - HOUR_MS, "trip_end_time": end}
    return make_trip(driver_id=driver_id, trip_id=trip_id, distance_miles=miles, **times)


class FeedMachine(RuleBasedStateMachine):
    """Writers, clients with cursors of any age, and time."""

    clients = Bundle("clients")

    def __init__(self):
        super().__init__()
        self.travel = time_machine.travel(NOW, tick=False)
        self.clock = self.travel.start()
        self.service = Service(memory_client()["feed"], **NO_LIMITS, log_level="ERROR")
        # With one from before the feed began, a client starts again without knowing.
        transaction(lambda *_: None)(self.service.store, FLEET)
        self.ends, self.written, self.expected_deletions, self.all_clients = {}, Counter(), set(), []

    @contextmanager
    def clock_of_host(self, seconds):
        """Let the clock differ by so many seconds, as that of another host does."""
        self.clock.shift(seconds)
        yield
        self.clock.shift(-seconds)

    def note_visible(self):
        """Keep the trips of which clients may have to hear that they are gone, by the clock of any writer."""
        last_end = time.time() * 1000 - DELAY_MS + MARGIN_MS + CLOCK_ERROR_MS
        self.expected_deletions |= {trip_id for trip_id, end in self.ends.items() if end <= last_end}

    @rule(batch=st.lists(lines, min_size=1, max_size=4), error=clock_errors)
    def import_trips(self, batch, error):
        self.note_visible()
        with self.clock_of_host(error):
            written = [make_line(*line) for line in batch]
            write_batches(self.service.store, [Batch("trips", written)])
        self.ends |= {line["trip_id"]: line["trip_end_time"] for line in written}
        # The feed has one description of all earlier versions. So it may report a deletion too many for several.
        self.written.update({line["trip_id"] for line in written})
        self.expected_deletions |= {trip_id for trip_id, count in self.written.items() if count > 2}

    @rule(trips=st.lists(trip_ids, min_size=1, max_size=2))
    def delete_trips(self, trips):
        write_batches(self.service.store, [Batch("deleted", trips)])
        self.expected_deletions |= {trip_id for trip_id in trips if self.ends.pop(trip_id, None) is not None}

    @rule(trip_id=trip_ids)
    def rebuild(self, trip_id):
        self.service.db.trips.delete_many({"trip_id": trip_id})
        list(rebuild_fleet(self.service.store, FLEET))
        if self.ends.pop(trip_id, None) is not None:
            self.expected_deletions.add(trip_id)

    @rule(seconds=st.sampled_from([0.001, 60, 3_600, 4 * 3_600, 86_400]))
    def pass_time(self, seconds):
        self.note_visible()
        self.clock.shift(seconds)

    @rule(target=clients, limit=st.sampled_from([1, 2, 1000]))
    def start(self, limit):
        self.all_clients.append(Client(self.service, limit))
        return self.all_clients[-1]

    @rule(client=clients, pages=st.integers(1, 3), error=clock_errors, loses_cursor=st.booleans())
    def read(self, client, pages, error, loses_cursor):
        with self.clock_of_host(error):
            for _ in range(pages):
                self.check(client.get_page())
        if loses_cursor:
            client.lose(pages)

    def check(self, page):
        """Check that a page has only what is visible, and deletions of what was."""
        self.note_visible()
        last_end = time.time() * 1000 - DELAY_MS + MARGIN_MS
        for change in page["changes"]:
            if change["deleted"]:
                assert change["trip_id"] in self.expected_deletions
            else:
                assert self.ends[change["trip_id"]] == change["trip"]["trip_end_time"] <= last_end

    @rule(client=clients)
    def catch_up(self, client):
        # Longer than clocks differ.
        self.pass_time(2 * max(MARGIN_MS, 0) / 1000)
        client.sync()
        assert client.copy == find_listed_trips(self.service, "2025-10-01")

    def teardown(self):
        for client in self.all_clients:
            self.catch_up(client)
        self.travel.stop()


TestFeed = FeedMachine.TestCase
TestFeed.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
