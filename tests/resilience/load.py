"""Load: clients that repeat requests, check each response, and record the results."""

import collections
import http.client
import json
import threading
import time
from typing import NamedTuple

from tests.service_process import wait_until

API = "/api/v1"
OK = 200


class Request(NamedTuple):
    """A request: its path under /api/v1, and its field mask."""

    path: str
    fields: str = ""

    @property
    def headers(self):
        return {"X-Fields": self.fields} if self.fields else {}


class Response(NamedTuple):
    """A response, or the name of the `error` raised instead; `started` is of time.monotonic."""

    started: float
    seconds: float
    status: int | None = None
    headers: dict[str, str] = {}
    body: bytes = b""
    error: str | None = None

    @property
    def json(self):
        return json.loads(self.body)


class Result(NamedTuple):
    """The result of a request: `failure` is None for 200 with the expected body, else a description."""

    request: Request
    started: float
    seconds: float
    failure: str | None

    @property
    def ended(self):
        return self.started + self.seconds


def failure_of(response, expected):
    """Return what is wrong with a response, or None."""
    if response.status is None:
        return response.error
    if response.status == OK:
        return None if response.body == expected else "wrong response"
    try:
        kind = response.json["error"]
    except (ValueError, KeyError, TypeError):
        kind = "of another body"
    lacks = response.status == 503 and "retry-after" not in map(str.lower, response.headers)
    return f"{response.status} {kind}{' without Retry-After' if lacks else ''}"


class Client:
    """A client with one connection, which it opens when it needs one."""

    def __init__(self, address, key=None, timeout=30):
        self._connection = http.client.HTTPConnection(*address, timeout=timeout)
        self._headers = {"Authorization": f"APIKEY {key}"} if key else {}

    def get(self, path, headers=None):
        """Return the Response; nothing is retried."""
        started = time.monotonic()
        try:
            self._connection.request("GET", API + path, headers={**self._headers, **(headers or {})})
            raw_response = self._connection.getresponse()
            body = raw_response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return Response(started, time.monotonic() - started, error=type(error).__name__)
        return Response(started, time.monotonic() - started, raw_response.status, dict(raw_response.headers), body)

    def request(self, request, expected):
        """Return the Result of a request, whose expected body is given."""
        response = self.get(request.path, request.headers)
        return Result(request, response.started, response.seconds, failure_of(response, expected))

    def close(self):
        self._connection.close()


class Load:
    """Clients, each in a thread, that send the requests of `expected` in turn until the context ends.

    They keep their connections by default, and wait `pause` seconds after each response. `results` grows
    meanwhile; times are of time.monotonic.
    """

    def __init__(self, address, key, expected, *, clients=8, keep_alive=True, pause=0.0, timeout=30):
        self.results = []
        self._address, self._key, self._requests = address, key, list(expected.items())
        self._keep_alive, self._pause, self._timeout = keep_alive, pause, timeout
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        """Wait until every client has its last response; return the results."""
        self._done.set()
        for thread in self._threads:
            thread.join()
        return self.results

    def run_for(self, seconds):
        """Let it run for some seconds; return the results that came meanwhile."""
        since = time.monotonic()
        time.sleep(seconds)
        return self.between(since)

    def more(self, requests):
        """Wait for this many more responses."""
        enough = len(self.results) + requests
        wait_until(lambda: len(self.results) >= enough)

    def between(self, since, until=float("inf")):
        """Return the results of the requests that ended in a period of time."""
        return [result for result in list(self.results) if since <= result.ended < until]

    def _run(self, number):
        client, turn = Client(self._address, self._key, self._timeout), number
        while not self._done.is_set():
            self.results.append(client.request(*self._requests[turn % len(self._requests)]))
            if not self._keep_alive:
                client.close()
            turn += 1
            self._done.wait(self._pause)
        client.close()


def failures(results):
    """Return how many requests failed, by how."""
    return collections.Counter(result.failure for result in results if result.failure)


def summarize(results):
    """Describe how many requests there were, and how many of them failed and how."""
    counts = failures(results)
    kinds = ", ".join(f"{count} {how}" for how, count in counts.most_common())
    return f"{len(results):,} requests, {counts.total()} failed{f' ({kinds})' if kinds else ''}"


def recovery(results, since):
    """Return how long after a moment the last failed request ended, in seconds; 0 if none failed."""
    return max((result.ended - since for result in results if result.failure and result.ended >= since), default=0.0)


def slowest(results):
    """Return the seconds that the slowest response took."""
    return max(result.seconds for result in results)


def percentile(results, share):
    """Return the seconds within which this share of the responses arrived, such as 0.99."""
    times = sorted(result.seconds for result in results)
    return times[min(len(times) - 1, int(len(times) * share))]
