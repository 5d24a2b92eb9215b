"""Twenty requests at once for the longest trips, behind a proxy: what the workers take, and what they give back."""

import contextlib
import re
import threading
from pathlib import Path

import pytest

from tests.factories import make_point, make_trip
from tests.resilience.fleet import MONDAY, issue_key, write_file
from tests.resilience.load import OK, Load, failures, summarize
from tests.resilience.processes import run_command
from tests.resilience.proxies import Proxy
from tests.service_process import wait_until

CLIENTS, TRIPS, POINTS = 20, 5, 100_000
PAGE, ONE = "/trip/tracking_id/long", "/trip/trip_id/long-0"
# MB of the four workers of both instances together. They begin with 140.
MOST_TAKEN, MOST_KEPT = 600, 280
POLL_SECONDS = 0.01


@pytest.fixture(scope="module")
def long_key(store, tmp_path_factory):
    """A key of a fleet with a page of trips of the maximum length."""
    trail = [make_point(n, latitude=n / 10_000, course=n % 360 / 7) for n in range(POINTS)]
    trips = (
        make_trip(f"{MONDAY}T{8 + n:02}:00", trip_id=f"long-{n}", tracking_id="long", trail_path=trail)
        for n in range(TRIPS)
    )
    path = write_file(tmp_path_factory.mktemp("long") / "trips", trips)
    run_command("import", "--fleet", "long", "--trips", path, uri=store.uri)
    return issue_key(store.uri, "long")


class Memory:
    """The memory in MB that the workers of services take together: at `most`, and `now`."""

    def __init__(self, services):
        pids = [service.process.pid for service in services]
        self._workers = [
            pid for parent in pids for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        ]
        self.most = self.now
        self._done, self._thread = threading.Event(), threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._done.set()
        self._thread.join()

    @property
    def now(self):
        rollups = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self._workers)
        return sum(int(re.search(r"^Pss: +([0-9]+) kB$", text, re.MULTILINE)[1]) for text in rollups) / 1000

    def _run(self):
        while not self._done.wait(POLL_SECONDS):
            self.most = max(self.most, self.now)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (PAGE, {}),
        (PAGE, {"X-Fields": "trips{trail_path{timestamp,latitude,longitude,course}}"}),
        (ONE, {"X-Fields": "trips{trail_path{latitude,longitude}}"}),
        (ONE, {"Accept": "application/geo+json"}),
    ],
)
def test_twenty_requests_for_the_longest_trips_take_little_memory_and_give_it_back(
    pair, store, long_key, tmp_path, path, headers, report
):
    with Proxy(tmp_path, "haproxy", pair) as proxy, contextlib.ExitStack() as stack:
        others = stack.enter_context(Load(proxy.address, store.key, store.expected, clients=2))
        others.more(50)
        memory = stack.enter_context(Memory(pair))

        def request():
            # On a busy machine MongoDB may not respond in time.
            while (response := proxy.get(path, long_key, **headers)).status != OK:
                others.more(1)
            sizes.append(len(response.body))

        sizes, threads = [], [threading.Thread(target=request) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Requests that a proxy has given up may still run.
    wait_until(lambda: memory.now < MOST_KEPT)
    report(
        f"{path} {headers}: {memory.most:.0f} MB at most, {memory.now:.0f} MB afterwards; "
        f"others: {summarize(others.results)}"
    )
    assert len(sizes) == CLIENTS
    assert len({*sizes}) == 1
    assert not failures(others.results)
    assert not re.search("instances/(one|two) is DOWN", proxy.log.read_text())
    assert memory.most < MOST_TAKEN
